"""The tables in the paper's layout, as Markdown."""

from collections.abc import Iterator

from experiments.lt_tcp.cells import METRICS, PERS_PCT, Case
from experiments.lt_tcp.parameters import ADDS_TO, COMPONENTS_PER_PCT, TCP
from testbed.papers.report import section, table
from testbed.papers.results import CellResult, Results

_WORDS = {
    "goodput": "goodput (Mbps)",
    "throughput": "throughput (Mbps)",
    "timeouts": "timeouts of a flow",
    "proactive": "proactive FEC (%)",
    "reactive": "reactive FEC (%)",
}


def tables(results: Results) -> Iterator[str]:
    """Yield a table for each scheme of the paper's tables, and the component study."""
    cases = results.by_case()
    parts = [scheme for scheme in ADDS_TO if scheme != "lt-tcp"]
    for scheme in dict.fromkeys(case.scheme for case in cases if case.scheme not in parts):
        yield from section(
            f"`{scheme}`, by PER",
            ["", *(f"{per} %" for per in PERS_PCT)],
            (
                ((_WORDS[metric],), [cases.get(Case(metric, scheme, per)) for per in PERS_PCT])
                for metric in METRICS
            ),
            _entry,
        )  # fmt: skip
    if any(case.scheme in parts for case in cases):
        metrics = ("goodput", "throughput", "timeouts")
        yield from section(
            f"Component study, PER {COMPONENTS_PER_PCT} %",
            ["", *(_WORDS[metric] for metric in metrics)],
            (
                ((f"`{scheme}`",), [cases.get(Case(metric, scheme, COMPONENTS_PER_PCT)) for metric in metrics])
                for scheme in ("sack", *ADDS_TO)
            ),
            _entry,
        )


def schemes() -> Iterator[str]:
    """Yield the hosts' TCP of each scheme."""
    yield from ("", *table(["scheme", "TCP"], ((f"`{scheme}`", f"`{profile}`") for scheme, profile in TCP.items())))


def _entry(result: CellResult) -> str:
    """Ours / the paper's, bold where they do not agree; ours alone where the paper has no figure."""
    ours = _number(result.ours.median)
    if not result.cell.paper.known:
        return ours
    text = f"{ours} / {_number(result.cell.paper.median)}"
    return text if result.cell.agrees(result.ours.median) else f"**{text}**"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 20 else f"{value:.3g}"
