"""Holds the results of tier `model` to what they were; read `frozen.py` first."""

import json

import pytest

from tests.testbed.model.frozen import FILE, SCENARIOS, digest

FROZEN: dict[str, str] = json.loads(FILE.read_text())


def test_each_scenario_is_frozen_apart_from_the_others() -> None:
    # a plugin is one file: that of a scheme has no result yet
    assert [name for name in SCENARIOS if name in FROZEN] == list(FROZEN)
    assert all(name.startswith("scheme ") for name in SCENARIOS if name not in FROZEN)
    assert len(FROZEN) >= 40
    assert len(set(FROZEN.values())) == len(FROZEN)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if "bad weather" in name else name for name in FROZEN]
)
def test_results_are_what_they_were(name: str) -> None:
    assert digest(name) == FROZEN[name]
