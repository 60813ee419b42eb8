"""Hostile segments at LT-TCP's options; `benchmarks.fuzz_lt_tcp` sends millions."""

import pytest

from tests.harness.fec_attack import Attack


@pytest.mark.parametrize("seed", [1, 2])
def test_blind_segments_do_not_touch_a_flow(seed: int) -> None:
    calm = Attack(seed, blind=True).run(200_000, 0, 0)
    report = Attack(seed, blind=True).run(200_000, 10_000, 10)
    assert report.shots > 2000
    assert report.intact
    assert report.virtual_s < 1.5 * calm.virtual_s


@pytest.mark.parametrize("seed", [1, 2])
def test_forged_segments_raise_nothing_and_fill_no_memory(seed: int) -> None:
    report = Attack(seed, blind=False).run(200_000, 2000, 10)
    assert report.shots == 2000
    assert report.most_held <= 3 * (1 << 18)
