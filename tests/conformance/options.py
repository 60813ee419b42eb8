"""The kinds of plugins that a scenario chooses by name, and scenarios made of their examples."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from channel.capacity import CAPACITY_MODELS
from channel.errors import ERROR_MODELS
from flowgraphs.phys import PHYS
from hosts.workloads import WORKLOADS
from linklayer.filters import FILTERS
from linklayer.queues import QUEUES
from linklayer.schemes import SCHEMES
from testbed.scenario.file import validate
from testbed.scenario.schema import Scenario
from tests.harness.scenarios import raw_scenario


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of plugins: where a scenario has the name of the plugin it chooses, and its options."""

    registry: Mapping[str, Any]
    name_at: str
    #: `{key}` stands for the plugin's own key
    options_at: str
    #: all options have defaults
    name_is_enough: bool = True
    #: options of another plugin of the kind may stand beside
    tolerant: bool = False

    def place(self, name: str) -> str:
        return self.options_at.format(key=getattr(self.registry[name], "options_key", "")).rstrip(".")

    def raw(self, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
        raw = raw_scenario()
        for path, value in ((self.place(name), dict(options)), (self.name_at, name)):
            here: Any = raw
            *parents, last = keys(path)
            for key in parents:
                here = here[key] if isinstance(key, int) else here.setdefault(key, {})
            here[last] = value
        return raw

    def scenario(self, name: str, *, base: Path | None = None, **options: Any) -> Scenario:
        """Return a scenario with these options alone; `base`: where relative paths start."""
        return validate(self.raw(name, options), "sample", base=base)

    def example(self, name: str, *, base: Path | None = None, **changes: Any) -> Scenario:
        return self.scenario(name, base=base, **{**self.example_options(name), **changes})

    def example_options(self, name: str) -> Mapping[str, Any]:
        """Return the options of a plugin's example; none where all have defaults."""
        example: Mapping[str, Any] = getattr(self.registry[name], "example", {})
        return example

    def chosen(self, scenario: Scenario, name: str) -> Any:
        found: Any = scenario
        for key in keys(self.place(name)):
            found = found[key] if isinstance(key, int) else getattr(found, key)
        return found


def keys(path: str) -> list[str | int]:
    return [int(key) if key.isdigit() else key for key in path.split(".")]


CAPACITY_MODEL = Kind(
    registry=CAPACITY_MODELS, name_at="channel.assignment.kind", options_at="channel.assignment", tolerant=True
)
ERROR_MODEL = Kind(
    registry=ERROR_MODELS, name_at="channel.errors.model", options_at="channel.errors", name_is_enough=False
)
PHY = Kind(registry=PHYS, name_at="radio.phy", options_at="radio", tolerant=True)
QUEUE = Kind(registry=QUEUES, name_at="link.queue.kind", options_at="link.queue")
WORKLOAD = Kind(registry=WORKLOADS, name_at="workloads.0.kind", options_at="workloads.0", name_is_enough=False)
SCHEME = Kind(registry=SCHEMES, name_at="link.scheme", options_at="link.{key}")
FILTER = Kind(registry=FILTERS, name_at="link.filters", options_at="link.{key}")

KINDS = (CAPACITY_MODEL, ERROR_MODEL, PHY, QUEUE, WORKLOAD, SCHEME, FILTER)


def every_plugin(kinds: Iterable[Kind] = KINDS) -> pytest.MarkDecorator:
    """Run a test for each plugin of these kinds."""
    plugins = [pytest.param(kind, name, id=f"{kind.name_at}={name}") for kind in kinds for name in kind.registry]
    return pytest.mark.parametrize(("kind", "name"), plugins)


def written(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(list(value)) if isinstance(value, tuple) else str(value)
