"""What every error model keeps to; a new one is covered as soon as its file is there."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channel.errors import ERROR_MODELS, ErrorModel, Fate, Verdict
from channel.replay import Outcome
from channel.trace import TraceWriter
from testbed.scenario.channel_models import make_errors
from tests.conformance.options import Kind

MS = 1_000_000


@pytest.fixture(scope="module")
def kind(tmp_path_factory: pytest.TempPathFactory) -> Kind:
    """The error models; the scenarios' folder has the trace that the example of `trace` names."""
    folder = tmp_path_factory.mktemp("scenario")
    with TraceWriter(folder / "trace.parquet", link="up", producer="test") as trace:
        for number in range(500):
            trace.write(number * 20 * MS, 1000, Outcome.MISSED if number % 7 == 3 else Outcome.OK)
    return Kind(registry=ERROR_MODELS, place="channel.errors", tag="model", base=folder)


def made(name: str, kind: Kind, seed: int) -> ErrorModel:
    return make_errors(kind.example(name).channel.direction("up").errors, random.Random(seed))


def judged(model: ErrorModel, count: int, nbytes: int = 1000) -> Iterator[Verdict]:
    """Judge frames of 20 ms, a second after every tenth."""
    for number in range(count):
        start = number * 20 * MS + number // 10 * 1000 * MS
        yield model.judge(start, start + 20 * MS, nbytes)


@pytest.mark.parametrize("name", ERROR_MODELS)
def test_the_seed_fixes_every_verdict_of_a_model_that_draws(name: str, kind: Kind) -> None:
    errors, rng = kind.example(name).channel.direction("up").errors, random.Random(3)
    first = list(judged(make_errors(errors, rng), 2000))
    assert first == list(judged(made(name, kind, 3), 2000))
    drew = rng.getstate() != random.Random(3).getstate()
    assert drew == (first != list(judged(made(name, kind, 4), 2000)))
    assert Fate.INTACT in {verdict.fate for verdict in first}


@pytest.mark.parametrize("name", ERROR_MODELS)
def test_some_frames_are_lost_and_not_all(name: str, kind: Kind) -> None:
    fates = [verdict.fate for verdict in judged(made(name, kind, 4), 20_000)]
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
    name: str, kind: Kind, frames: list[tuple[int, int, int]], seed: int
) -> None:
    model, start = made(name, kind, seed), 0
    for wait, length, nbytes in frames:
        start += wait
        verdict = model.judge(start, start + length, nbytes)
        assert (verdict.fate is Fate.DAMAGED) == bool(verdict.bit_errors)
        assert list(verdict.bit_errors) == sorted({bit for bit in verdict.bit_errors if 0 <= bit < 8 * nbytes})


@pytest.mark.parametrize("name", ERROR_MODELS)
def test_what_a_scenario_stores_is_what_it_says(name: str, kind: Kind) -> None:
    kind.check_round_trip(name)


@pytest.mark.parametrize("name", ERROR_MODELS)
def test_unknown_and_wrong_options_are_one_line(name: str, kind: Kind) -> None:
    kind.check_refusals(name)


@pytest.mark.parametrize("name", ERROR_MODELS)
def test_the_document_has_it_with_its_options_and_defaults(name: str, kind: Kind) -> None:
    kind.check_document(name)
