"""Options, plans, messages, rows and results are values: nobody changes one that others hold."""

import importlib
from dataclasses import is_dataclass
from typing import Any

from testbed.paths import root

FOLDERS = (
    "linklayer", "channel", "hosts/tcp", "hosts/engine", "testbed/results", "testbed/campaigns", "testbed/reports",
    "testbed/exports", "testbed/scenario",
)  # fmt: skip
CHANGED = {
    # counters
    "LinkCounters", "StationCounts", "FilterCounters", "SlacpCounters", "SplitCounters", "Counters", "Lateness",
    # states of flows and hosts
    "Held", "CachedFlow", "Piece", "Shared", "Context", "_Losses", "_Burst",
    # frames, which are made for every packet
    "PlainFrame", "Data", "Fec", "Sync", "Ack", "Hello", "Damaged", "Fragment", "Coded", "Mark",
}  # fmt: skip


def test_dataclasses_are_frozen_but_for_counters_states_and_frames() -> None:
    changed = set()
    for path in (path for folder in FOLDERS for path in (root() / folder).rglob("[!_]*.py")):
        name = ".".join(path.relative_to(root()).with_suffix("").parts)
        for kind in vars(importlib.import_module(name)).values():
            if is_dataclass(kind) and isinstance(kind, type) and kind.__module__ == name:
                parameters: Any = kind.__dataclass_params__  # type: ignore[attr-defined]
                changed |= set() if parameters.frozen else {kind.__name__}
    assert changed == CHANGED
