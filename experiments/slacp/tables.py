"""The tables in the paper's layout, as Markdown."""

import math
from collections.abc import Iterator
from functools import partial

from experiments.slacp import parameters
from experiments.slacp.cells import DAMA, ERRORS, LINKS, WORKLOADS, Case
from testbed.papers.report import entry, section
from testbed.papers.results import Results


def tables(results: Results) -> Iterator[str]:
    """Yield tables 2, 3 and 4, as far as their cells were computed."""
    cases = results.by_case()
    seconds = partial(entry, number=lambda value: f"{value:.1f}" if math.isfinite(value) else "never")
    yield from section(
        "Table 2",
        ["DAMA", "errors", "TCP", *(f"{workload} {word}" for workload in WORKLOADS for word in LINKS.values())],
        (
            (
                (dama, errors, tcp),
                [cases.get(Case(2, dama, errors, tcp, workload, link)) for workload in WORKLOADS for link in LINKS],
            )
            for dama in DAMA
            for errors in ERRORS
            for tcp in ("ref", "enh")
        ),
        seconds,
    )
    yield from section(
        "Table 3: the first 50 kbytes, VBDC",
        ["link", "TCP", *ERRORS[:4]],
        (
            ((word, tcp), [cases.get(Case(3, "vbdc", errors, tcp, "50KB", link)) for errors in ERRORS[:4]])
            for link, word in LINKS.items()
            for tcp in ("ref", "enh")
        ),
        seconds,
    )
    yield from section(
        "Table 4: SLACP, VBDC, 1 MB",
        ["errors", *parameters.TCP],
        (
            ((errors,), [cases.get(Case(4, "vbdc", errors, tcp, "1x1MB", "slacp")) for tcp in parameters.TCP])
            for errors in ERRORS
        ),
        seconds,
    )
