"""The profile `modern` on tier model against Linux's goodput on tier emulated: the bounds of agreement."""

from statistics import median
from typing import Any

import pytest

from testbed.simulation import simulate
from tests.harness.model_runs import model

#: Linux 6.18, CUBIC, tier emulated, medians of the seeds 1 to 5 (docs/tcp.md, docs/campaigns.md), bit/s by link scheme
#: and PER
LINUX_BPS = {
    ("none", 0.01): 1_820_000,
    ("none", 0.03): 1_081_000,
    ("none", 0.05): 769_000,
    ("none", 0.1): 447_000,
    ("slacp", 0.1): 1_549_000,
}


def goodput_bps(tcp: str, per: float, scheme: str = "none") -> float:
    """The median of five bulk transfers of 20 s over 2 Mbit/s and 25 ms each way."""
    runs = [
        model(tcp=tcp, seed=seed, link={"scheme": scheme}, channel={"per": per}, workloads=work(20))
        for seed in range(1, 6)
    ]
    return median(simulate(run).flows[0].goodput_bps for run in runs)


def work(duration_s: int) -> list[dict[str, Any]]:
    return [{"kind": "bulk", "direction": "up", "duration_s": duration_s}]


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "per"), LINUX_BPS)
def test_modern_is_as_fast_as_linux_on_the_emulated_tier(scheme: str, per: float) -> None:
    assert goodput_bps("modern", per, scheme) == pytest.approx(LINUX_BPS[scheme, per], rel=0.1)


def test_modern_is_written_as_far_ahead_as_linux_and_little_is_left_at_the_end() -> None:
    [flow] = simulate(model(tcp="modern", seed=1, workloads=work(5))).flows
    # a send buffer of 4 MiB would be drained for 5 s, 1.25 MB
    assert 0 < flow.bytes_sent - flow.bytes < 300_000


def test_sack_without_rack_is_far_below_linux() -> None:
    # so the rule above can fail
    assert goodput_bps("sack", 0.05) < 0.6 * LINUX_BPS["none", 0.05]
