"""What users feel of some runs, as a table for people."""

from collections.abc import Sequence

from rich.table import Table

from testbed.results.quality import Percentiles
from testbed.results.show import grid
from testbed.results.summary import Summary

_UNKNOWN = "-"
_LEGEND = (
    "delays of the main flows' packets in ms: one way from host to host, round trip from data to ACK, SRTT as the "
    "kernel's TCP smooths it; -: not known on this tier"
)


def quality_table(summaries: Sequence[Summary]) -> Table:
    """Return the percentiles of the delays under load, a row for each run."""
    rows = grid("what users feel", "link", caption=_LEGEND)
    for kind in ("one way", "round trip", "SRTT"):
        for place in ("p50", "p95", "p99"):
            rows.add_column(f"{kind}\n{place}", justify="right", no_wrap=True)
    for s in summaries:
        found = s.quality
        rows.add_row(
            f"{s.scheme} seed {s.seed}" if len(summaries) > 1 else s.scheme,
            *_cells(found.one_way),
            *_cells(found.round_trip),
            *_cells(found.smoothed),
        )
    return rows


def _cells(found: Percentiles | None) -> list[str]:
    if found is None:
        return [_UNKNOWN] * 3
    return [f"{each:.1f}" for each in (found.p50_ms, found.p95_ms, found.p99_ms)]
