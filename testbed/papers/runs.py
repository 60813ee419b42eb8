"""The runs of a paper's cells: scenarios made of choices, each with its reason, and the counters that explain a figure.

Rules kept
- A scenario is made of the choices that all cells share, and of the values that a cell's name gives.
- `--set` may change the choices. A cell stays what its name says.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from common.sides import SIDES, Side
from testbed.papers.results import PaperError, Sample
from testbed.results.summary import Summary
from testbed.scenario.file import validate
from testbed.scenario.schema import Scenario
from testbed.scenario.settings import apply_setting


class Parameter(NamedTuple):
    """One choice: a scenario's key (docs/scenarios.md), its value, its author and the reason.

    `papers NAME --set KEY=VALUE` replaces the value for all cells.
    """

    key: str
    value: Any
    whose: Literal["paper", "ours"]
    why: str


def scenario(
    cell: str,
    values: Mapping[str, Any],
    parameters: Iterable[Parameter],
    settings: Sequence[str],
    fixed: Sequence[str],
) -> Scenario:
    """Return a cell's scenario on tier `model`; its seed is a replication's to give.

    `values` are the cell's own, by scenario key, and `fixed` the keys that `settings` must not change, besides seed and
    tier. Raises FadelabError in one line for settings that are refused.
    """
    raw: dict[str, Any] = {"name": "paper", "tier": "model", "trace": False}
    for parameter in parameters:
        _put(raw, parameter.key, parameter.value)
    for key, value in values.items():
        _put(raw, key, value)
    named = validate(raw, cell)
    for setting in settings:
        apply_setting(raw, setting)
    made = validate(raw, cell)
    for key in ("seed", "tier", *fixed):
        if _get(made, key) != _get(named, key):
            raise PaperError(f"--set makes {key} of {cell} another one: --only chooses cells, --seed seeds")
    return made


def _put(raw: dict[str, Any], key: str, value: Any) -> None:
    """Set a key of a raw scenario, as in link.scheme, making the mappings above it."""
    *parents, last = key.split(".")
    for parent in parents:
        raw = raw.setdefault(parent, {})
    raw[last] = value


def _get(scenario: Scenario, key: str) -> Any:
    """Return the value of a key; below channel.up and channel.down, the one that holds in that direction."""
    value: Any = scenario
    for name in key.split("."):
        value = value.direction(name) if value is scenario.channel and name in SIDES else getattr(value, name)
    return value


def seeded(scenario: Scenario, seed: int) -> Scenario:
    """Return the scenario of one replication."""
    return scenario.model_copy(update={"seed": seed})


@dataclass(frozen=True, slots=True)
class Measurement:
    """A job: what `measure` finds in a run of the scenario with the replication's seed."""

    scenario: Scenario
    #: a function of a module, which pickle finds by its name
    measure: Callable[[Scenario], Sample]

    def __call__(self, seed: int) -> Sample:
        """Run one replication."""
        return self.measure(seeded(self.scenario, seed))


def counters(summary: Summary, side: Side, *names: str) -> dict[str, float]:
    """Return TCP's counters, the link's retransmissions in the direction of the data, and more counters of that."""
    link = summary.link[side]
    return {
        "tcp_retransmissions": summary.retransmissions,
        "tcp_timeouts": summary.timeouts,
        "link_retransmissions": link.retransmissions,
        **{name: getattr(link, name) for name in names},
    }
