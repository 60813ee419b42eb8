"""What holds of the options of every kind of plugin that a scenario chooses by its name."""

import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from testbed.scenario.file import ScenarioError, apply_setting, validate
from testbed.scenario.schema import Scenario

DOCS = Path(__file__).parents[2] / "docs"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of plugins: `place` in a scenario holds the options of the one that its key `tag` names."""

    registry: Mapping[str, Any]
    place: str
    tag: str
    #: where relative paths of an example start
    base: Path | None = None
    #: options of every plugin of the kind, which the document lists once
    shared: frozenset[str] = frozenset()

    @property
    def keys(self) -> list[str | int]:
        """The keys and indices that lead to the place."""
        return [int(key) if key.isdigit() else key for key in self.place.split(".")]

    def scenario(self, **chosen: Any) -> Scenario:
        """Return a scenario in which `chosen` stands at the place."""
        raw: dict[str, Any] = {
            "name": "sample",
            "channel": {"rate_bps": 2_000_000, "delay_ms": 25},
            "workloads": [{"kind": "bulk", "bytes": 100_000}],
        }
        here: Any = raw
        *parents, last = self.keys
        for parent in parents:
            here = here.setdefault(parent, {})
        here[last] = chosen
        return validate(raw, "sample", base=self.base)

    def example(self, name: str, **changes: Any) -> Scenario:
        """Return a scenario with a plugin's example, as a file would contain it."""
        return self.scenario(**{self.tag: name, **getattr(self.registry[name], "example", {}), **changes})

    def chosen(self, scenario: Scenario) -> Any:
        """Return the part of a scenario that stands at the place."""
        found: Any = scenario
        for key in self.keys:
            found = found[key] if isinstance(key, int) else getattr(found, key)
        return found

    def check_round_trip(self, name: str) -> None:
        """A scenario that is stored, whole or without defaults, is the same when it is read."""
        whole = self.example(name)
        assert getattr(self.chosen(whole), self.tag) == name
        assert Scenario.model_validate(whole.model_dump(mode="json")) == whole
        assert Scenario.model_validate(whole.model_dump(mode="json", exclude_defaults=True)) == whole

    def check_refusals(self, name: str) -> None:
        """Unknown, missing and wrong options are one line, which names the option."""

        def refusal(options: dict[str, Any]) -> str:
            with pytest.raises(ScenarioError) as error:
                self.scenario(**{self.tag: name, **options})
            assert "\n" not in str(error.value)
            return str(error.value)

        plugin = self.registry[name]
        example = dict(getattr(plugin, "example", {}))
        assert f"{self.place}.nonsense" in refusal({**example, "nonsense": 1})
        for field in fields(plugin.options):
            if field.default is MISSING:
                left = {key: value for key, value in example.items() if key != field.name}
                assert f"{self.place}.{field.name}: is missing" in refusal(left)
            # no option is a mapping, and none is infinite
            nonsense: tuple[Any, ...] = ({}, math.inf)
            for wrong in nonsense:
                assert f"{self.place}.{field.name}" in refusal({**example, field.name: wrong})

    def check_settings(self, name: str) -> None:
        """All options have defaults, `--set` reaches each of them, and the name alone is enough."""
        expected = self.chosen(self.scenario(**{self.tag: name}))
        for field in fields(self.registry[name].options):
            assert field.default is not MISSING
            raw: dict[str, Any] = {}
            apply_setting(raw, f"{self.place}.{self.tag}={name}")
            apply_setting(raw, f"{self.place}.{field.name}={written(field.default)}")
            for key in self.place.split("."):
                raw = raw[key]
            assert self.chosen(self.scenario(**raw)) == expected

    def check_others(self, name: str) -> None:
        """Options of other plugins of the kind may stand beside, so that one may change the name alone."""
        own = {field.name for field in fields(self.registry[name].options)}
        others = {
            field.name: field.default
            for plugin in self.registry.values()
            for field in fields(plugin.options)
            if field.name not in own
        }
        assert self.example(name, **others) == self.example(name)

    def check_document(self, name: str) -> None:
        """docs/scenarios.md has a row with the name, the options with their defaults in brackets, and the summary."""
        plugin = self.registry[name]
        rows = [line.split("|") for line in (DOCS / "scenarios.md").read_text().splitlines() if line.startswith("| `")]
        [keys] = [row[2] for row in rows if f"`{name}`" in row[1] and row[3].strip() == plugin.summary]
        for field in fields(plugin.options):
            if field.name in self.shared:
                continue
            assert f"`{field.name}`" in keys
            if field.default is not MISSING:
                after = keys.split(f"`{field.name}`", 1)[1].lstrip()
                # None stands for a default that is computed: the table says from what
                default = "" if field.default is None else written(field.default)
                assert after.startswith((f"({default}", f"(`{default}`")), (field.name, default)


def written(value: Any) -> str:
    """A value as YAML has it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(list(value)) if isinstance(value, tuple) else str(value)
