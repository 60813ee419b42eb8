"""Metrics: single numbers of a run's result, named by their path in `summary.json`, as in `link.up.retransmissions`."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from common.sides import SIDES
from testbed.results.summary import FlowSummary, LinkSummary, Summary

#: parts of a summary that are not numbers of their own
_PARTS = ("flows", "link", "split", "confusion", "folder", "run")


def check_metric(name: str) -> None:
    """Raise ValueError unless a summary can have a number of that name."""
    head, *rest = name.split(".")
    if head == "link" and len(rest) == 2 and rest[0] in SIDES:
        known, last = [field.name for field in fields(LinkSummary)], rest[1]
    elif head == "flows" and len(rest) == 2 and rest[0].isdecimal():
        known, last = [field.name for field in fields(FlowSummary)], rest[1]
    elif head == "split" and len(rest) == 1:
        return
    else:
        known, last = [field.name for field in fields(Summary) if field.name not in _PARTS], name
    if last not in known:
        raise ValueError(
            f"no metric {name!r}: choose from {', '.join(known)}, or link.up.NAME, link.down.NAME, flows.0.NAME"
        )


def metric(summary: Mapping[str, Any], name: str) -> float | None:
    """Return a number of a summary (a field of `summary.json`); None where the run does not have it."""
    value: Any = summary
    for key in name.split("."):
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return float(value) if isinstance(value, bool | int | float) else None
