"""The footnotes of a report: how many runs are whole, and marks at the figures that others touch.

Rule kept: a figure of a point whose runs are not all whole has a mark, wherever it stands; a note below it has the
numbers of runs.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from common.units import number_of
from testbed.campaigns.rows import Kind, Row
from testbed.reports.document import Paragraph

_WORDS: Mapping[Kind, str] = {
    "whole": "whole",
    "cut": "cut off at limit_s",
    "late": "late",
    "late and cut": "late and cut off at limit_s",
    "unknown": "of a version that did not tell",
    "corrupt": "corrupt (left out)",
    "refused": "too late (left out)",
    "failed": "failed (left out)",
}
_MARKS: Mapping[Kind, str] = {
    "late": "†",
    "late and cut": "†‡",
    "cut": "‡",
    "corrupt": "§",
    "refused": "§",
    "failed": "§",
    "unknown": "¶",
}
_MEANING = {
    "†": "the machine was late, so that figures may not be the channel's; an outcome holds without these runs, too",
    "‡": "a transfer did not end, so that its duration is infinite (never) and its goodput that until the cut",
    "§": "runs are left out of the figures",
    "¶": "lateness and cuts are not known",
}


def counted(rows: Sequence[Row]) -> str:
    """Return the number of runs, and of each kind."""
    found = Counter(row.kind for row in rows)
    kinds = [f"{found[kind]} {words}" for kind, words in _WORDS.items() if kind in found]
    total = number_of(len(rows), "run")
    return f"{total}: {', '.join(kinds)}" if kinds else total


def marks(rows: Iterable[Row]) -> str:
    """Return the marks of figures that these runs touch."""
    present = "".join(_MARKS.get(row.kind, "") for row in rows)
    return "".join(mark for mark in _MEANING if mark in present)


def marked(cells: Iterable[str], rows: Sequence[Row]) -> list[str]:
    """Return the cells of a table, those that are not empty with the marks of these runs."""
    mark = marks(rows)
    return [cell + mark if cell else cell for cell in cells]


def notes(points: Iterable[tuple[str, Sequence[Row]]]) -> Iterator[Paragraph]:
    """Yield the note below figures of these points, by their labels; none if all runs are whole."""
    touched = {label: rows for label, rows in points if marks(rows)}
    if touched:
        used = marks(row for rows in touched.values() for row in rows)
        lines = [f"{label}{marks(rows)}: {counted(rows)}" for label, rows in touched.items()]
        meanings = [f"{mark} {_MEANING[mark]}" for mark in used]
        yield Paragraph(f"{'. '.join(meanings)}. Of the points touched: {'; '.join(lines)}.")
