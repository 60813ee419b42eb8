"""What holds of the options of every plugin that a scenario chooses by its name."""

import math
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

from testbed.scenario.file import validate
from testbed.scenario.schema import Scenario
from testbed.scenario.settings import ScenarioError, apply_setting
from tests.conformance.options import KINDS, Kind, every_plugin, written


@every_plugin()
def test_what_a_scenario_stores_is_what_it_says(kind: Kind, name: str, traces: Path) -> None:
    whole = kind.example(name, base=traces)
    assert Scenario.model_validate(whole.model_dump(mode="json")) == whole
    assert Scenario.model_validate(whole.model_dump(mode="json", exclude_defaults=True)) == whole


@every_plugin()
def test_unknown_missing_and_wrong_options_are_one_line(kind: Kind, name: str, traces: Path) -> None:
    def refusal(options: dict[str, Any]) -> str:
        with pytest.raises(ScenarioError) as error:
            kind.scenario(name, base=traces, **options)
        assert "\n" not in str(error.value)
        return str(error.value)

    example, place = dict(kind.example_options(name)), kind.place(name)
    assert f"{place}.nonsense" in refusal({**example, "nonsense": 1})
    for field in fields(kind.registry[name].options):
        if field.default is MISSING:
            left = {key: value for key, value in example.items() if key != field.name}
            assert f"{place}.{field.name}: is missing" in refusal(left)
        # no option is a mapping, and none is infinite
        nonsense: tuple[Any, ...] = ({}, math.inf)
        for wrong in nonsense:
            assert f"{place}.{field.name}" in refusal({**example, field.name: wrong})


@every_plugin()
def test_settings_reach_each_option(kind: Kind, name: str, traces: Path) -> None:
    expected = kind.example(name, base=traces)
    raw = kind.raw(name, {})
    apply_setting(raw, f"{kind.name_at}={name}")
    for field in fields(kind.registry[name].options):
        value = getattr(kind.chosen(expected, name), field.name)
        apply_setting(raw, f"{kind.place(name)}.{field.name}={written(value)}")
    assert validate(raw, "sample", base=traces) == expected


@every_plugin(kind for kind in KINDS if kind.name_is_enough)
def test_the_name_is_enough(kind: Kind, name: str) -> None:
    chosen = kind.chosen(kind.scenario(name), name)
    for field in fields(kind.registry[name].options):
        assert getattr(chosen, field.name) == field.default


@every_plugin(kind for kind in KINDS if kind.tolerant)
def test_options_of_another_may_stand_beside(kind: Kind, name: str) -> None:
    """So that one may change the name alone."""
    own = {field.name for field in fields(kind.registry[name].options)}
    others: dict[str, Any] = {
        field.name: field.default
        for plugin in kind.registry.values()
        for field in fields(plugin.options)
        if field.name not in own
    }
    assert kind.example(name, **others) == kind.example(name)
