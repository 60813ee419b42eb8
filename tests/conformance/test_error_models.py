"""What every error model keeps to; a new one is covered as soon as its file is there."""

import math
import random
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channel.errors import ERROR_MODELS, ErrorModel, Fate, Verdict
from channel.replay import Outcome
from channel.trace import TraceWriter
from testbed.scenario.channel_models import make_errors
from testbed.scenario.file import ScenarioError, validate
from testbed.scenario.schema import Scenario
from tests.testbed.samples import scenario

MS = 1_000_000
DOCUMENT = Path(__file__).parents[2] / "docs" / "scenarios.md"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scenario's folder, with the trace that the example of `trace` names."""
    folder = tmp_path_factory.mktemp("scenario")
    with TraceWriter(folder / "trace.parquet", link="up", producer="test") as trace:
        for number in range(500):
            trace.write(number * 20 * MS, 1000, Outcome.MISSED if number % 7 == 3 else Outcome.OK)
    return folder


def with_example(name: str, base: Path) -> Scenario:
    """A scenario with the model's example, as a file would have it."""
    errors = {"model": name, **ERROR_MODELS[name].example}
    raw = {
        "name": "sample",
        "channel": {"rate_bps": 2_000_000, "delay_ms": 25, "errors": errors},
        "workloads": [{"kind": "bulk", "bytes": 100_000}],
    }
    return validate(raw, name, base=base)


def made(name: str, base: Path, seed: int) -> ErrorModel:
    return make_errors(with_example(name, base).channel.direction("up").errors, random.Random(seed))


def judged(model: ErrorModel, count: int, nbytes: int = 1000) -> Iterator[Verdict]:
    """Judge frames of 20 ms, a second after every tenth."""
    for number in range(count):
        start = number * 20 * MS + number // 10 * 1000 * MS
        yield model.judge(start, start + 20 * MS, nbytes)


@pytest.mark.parametrize("name", ERROR_MODELS)
def test_a_seed_fixes_every_verdict(name: str, base: Path) -> None:
    first, again = (list(judged(made(name, base, 3), 2000)) for _ in range(2))
    assert first == again
    assert Fate.INTACT in {verdict.fate for verdict in first}


@pytest.mark.parametrize("name", ERROR_MODELS)
def test_some_frames_are_lost_and_not_all(name: str, base: Path) -> None:
    fates = [verdict.fate for verdict in judged(made(name, base, 4), 20_000)]
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
    name: str, base: Path, frames: list[tuple[int, int, int]], seed: int
) -> None:
    model, start = made(name, base, seed), 0
    for wait, length, nbytes in frames:
        start += wait
        verdict = model.judge(start, start + length, nbytes)
        assert (verdict.fate is Fate.DAMAGED) == bool(verdict.bit_errors)
        assert list(verdict.bit_errors) == sorted({bit for bit in verdict.bit_errors if 0 <= bit < 8 * nbytes})


@pytest.mark.parametrize("name", ERROR_MODELS)
def test_what_a_scenario_stores_is_what_it_says(name: str, base: Path) -> None:
    whole = with_example(name, base)
    assert Scenario.model_validate(whole.model_dump(mode="json")) == whole
    assert Scenario.model_validate(whole.model_dump(mode="json", exclude_defaults=True)) == whole


@pytest.mark.parametrize("name", ERROR_MODELS)
def test_unknown_and_missing_options_are_one_line(name: str, base: Path) -> None:
    plugin = ERROR_MODELS[name]

    def refusal(errors: dict[str, Any]) -> str:
        with pytest.raises(ScenarioError) as error:
            scenario(channel={"errors": {"model": name, **errors}})
        assert "\n" not in str(error.value)
        return str(error.value)

    assert "channel.errors.nonsense" in refusal({**plugin.example, "nonsense": 1})
    for field in fields(plugin.options):
        left = {key: value for key, value in plugin.example.items() if key != field.name}
        if field.default is MISSING:
            assert f"channel.errors.{field.name}: is missing" in refusal(left)
        # no option is a mapping, and none is infinite
        impossible: tuple[Any, ...] = ({}, math.inf)
        for wrong in impossible:
            assert f"channel.errors.{field.name}" in refusal({**plugin.example, field.name: wrong})


@pytest.mark.parametrize("name", ERROR_MODELS)
def test_the_document_has_it_with_its_options_and_defaults(name: str) -> None:
    plugin = ERROR_MODELS[name]
    rows = [line.split("|") for line in DOCUMENT.read_text().splitlines() if line.startswith("| `")]
    [(_, _, keys, _, _)] = [row for row in rows if f"`{name}`" in row[1] and row[3].strip() == plugin.summary]
    for field in fields(plugin.options):
        assert f"`{field.name}`" in keys
        if field.default is not MISSING:
            default = str(field.default).lower() if isinstance(field.default, bool) else field.default
            assert has_default(keys, field.name, default), (field.name, default)


def has_default(keys: str, name: str, default: object) -> bool:
    """Whether the default stands in brackets behind the name."""
    after = keys.split(f"`{name}`", 1)[1]
    return after.lstrip().startswith((f"({default}", f"(`{default}`"))
