"""What the scenarios of a paper's cells are made of: choices, each with its reason, put into one raw scenario.

Read first: `papers.py`; `experiments/NAME/parameters.py` for a paper's own.
"""

from typing import Any, Literal, NamedTuple

#: who has made a choice
Whose = Literal["paper", "ours"]


class Parameter(NamedTuple):
    """One choice: a scenario's key (docs/scenarios.md), its value, whose it is and why."""

    key: str
    value: Any
    whose: Whose
    why: str


def put(raw: dict[str, Any], key: str, value: Any) -> None:
    """Set a key of a raw scenario, as in link.scheme, making the mappings above it."""
    *parents, last = key.split(".")
    for parent in parents:
        raw = raw.setdefault(parent, {})
    raw[last] = value
