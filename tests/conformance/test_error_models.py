"""What every error model keeps to; a new one is covered as soon as its file is there."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channel.errors import ERROR_MODELS, ErrorModel, Fate, Verdict
from testbed.scenario.resolver import resolve
from testbed.scenario.run_plan import HopPlan
from tests.conformance.options import ERROR_MODEL

MS = 1_000_000


def made(name: str, traces: Path, seed: int) -> ErrorModel:
    return medium(name, traces).make_errors(random.Random(seed))


def medium(name: str, traces: Path) -> HopPlan:
    return resolve(ERROR_MODEL.example(name, base=traces)).stations["up"].hop


def judged(model: ErrorModel, count: int) -> Iterator[Verdict]:
    """Judge frames of 20 ms, a second after every tenth."""
    for number in range(count):
        start = number * 20 * MS + number // 10 * 1000 * MS
        yield model.judge(start, start + 20 * MS, 1000)


@pytest.mark.parametrize("name", ERROR_MODELS)
def test_the_seed_fixes_every_verdict_of_a_model_that_draws(name: str, traces: Path) -> None:
    rng = random.Random(3)
    first = list(judged(medium(name, traces).make_errors(rng), 2000))
    assert first == list(judged(made(name, traces, 3), 2000))
    drew = rng.getstate() != random.Random(3).getstate()
    assert drew == (first != list(judged(made(name, traces, 4), 2000)))
    assert Fate.INTACT in {verdict.fate for verdict in first}


@pytest.mark.parametrize("name", ERROR_MODELS)
def test_some_frames_are_lost_and_not_all(name: str, traces: Path) -> None:
    fates = [verdict.fate for verdict in judged(made(name, traces, 4), 20_000)]
    lost = sum(fate is not Fate.INTACT for fate in fates)
    assert lost == 0 if name == "none" else 0 < lost < len(fates)


@pytest.mark.parametrize("name", ERROR_MODELS)
@given(
    frames=st.lists(
        st.tuples(st.integers(0, 10**12), st.integers(1, 10**9), st.integers(1, 20_000)), min_size=1, max_size=60
    ),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=25)
def test_wrong_bits_lie_in_the_frame_and_a_damaged_one_has_some(
    name: str, traces: Path, frames: list[tuple[int, int, int]], seed: int
) -> None:
    model, start = made(name, traces, seed), 0
    for wait, length, nbytes in frames:
        start += wait
        verdict = model.judge(start, start + length, nbytes)
        assert (verdict.fate is Fate.DAMAGED) == bool(verdict.bit_errors)
        assert list(verdict.bit_errors) == sorted({bit for bit in verdict.bit_errors if 0 <= bit < 8 * nbytes})
