"""The JSON format of curves, in live frames and past runs (README.md, "HTTP").

Numbers are rounded below the visible precision: times to 0.1 ms, values to 0.001 of their unit.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from dashboard.curves import Curves, Mark, Note
from telemetry.views import PhyView

Series = dict[str, dict[str, dict[str, list[Any]]]]


def to_json(data: Any) -> str:
    """Return JSON for browsers: NaN and infinity become null."""
    try:
        return json.dumps(data, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(_finite(data), separators=(",", ":"), allow_nan=False)


def points(times: Iterable[float], values: Iterable[float]) -> dict[str, list[Any]]:
    """Return the points of a curve; a gap is null."""
    return {
        "t": [round(time_s, 4) for time_s in times],
        "v": [None if math.isnan(value) else round(value, 3) for value in values],
    }


def series(curves: Curves, after: int = 0, since_s: float = -math.inf) -> Series:
    """Return the points after a batch, by chart and label; curves without any are left out."""
    found: Series = {}
    for curve in curves.curves.values():
        new = curve.after(after, since_s)
        if new.start < new.stop:
            found.setdefault(curve.chart, {})[curve.label] = points(curve.times[new], curve.values[new])
    return found


def marks(found: Sequence[Mark]) -> list[dict[str, Any]]:
    """Return loss marks."""
    return [asdict(mark) | {"t": round(mark.t, 4)} for mark in found]


def notes(found: Sequence[Note]) -> list[dict[str, Any]]:
    """Return changes by controls."""
    return [asdict(note) | {"t": round(note.t, 4)} for note in found]


def view(found: PhyView) -> dict[str, Any]:
    """Return a view of a receiver."""
    return {
        "t": round(found.time_ns / 1e9, 4),
        "link": found.link,
        "center_hz": found.center_hz,
        "rate_sps": found.rate_sps,
        "spectrum_db": [round(power, 1) if math.isfinite(power) else None for power in found.spectrum_db],
        "symbols": [[round(i, 3), round(q, 3)] for i, q in found.symbols],
        "modulation": found.modulation,
    }


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
