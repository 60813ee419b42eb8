"""The delays under load of one run for its page: the percentiles of its summary, and the distribution if it is known.

A run keeps no delay of single packets, only their percentiles. It keeps each smoothed round-trip time, in its records:
of these there is the whole distribution. Read first: `testbed/results/quality.py`, which makes the percentiles.

Rules kept: a distribution is given only where it has as many values as the summary counts, so the two agree. Paths of
MPTCP have rows of their own, whose percentiles are those of the same values.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.curves import Picture
from telemetry.records import is_of_flow

#: key of `quality` in summary.json, and words for it
_KINDS = {
    "one_way": "one way",
    "round_trip": "round trip",
    "smoothed": "smoothed RTT",
    "probe_round_trip": "round trip of probes",
}
#: percentiles, as the summary names them
_PERCENTS = {"p50_ms": 50, "p95_ms": 95, "p99_ms": 99}
#: points of a distribution for each factor of ten by which the share above it falls
_STEPS = 80


def delays(summary: Mapping[str, Any] | None, picture: Picture) -> list[dict[str, Any]]:
    """Return a row for each kind of delay that a summary knows.

    `key`, `label`, `n`, `p50_ms`, `p95_ms`, `p99_ms`, and `curve`: [delay (ms), share (0 to 1)] rising, or empty. `key`
    is that of `quality`, and of a path `path` and its number.
    """
    quality = (summary or {}).get("quality")
    if summary is None or not isinstance(quality, Mapping):
        return []
    rows, flows = [], _mains(summary)
    for key, label in _KINDS.items():
        found = quality.get(key)
        if not isinstance(found, Mapping) or not all(_positive(found.get(place)) for place in (*_PERCENTS, "n")):
            continue
        sources = _smoothed(flows, picture) if key == "smoothed" else {}
        values = sorted(value for times in sources.values() for value in times)
        agree = len(values) == found["n"]
        known = {name: found[name] for name in ("n", *_PERCENTS)}
        rows.append({"key": key, "label": label, "curve": _distribution(values) if agree else [], **known})
        rows += _of_paths(sources, flows) if agree else []
    return rows


def _of_paths(sources: Mapping[str, list[float]], flows: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row for each path of the flows, by its smoothed round-trip times; none where there is one path alone."""
    paths: dict[str, list[float]] = {}
    for name, values in sources.items():
        if name not in flows and values:
            paths.setdefault(name.rpartition("/")[2], []).extend(values)
    rows: list[dict[str, Any]] = []
    for path, values in sorted(paths.items(), key=lambda item: (len(item[0]), item[0])):
        values.sort()
        places = {place: values[_rank(len(values), percent) - 1] for place, percent in _PERCENTS.items()}
        label = f"{_KINDS['smoothed']}, path {path}"
        rows.append({"key": f"path{path}", "label": label, "curve": _distribution(values), "n": len(values), **places})
    return rows if len(rows) > 1 else []


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def _mains(summary: Mapping[str, Any]) -> list[str]:
    """Return the names of the main flows: those of the first one's direction."""
    flows = summary.get("flows")
    flows = [flow for flow in flows if isinstance(flow, Mapping)] if isinstance(flows, list) else []
    return [str(flow.get("flow")) for flow in flows if flow.get("direction") == flows[0].get("direction")]


def _smoothed(flows: Sequence[str], picture: Picture) -> dict[str, list[float]]:
    """Return the smoothed round-trip times (ms) of each source of some flows."""
    return {
        curve.source: [value for value in curve.values if value == value]
        for curve in picture.curves
        if curve.chart == "srtt" and not curve.line and any(is_of_flow(curve.source, flow) for flow in flows)
    }


def _rank(n: int, percent: int) -> int:
    """Return the nearest rank of a percentile, from 1."""
    return -(-n * percent // 100)


def _distribution(ordered: list[float]) -> list[list[float]]:
    """Return delays and shares at ranks that are closer together towards the largest; nearest rank, as percentiles."""
    n = len(ordered)
    ranks = {1, n, *(_rank(n, percent) for percent in _PERCENTS.values())}
    ranks |= {math.ceil(n * (1 - 10 ** (-step / _STEPS))) for step in range(1, 1 + math.ceil(_STEPS * math.log10(n)))}
    return [[ordered[rank - 1], rank / n] for rank in sorted(ranks) if rank]
