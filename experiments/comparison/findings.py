"""Ours against the paper's.

Rules kept
- A finding counts only cells that were computed, and says of how many.
- Schemes are ranked within a setting, all twelve together; two that the paper has within 5 % of one another may be in
  any order, and so may two that we have so close.
"""

from collections.abc import Iterator, Mapping
from itertools import combinations

from experiments.comparison.cells import FAMILIES, METRICS, SETTINGS, Case
from testbed.papers.results import Finding, Results, Tally, agreement, tally

#: throughputs this close are no difference
TIED = 0.05
_WORDS = {
    "throughput": "throughput within 20 %",
    "wireless": "wireless goodput within 2 points",
    "wired": "wired goodput within 2 points",
}


def findings(results: Results) -> list[Finding]:
    """Return the findings of the cells that were computed."""
    found: list[Finding] = []
    for table in FAMILIES:
        for metric in METRICS:
            part = results.below(f"table{table}/", f"/{metric}")
            found += agreement(f"table{table}/{metric}", f"table {table}: {_WORDS[metric]}", part)
    for place, label in (("table5", "table 5"), ("figure12", "figure 12")):
        found += agreement(f"{place}/throughput", f"{label}: {_WORDS['throughput']}", results.below(f"{place}/"))
    found += _ranking(results.medians())
    return found


def _ranking(medians: Mapping[str, tuple[float, float]]) -> Iterator[Tally]:
    """Count the pairs of schemes that have the paper's order, by setting."""
    for setting in SETTINGS:
        known = {
            scheme: medians[name]
            for table, schemes in FAMILIES.items()
            for scheme in schemes
            if (name := Case(f"table{table}", scheme, setting).name) in medians
        }
        pairs = [
            (slow, fast)
            for one, other in combinations(known, 2)
            for slow, fast in [sorted((one, other), key=lambda scheme: known[scheme][1])]
            if known[slow][1] < known[fast][1] * (1 - TIED)
        ]
        for name, words, apart in (("ranking", "", 0.0), ("ranking_but_ties", ", ours within 5 % as well", TIED)):
            checks = [(f"{slow} before {fast}", known[slow][0] * (1 - apart) < known[fast][0]) for slow, fast in pairs]
            label = f"{setting}: pairs of schemes in the paper's order, any order within 5 %{words}"
            yield from tally(f"{setting}/{name}", label, checks)
