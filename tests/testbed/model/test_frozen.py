"""Holds the results of tier `model` to what they were; read `frozen.py` first."""

import json

import pytest

from tests.testbed.model.frozen import FILE, SCENARIOS, digest

FROZEN: dict[str, str] = json.loads(FILE.read_text())


def test_each_scenario_is_frozen_apart_from_the_others() -> None:
    assert list(FROZEN) == list(SCENARIOS)
    assert len(SCENARIOS) >= 40
    assert len(set(FROZEN.values())) == len(FROZEN)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_results_are_what_they_were(name: str) -> None:
    assert digest(name) == FROZEN[name]
