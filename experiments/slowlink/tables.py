"""The tables in the paper's layout, as Markdown."""

from collections.abc import Iterator

from experiments.slowlink.cells import METRICS, Case
from experiments.slowlink.parameters import DELAYS, QUEUES, VARIANTS, window_bytes
from testbed.papers.report import section, table
from testbed.papers.results import CellResult, Results

_TITLES = {"one": "Table 1: one flow, 100 KB", "four": "Table 2: four flows, 50 KB each"}
_HEADINGS = {
    "whole": "100 KB",
    "first": "first 20 KB",
    "slowest": "slowest",
    "fastest": "fastest",
    "start": "last flow's first 1 KB",
}
_DELAYS = {"steady": "no excessive delays", "delays": "with excessive delays"}


def tables(results: Results) -> Iterator[str]:
    """Yield both tables, each with and without excessive delays, as far as their cells were computed."""
    cases = results.by_case()
    for place, title in _TITLES.items():
        for delays in DELAYS:
            columns = [(queue, metric) for queue in QUEUES for metric in METRICS[place]]
            yield from section(
                f"{title}, {_DELAYS[delays]} (s)",
                ["variant", *(f"{_HEADINGS[metric]}, {queue} packets" for queue, metric in columns)],
                (
                    ((name,), [cases.get(Case(place, queue, delays, variant, metric)) for queue, metric in columns])
                    for variant, (_, name, _) in VARIANTS.items()
                ),
                _entry,
            )


def _entry(result: CellResult) -> str:
    ours = result.ours
    return f"{ours.median:.1f} ({ours.p25:.1f} to {ours.p75:.1f})"


def variants() -> Iterator[str]:
    """Yield the definitions of the variants."""
    words = {"none": "", "own": "set for the cell's queue", "other": "set for the other queue"}
    rows = ((f"`{name}`", f"`{variant.tcp}`", words[variant.window]) for name, variant in VARIANTS.items())
    yield from ("", *table(["variant", "`tcp`", "shared window"], rows))
    windows = ", ".join(f"{window_bytes(queue)} octets for {queue} packets" for queue in QUEUES)
    yield from ("", f"Shared windows (`link.window.shared_bytes`): {windows}.")
