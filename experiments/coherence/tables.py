"""COHERENCE's figures as tables, in Markdown."""

from collections.abc import Iterator

from experiments.coherence.cells import ELSEWHERE_PERS, METRICS, PERS, SCHEME_WORDS, TRACED, Case
from experiments.coherence.parameters import FIRST_HOP, SCHEMES
from testbed.papers.report import section, table
from testbed.papers.results import CellResult, Results


def tables(results: Results) -> Iterator[str]:
    """Yield the figures as far as their cells were computed."""
    cases = results.by_case()
    yield from section(
        "Figure 7: averages of the traces (packets)",
        ["scheme", *TRACED],
        (
            ((word,), [cases.get(Case("figure7", scheme, 0.1, metric)) for metric in TRACED])
            for scheme, word in SCHEME_WORDS.items()
        ),
        _entry,
    )
    for place, (_, unit, words) in METRICS.items():
        pers = PERS if place.startswith("figure") else ELSEWHERE_PERS
        heading = (
            f"Figure {place.removeprefix('figure')}: {words}" if place.startswith("figure") else words.capitalize()
        )
        yield from section(
            f"{heading} ({unit})" if unit != words else heading,
            ["scheme", *(f"PER {per:g}" for per in pers)],
            (((word,), [cases.get(Case(place, scheme, per)) for per in pers]) for scheme, word in SCHEME_WORDS.items()),
            _entry,
        )


def schemes() -> Iterator[str]:
    """Yield our names of the paper's schemes."""
    rows = []
    for name, word in SCHEME_WORDS.items():
        for where, chosen in (("last hop, middle", SCHEMES[name]), ("first hop", FIRST_HOP[name])):
            filters = ", ".join(f"`{each}`" for each in chosen.filters)
            rows.append((word, where, f"`{chosen.link}`", filters, f"`{chosen.tcp}`", "yes" if chosen.ecn else "no"))
    yield from ("", *table(["scheme", "wireless link", "link", "filters", "TCP profile", "ECN"], rows))


def _entry(result: CellResult) -> str:
    ours, unit = result.ours.median, result.cell.unit
    if unit == "%":
        return f"{ours:.2f}"
    return f"{ours:.1f}" if ours < 100 and ours % 1 else f"{ours:,.0f}"
