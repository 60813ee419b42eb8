"""The tables in the paper's layout, as Markdown."""

from collections.abc import Iterator

from experiments.comparison.cells import FAMILIES, METRICS, SETTINGS, SWEEP_SETTING, Case
from experiments.comparison.parameters import SCHEMES
from testbed.papers.report import entry, section, table
from testbed.papers.results import CellResult, Results

_HEADINGS = {2: "link-layer schemes", 3: "end-to-end schemes", 4: "split connections"}


def tables(results: Results) -> Iterator[str]:
    """Yield tables 2 to 5 and figure 12, as far as their cells were computed."""
    cases = results.by_case()
    for number, family in FAMILIES.items():
        yield from section(
            f"Table {number}: {_HEADINGS[number]}",
            ["scheme", "metric", *SETTINGS],
            (
                (
                    (scheme, "throughput (Mbps)" if metric == "throughput" else f"{metric} goodput (%)"),
                    [cases.get(Case(f"table{number}", scheme, setting, metric)) for setting in SETTINGS],
                )
                for scheme in family
                for metric in METRICS
            ),
            _entry,
        )
    bursts = {case: result for case, result in cases.items() if case.place == "table5"}
    yield from section(
        "Table 5: bursts, LAN 32 KB",
        ["scheme", "packets", "throughput (Mbps)"],
        (((case.scheme, f"{case.burst}"), [result]) for case, result in bursts.items()),
        _entry,
    )
    sweep = [case for case in cases if case.place == "figure12"]
    spacings = sorted({case.spacing_kb for case in sweep})
    yield from section(
        "Figure 12: throughput (Mbps), LAN 32 KB, by the mean distance of errors",
        ["scheme", *(f"{spacing} KB" for spacing in spacings)],
        (
            ((scheme,), [cases.get(Case("figure12", scheme, SWEEP_SETTING, spacing_kb=each)) for each in spacings])
            for scheme in dict.fromkeys(case.scheme for case in sweep)
        ),
        _entry,
    )


def schemes() -> Iterator[str]:
    """Yield our names of the paper's schemes."""
    rows = ((scheme, *(f"`{name}`" for name in names)) for scheme, names in SCHEMES.items())
    yield from ("", *table(["scheme", "`link.scheme`", "`tcp`", "`link.eln`"], rows))


def _entry(result: CellResult) -> str:
    return entry(result, ("{:.1f}" if result.cell.unit == "%" else "{:.2f}").format, quartiles=False)
