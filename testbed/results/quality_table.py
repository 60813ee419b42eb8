"""What users feel of some runs, as a table for people."""

from collections.abc import Collection, Sequence

from rich.table import Table

from testbed.results.grid import grid
from testbed.results.quality import Percentiles, Powers
from testbed.results.summary import Summary

_UNKNOWN = "-"
#: of each column; those of delays stand behind each other
_DELAYS = "ms of the main flows' packets, p50/p95/p99"
_MEANING = {
    "one way": "one way from host to host",
    "round trip": "round trip from data to ACK",
    "SRTT": "SRTT as the sender smooths it",
    "probe": "probe: there and back",
    "RPM": "RPM: responsiveness in round trips per minute",
    "loaded": "loaded: that of the main flows alone",
    "µJ/bit": f"µJ/bit: both radios' energy per payload bit, by assumed powers: {Powers()}",
}
#: characters: a table of few columns leaves room for its legend
_LEAST_WIDTH = 70


def quality_table(summaries: Sequence[Summary]) -> Table:
    """Return the percentiles of the delays under load, a row for each run, in 80 columns."""
    found = [s.quality for s in summaries]
    columns = {
        "one way": [_percentiles(each.one_way) for each in found],
        "round trip": [_percentiles(each.round_trip) for each in found],
        "SRTT": [_percentiles(each.smoothed) for each in found],
        "probe": [_percentiles(each.probe_round_trip) for each in found],
        "RPM": [_number(each.rpm.responsiveness, ".0f") for each in found],
        "loaded": [_number(each.rpm.loaded, ".0f") for each in found],
        "µJ/bit": [_number(each.energy_uj_per_bit, ".3g") for each in found],
    }
    known = {name: cells for name, cells in columns.items() if set(cells) != {_UNKNOWN}}
    rows = grid("what users feel", "link", caption=_legend(known), min_width=_LEAST_WIDTH)
    for name in known:
        rows.add_column(name, justify="right", no_wrap=True)
    for index, s in enumerate(summaries):
        label = f"{s.scheme} seed {s.seed}" if len(summaries) > 1 else s.scheme
        rows.add_row(label, *(cells[index] for cells in known.values()))
    return rows


def _legend(columns: Collection[str]) -> str:
    """Return what the columns mean."""
    delays = [_MEANING[name] for name in ("one way", "round trip", "SRTT", "probe") if name in columns]
    others = [_MEANING[name] for name in ("RPM", "loaded", "µJ/bit") if name in columns]
    return "; ".join([f"{_DELAYS}: {', '.join(delays)}"] * bool(delays) + others + [f"{_UNKNOWN}: not known"])


def _percentiles(found: Percentiles | None) -> str:
    return _UNKNOWN if found is None else f"{found.p50_ms:.1f}/{found.p95_ms:.1f}/{found.p99_ms:.1f}"


def _number(value: float | None, digits: str) -> str:
    return _UNKNOWN if value is None else f"{value:{digits}}"
