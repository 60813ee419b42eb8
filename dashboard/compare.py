"""Compares two runs: their figures, and the differences of their scenarios."""

from collections.abc import Iterator, Mapping
from typing import Any

#: key in summary.json (docs/runs.md), label, unit
_FIGURES = (
    ("goodput_bps", "goodput", "bit/s"),
    ("throughput_bps", "throughput", "bit/s"),
    ("capacity_bps", "capacity", "bit/s"),
    ("duration_s", "duration", "s"),
    ("retransmissions", "TCP retransmissions", ""),
    ("timeouts", "TCP timeouts", ""),
    *(
        (f"quality.{kind}.{place}_ms", f"{label}, {place}", "ms")
        for kind, label in (("one_way", "delay one way"), ("round_trip", "round trip"), ("smoothed", "smoothed RTT"))
        for place in ("p50", "p95", "p99")
    ),
    ("quality.rpm.foreign", "separate connections", "RPM"),
    ("quality.rpm.loaded", "loaded connections", "RPM"),
    ("quality.rpm.responsiveness", "responsiveness", "RPM"),
    ("quality.rpm.udp", "UDP probes", "RPM"),
    ("quality.airtime_share.up", "up: time on the air", "%"),
    ("quality.airtime_share.down", "down: time on the air", "%"),
    ("quality.energy_uj_per_bit", "energy per payload bit", "µJ"),
)
_LINK_FIGURES = (
    ("per", "frames the medium took", "%"),
    ("residual_per", "packets that did not arrive", "%"),
    ("frames", "frames", ""),
    ("packets", "packets", ""),
    ("retransmissions", "retransmissions", ""),
    ("fec_frames", "FEC frames", ""),
    ("fec_repairs", "FEC repairs", ""),
    ("residual_losses", "packets lost for good", ""),
    ("congestion_losses", "congestion losses", ""),
    ("corruption_losses", "corruption losses", ""),
)


def figures(a: Mapping[str, Any] | None, b: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return the figures of two results, with the ratio b / a; unknown values are None."""
    rows = [_row(key, label, unit, _at(a, key), _at(b, key)) for key, label, unit in _FIGURES]
    for link in ("up", "down"):
        for key, label, unit in _LINK_FIGURES:
            path = f"link.{link}.{key}"
            rows.append(_row(path, f"{link}: {label}", unit, _at(a, path), _at(b, path)))
    return [row for row in rows if (row["a"], row["b"]) != (None, None)]


def differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the keys in which two scenarios differ; None: the key is missing."""
    left, right = dict(_flat(a)), dict(_flat(b))
    keys = [*left, *(key for key in right if key not in left)]
    return [{"key": key, "a": left.get(key), "b": right.get(key)} for key in keys if left.get(key) != right.get(key)]


def _row(key: str, label: str, unit: str, a: float | None, b: float | None) -> dict[str, Any]:
    if unit == "%":
        a, b = (None if share is None else 100 * share for share in (a, b))
    return {"key": key, "figure": label, "unit": unit, "a": a, "b": b, "ratio": b / a if a and b is not None else None}


def _at(summary: Mapping[str, Any] | None, path: str) -> float | None:
    found: Any = summary
    for part in path.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None


def _leaf(value: Any) -> Any:
    """Return the value of a leaf: one of YAML that JSON does not have, as a date, becomes text."""
    return value if value is None or isinstance(value, str | int | float | dict | list) else str(value)


def _flat(values: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of nested values with their dotted keys, as `--set` takes them."""
    if isinstance(values, Mapping) and values:
        for key, value in values.items():
            yield from _flat(value, f"{path}.{key}" if path else str(key))
    elif isinstance(values, list) and values:
        for index, value in enumerate(values):
            yield from _flat(value, f"{path}.{index}")
    else:
        yield path, _leaf(values)
