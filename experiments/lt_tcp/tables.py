"""The tables in the paper's layout, as Markdown."""

from collections.abc import Iterator

from experiments.lt_tcp.cells import METRICS, PERS_PCT, Case
from experiments.lt_tcp.parameters import ADDS_TO, COMPONENTS_PER_PCT, LINKS, PAPERS, TCP
from testbed.papers.report import entry, section, table
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
    parts = [scheme for scheme in ADDS_TO if scheme not in PAPERS.values()]
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
    """Yield the hosts' TCP and the last hop of each scheme."""
    rows = (
        (f"`{scheme}`", f"`{profile}`", f"link scheme `{LINKS[scheme](0).scheme}`" if scheme in LINKS else "wire")
        for scheme, profile in TCP.items()
    )
    yield from ("", *table(["scheme", "TCP", "last hop"], rows))


def _entry(result: CellResult) -> str:
    return entry(result, lambda value: f"{value:.0f}" if value >= 20 else f"{value:.3g}", quartiles=False)
