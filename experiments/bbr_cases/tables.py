"""The results as Markdown: a table of all cases; and the rates and round trips of those that have their own."""

from collections.abc import Iterator
from typing import Final

from experiments.bbr_cases.cases import CASES, FACT, Number
from testbed.papers.report import table
from testbed.papers.results import CellResult, Results

#: units that need no word
_PLAIN: Final = ("share", "gain", "ratio")


def tables(results: Results) -> Iterator[str]:
    """Yield the numbers of all cases: expected, and measured."""
    rows = [(result, CASES[result.cell.case[0]], _number(result)) for result in results.cells]
    yield from ("## Numbers", "")
    yield from table(
        ["cell", "case and number", "expected", "ours"],
        (
            [f"`{result.cell.name}`", f"{case.title}: {number.words}", expected(number), _ours(result)]
            for result, case, number in rows
        ),
    )
    yield ""


def _number(result: CellResult) -> Number:
    case, name = result.cell.case
    return next(number for number in CASES[case].numbers if number.name == name)


def expected(number: Number) -> str:
    """Return the range of a number in words."""
    if number.unit == FACT:
        return "yes"
    unit = "" if number.unit in _PLAIN else f" {number.unit}"
    if number.low is not None and number.low == number.high:
        return f"{number.low:g}{unit}"
    if number.low is not None and number.high is not None:
        return f"{number.low:g} to {number.high:g}{unit}"
    if number.low is not None:
        return f"more than 0{unit}" if number.low < 1e-6 else f"{number.low:g}{unit} or more"
    return f"{number.high:g}{unit} at most"


def _ours(result: CellResult) -> str:
    if result.cell.unit == FACT:
        return f"{sum(sample.value == 1 for sample in result.samples)} of {len(result.samples)}"
    ours = result.ours
    values = [f"{value:.3g}" if value is not None else "" for value in (ours.median, ours.p25, ours.p75)]
    text = values[0] if values[1] == values[2] == values[0] else f"{values[0]} ({values[1]} to {values[2]})"
    return f"{text}" if result.cell.agrees(ours.median) else f"**{text}**"


def paths() -> Iterator[str]:
    """Yield the rates and round trips of the cases that have their own."""
    rows = (
        [
            f"`{name}`",
            "as above" if case.rate_mbps is None else f"{case.rate_mbps:g} Mbit/s",
            "as above" if case.rtt_ms is None else "{:g} to {:g} ms".format(*case.rtt_ms),
        ]
        for name, case in sorted(CASES.items())
        if case.rtt_ms is not None or case.rate_mbps is not None
    )
    yield from ("", *table(["case", "rate", "round trip"], rows))
