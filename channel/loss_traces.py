"""Loss traces of other programs, read as channel traces: marks, the numbers of what arrived, or CSV, a row per packet.

Read first: `channel/replay.py` (the meaning of a trace), docs/exchange.md (the formats).

Rules kept: every fault is a TraceError of one line that names the line of the text; a text without a packet is a fault.
Where a format has no times or sizes, the caller says them. Times count from the first packet on.

Left out: loss rates and models; they are error models of their own (`channel/errors/`).
"""

import csv
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from channel.replay import Outcome, Trace, TraceError

_NS_OF: Final = {
    "time_ns": 1,
    "time_us": 1_000,
    "time_ms": 1_000_000,
    "time_s": 1_000_000_000,
    "time": 1_000_000_000,
    "timestamp": 1_000_000_000,
}
_SIZES: Final = ("nbytes", "bytes", "size", "length")
_YES: Final = ("1", "true", "yes")
_NO: Final = ("0", "false", "no")
_SEPARATORS: Final = (",", ";", "\t")
#: numbers from the first to the last that arrived
_MOST_PACKETS: Final = 10_000_000
_PRODUCER: Final = "fadelab import-trace"


def parse_marks(text: str, *, interval_ns: int, nbytes: int, lost: str = "1") -> Trace:
    """Return the trace of a text of 0 and 1, a mark per packet, `lost` the mark of a lost one.

    White space and commas between marks have no meaning. Packets are `interval_ns` apart and have `nbytes` each.
    """
    outcomes = []
    for number, line in enumerate(text.splitlines(), 1):
        for mark in line:
            if mark in "01":
                outcomes.append(Outcome.MISSED if mark == lost else Outcome.OK)
            elif not (mark.isspace() or mark == ","):
                raise TraceError(f"line {number} has {mark!r}; a mark is 0 or 1")
    return _evenly(outcomes, interval_ns, nbytes)


def parse_numbers(text: str, *, interval_ns: int, nbytes: int) -> Trace:
    """Return the trace of the numbers of the packets that arrived, one a line, in any order; all between are lost.

    Packets are `interval_ns` apart and have `nbytes` each.
    """
    arrived = set()
    for number, line in enumerate(text.splitlines(), 1):
        word = line.strip()
        if word:
            if not (word.isascii() and word.isdecimal() and len(word) < 19):
                raise TraceError(f"line {number} has {word[:20]!r}; it must be the number of a packet that arrived")
            arrived.add(int(word))
    if not arrived:
        raise TraceError("there is no packet in it")
    first, last = min(arrived), max(arrived)
    if last - first >= _MOST_PACKETS:
        raise TraceError(f"packets {first} to {last} are more than {_MOST_PACKETS:,}")
    outcomes = [Outcome.OK if number in arrived else Outcome.MISSED for number in range(first, last + 1)]
    return _evenly(outcomes, interval_ns, nbytes)


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV text with their last lines' numbers. Raises TraceError for what csv cannot read."""
    lines = text.splitlines()
    separator = max(_SEPARATORS, key=lines[0].count) if lines else ","
    reader = csv.reader(lines, delimiter=separator)
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise TraceError(f"line {reader.line_num}: {error}") from None


class Columns(NamedTuple):
    """Where a table has what, by its header; None: it has not."""

    names: list[str]
    fate_at: int
    fate: Callable[[str], Outcome]
    time_at: int | None
    size_at: int | None

    @property
    def ignored(self) -> list[str]:
        """The columns without a meaning."""
        return [
            name for index, name in enumerate(self.names) if index not in (self.fate_at, self.time_at, self.size_at)
        ]


def columns_of(header: Iterable[str]) -> Columns:
    """Return the columns of a header. Raises TraceError unless one of them is the fate."""
    names = [name.strip().lower() for name in header]
    fate_at, fate = _fate_column(names)
    time_at = next((index for index, name in enumerate(names) if name in _NS_OF), None)
    size_at = next((index for index, name in enumerate(names) if name in _SIZES), None)
    return Columns(names, fate_at, fate, time_at, size_at)


def parse_csv(text: str, *, interval_ns: int, nbytes: int) -> tuple[Trace, Columns]:
    """Return the trace of a CSV text with a header, and its columns.

    One of the columns `lost` (or `loss`), `received` (or `rx`; 0 or 1) and `outcome` (of a channel trace) is the fate.
    A column `time_s`, `time_ms`, `time_us` or `time_ns` gives the times (`time` and `timestamp` are in seconds),
    `nbytes` (or `bytes`, `size`, `length`) the sizes; without them packets are `interval_ns` apart and have `nbytes`
    each. Other columns have no meaning. Commas, semicolons or tabs separate the cells, whichever the header has.
    """
    rows = _rows(text)
    _, first = next(rows, (0, []))
    header, fate_at, fate, time_at, size_at = columns = columns_of(first)
    times: list[int] = []
    sizes: list[int] = []
    outcomes: list[Outcome] = []
    for number, row in rows:
        if not any(cell.strip() for cell in row):
            continue
        where = f"line {number}"
        if len(row) != len(header):
            raise TraceError(f"{where} has {len(row)} cells, the header {len(header)}")
        try:
            outcomes.append(fate(row[fate_at].strip().lower()))
            if time_at is not None:
                times.append(_time(row[time_at], header[time_at]))
            if size_at is not None:
                sizes.append(_size(row[size_at]))
        except ValueError as error:
            raise TraceError(f"{where}: {error}") from None
        if len(times) > 1 and times[-1] < times[-2]:
            raise TraceError(f"{where}: the time goes back; sort the rows by time")
    even = _evenly(outcomes, interval_ns, nbytes)
    trace = Trace(
        time_ns=[at - times[0] for at in times] or even.time_ns,
        nbytes=sizes or even.nbytes,
        outcome=outcomes,
        producer=_PRODUCER,
    )
    return trace, columns


def _evenly(outcomes: list[Outcome], interval_ns: int, nbytes: int) -> Trace:
    if not outcomes:
        raise TraceError("there is no packet in it")
    times = [index * interval_ns for index in range(len(outcomes))]
    return Trace(time_ns=times, nbytes=[nbytes] * len(outcomes), outcome=outcomes, producer=_PRODUCER)


def _fate_column(header: list[str]) -> tuple[int, Callable[[str], Outcome]]:
    """Return where the fate of a packet is in a row, and how it is read."""
    readers: dict[str, Callable[[str], Outcome]] = {
        **dict.fromkeys(("lost", "loss"), lambda cell: Outcome.MISSED if _is_yes(cell) else Outcome.OK),
        **dict.fromkeys(("received", "rx"), lambda cell: Outcome.OK if _is_yes(cell) else Outcome.MISSED),
        "outcome": _outcome,
    }
    found = [name for name in readers if name in header]
    if len(found) != 1:
        raise TraceError(f"the header is {','.join(header)[:60]!r}; one column must be lost, received or outcome")
    return header.index(found[0]), readers[found[0]]


def _is_yes(cell: str) -> bool:
    if cell in _YES:
        return True
    if cell in _NO:
        return False
    raise ValueError(f"{cell[:20]!r} is neither 0 nor 1")


def _outcome(cell: str) -> Outcome:
    try:
        return Outcome(cell)
    except ValueError:
        known = ", ".join(outcome.value for outcome in Outcome)
        raise ValueError(f"outcome {cell[:20]!r} is unknown: choose from {known}") from None


def _time(cell: str, unit: str) -> int:
    """Return a time in ns; whole numbers are exact."""
    cell = cell.strip()
    if cell.removeprefix("-").isdecimal():
        value = int(cell) * _NS_OF[unit]
    else:
        found = float(cell) * _NS_OF[unit]
        value = round(found) if math.isfinite(found) else 1 << 63
    # an int64, with room for differences
    if abs(value) >= 1 << 62:
        raise ValueError(f"{unit} {cell[:20]!r} is too far away")
    return value


def _size(cell: str) -> int:
    size = int(cell)
    if not 0 < size < 1 << 31:
        raise ValueError(f"a packet of {cell.strip()[:20]} octets cannot be")
    return size
