"""The delays under load of one run for its page: the percentiles of its summary, and the distribution if it is known.

A run keeps no delay of single packets, only their percentiles. It keeps each smoothed round-trip time, in its records:
of these there is the whole distribution. Read first: `testbed/results/quality.py`, which makes the percentiles.

Rule kept: a distribution is given only where it has as many values as the summary counts, so the two agree.
"""

import math
from collections.abc import Mapping
from typing import Any

from dashboard.curves import Picture

#: key of `quality` in summary.json, and words for it
_KINDS = {
    "one_way": "one way",
    "round_trip": "round trip",
    "smoothed": "smoothed RTT",
    "probe_round_trip": "round trip of probes",
}
_PLACES = ("p50_ms", "p95_ms", "p99_ms")
#: points of a distribution for each factor of ten by which the share above it falls
_STEPS = 80


def delays(summary: Mapping[str, Any] | None, picture: Picture) -> list[dict[str, Any]]:
    """Return a row for each kind of delay that a summary knows.

    `key`, `label`, `n`, `p50_ms`, `p95_ms`, `p99_ms`, and `curve`: [delay (ms), share (0 to 1)] rising, or empty.
    """
    quality = (summary or {}).get("quality")
    if summary is None or not isinstance(quality, Mapping):
        return []
    rows = []
    for key, label in _KINDS.items():
        found = quality.get(key)
        if not isinstance(found, Mapping) or not all(_positive(found.get(place)) for place in (*_PLACES, "n")):
            continue
        values = _smoothed(summary, picture) if key == "smoothed" else []
        curve = _distribution(values) if len(values) == found["n"] else []
        rows.append({"key": key, "label": label, "curve": curve, **{name: found[name] for name in ("n", *_PLACES)}})
    return rows


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def _smoothed(summary: Mapping[str, Any], picture: Picture) -> list[float]:
    """Return the smoothed round-trip times of the main flows, ms, in order: those of the first flow's direction."""
    flows = summary.get("flows")
    flows = [flow for flow in flows if isinstance(flow, Mapping)] if isinstance(flows, list) else []
    mains = {flow.get("flow") for flow in flows if flow.get("direction") == flows[0].get("direction")}
    return sorted(
        value
        for curve in picture.curves
        if curve.chart == "srtt" and not curve.line and curve.source in mains
        for value in curve.values
        if value == value
    )


def _distribution(ordered: list[float]) -> list[list[float]]:
    """Return delays and shares at ranks that are closer together towards the largest; nearest rank, as percentiles."""
    n = len(ordered)
    ranks = {1, n, *(-(-n * percent // 100) for percent in (50, 95, 99))}
    ranks |= {math.ceil(n * (1 - 10 ** (-step / _STEPS))) for step in range(1, 1 + math.ceil(_STEPS * math.log10(n)))}
    return [[ordered[rank - 1], rank / n] for rank in sorted(ranks) if rank]
