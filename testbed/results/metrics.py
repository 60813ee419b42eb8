"""Metrics: single numbers of a run's result, named by their path in `summary.json`, as in `link.up.retransmissions`.

One metric is not in the file: `jain`, the fairness index (Jain, Chiu, Hawe, DEC-TR-301, 1984) of the goodputs of the
flows in the run's direction, those aside that only measure, from 1 / flows to 1; a run with a single flow has none.

Rule kept: a transfer that was cut off, by `limit_s` or by an error, is censored. Its duration and its end are infinite,
since they are longer than the run: `summary.json` has the time of the cut there. Its goodput is that until the cut.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, Final

from common.sides import SIDES
from hosts.workloads import WORKLOADS
from testbed.errors import FadelabError
from testbed.results.quality import FlowQuality, Percentiles, RoundsPerMinute
from testbed.results.summary import FlowSummary, LinkSummary, PathSummary, Summary

JAIN: Final = "jain"
#: metrics of a flow, and of the summary, that only the end of the transfers tells
_ENDS = ("duration_s", "end_s")
#: metrics that are a share of 1, or true (1) or false (0)
_SHARES = {JAIN, "share", "per", "residual_per", "on_time", "finished", "intact", "end_to_end_acks"}
#: parts of a summary that are not numbers of their own
_PARTS = ("flows", "link", "split", "confusion", "folder", "run", "access", "quality", "second_link")
_DELAYS = [field.name for field in fields(FlowQuality)]
_OF_DELAYS = [field.name for field in fields(Percentiles)]
#: names that follow `quality.`, but for those of its flows
_QUALITY = [
    *(f"{kind}.{name}" for kind in (*_DELAYS, "probe_one_way", "probe_round_trip") for name in _OF_DELAYS),
    *(f"rpm.{field.name}" for field in fields(RoundsPerMinute)),
    *(f"airtime_share.{side}" for side in SIDES),
    "energy_uj_per_bit",
]
_PERCENTILES: Final = {"p50": 50, "p95": 95, "p99": 99}


class SummaryError(FadelabError, ValueError):
    """A `summary.json` of another form; one line."""


@contextmanager
def as_summary(what: str) -> Iterator[None]:
    """Read `what` from a summary that may be a stranger's. Raises SummaryError where a value is of another type."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, ArithmeticError, ValueError):
        raise SummaryError(f"summary.json: {what} is of another form") from None


def check_metric(name: str) -> None:
    """Raise ValueError unless a summary can have a number of that name."""
    head, *rest = name.split(".")
    if head in ("link", "second_link") and len(rest) == 2 and rest[0] in SIDES:
        known, last = [field.name for field in fields(LinkSummary)], rest[1]
    elif head == "flows" and len(rest) == 2 and rest[0].isdecimal():
        known, last = [field.name for field in fields(FlowSummary)], rest[1]
    elif head == "flows" and len(rest) == 4 and rest[0].isdecimal() and rest[1] == "paths" and rest[2].isdecimal():
        known, last = [field.name for field in fields(PathSummary) if field.name != "scheme"], rest[3]
    elif head == "split" and len(rest) == 1:
        return
    elif head == "flows" and len(rest) == 3 and rest[0].isdecimal() and rest[1] == "transfer_s":
        known, last = list(_PERCENTILES), rest[2]
    elif head == "quality" and len(rest) == 4 and rest[0] == "flows" and rest[2] in _DELAYS:
        known, last = _OF_DELAYS, rest[3]
    elif head == "quality":
        known, last = _QUALITY, ".".join(rest)
    else:
        known, last = [*(field.name for field in fields(Summary) if field.name not in _PARTS), JAIN], name
    if last not in known:
        raise ValueError(
            f"no metric {name!r}: choose from {', '.join(known)}, or link.up.NAME, link.down.NAME, "
            "second_link.up.NAME, flows.0.NAME, flows.0.transfer_s.p95, flows.0.paths.1.share, quality.one_way.p99_ms, "
            "quality.flows.FLOW.round_trip.p50_ms"
        )


def bounds(name: str) -> tuple[float, float]:
    """Return the natural limits of a metric: all are 0 or more, and shares and truths are 1 at most."""
    last = name.rsplit(".", 1)[-1]
    return 0.0, 1.0 if last in _SHARES or last.endswith("_share") else math.inf


def metric(summary: Mapping[str, Any], name: str) -> float | None:
    """Return a number of a summary (a field of `summary.json`); None where the run does not have it.

    Infinite: the duration or the end of a transfer that was cut off. Raises SummaryError.
    """
    value = stated(summary, name)
    with as_summary(name):
        return math.inf if value is not None and _is_cut(summary, name) else value


def stated(summary: Mapping[str, Any], name: str) -> float | None:
    """Return a number of a summary as it has it: of a transfer that was cut off, that until the cut.

    Raises SummaryError.
    """
    with as_summary(name):
        if name == JAIN:
            return _jain(summary)
        parents, _, last = name.rpartition(".")
        if parents.endswith(".transfer_s") and last in _PERCENTILES:
            return _transfers(summary, int(parents.split(".")[1]), _PERCENTILES[last])
    value: Any = summary
    for key in name.split("."):
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (LookupError, TypeError, ValueError):
            return None
    return float(value) if isinstance(value, bool | int | float) else None


def _jain(summary: Mapping[str, Any]) -> float | None:
    flows = [flow for flow in summary.get("flows") or [] if not WORKLOADS[flow["kind"]].options.beside]
    goodputs = [flow["goodput_bps"] for flow in flows if flow["direction"] == flows[0]["direction"]]
    squares = sum(goodput * goodput for goodput in goodputs)
    return sum(goodputs) ** 2 / len(goodputs) / squares if len(goodputs) > 1 and squares else None


def _transfers(summary: Mapping[str, Any], flow: int, percent: int) -> float | None:
    """Return a percentile (nearest rank) of a flow's transfer times, of those that ended."""
    flows = summary.get("flows") or []
    if flow >= len(flows) or not flows[flow]["transfer_s"]:
        return None
    ordered = sorted(flows[flow]["transfer_s"])
    rank = -(-len(ordered) * percent // 100)
    return float(ordered[rank - 1])


def _is_cut(summary: Mapping[str, Any], name: str) -> bool:
    """Whether a metric is the duration or the end of flows of which one was cut off."""
    *parents, last = name.split(".")
    flows = summary.get("flows") or []
    if parents[2:] == ["transfer_s"]:
        return not flows[int(parents[1])]["finished"]
    if last not in _ENDS or not flows:
        return False
    # the duration of a run is that of its main flows
    main = flows[0]["direction"]
    own = [flows[int(parents[1])]] if parents else [flow for flow in flows if flow["direction"] == main]
    return not all(flow["finished"] for flow in own)
