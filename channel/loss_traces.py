"""Loss traces of other programs, read as channel traces: a mark per packet, or CSV with a row per packet.

Read first: `channel/replay.py` (the meaning of a trace), docs/exchange.md (the two formats).

Rules kept: every fault is a TraceError of one line that names the line of the text; a text without a packet is a fault.
Where a format has no times or sizes, the caller says them. Times count from the first packet on.

Left out: loss rates and models; they are error models of their own (`channel/errors/`).
"""

import csv
import math
from collections.abc import Callable, Iterator
from typing import Final

from channel.replay import Outcome, Trace, TraceError

_NS_OF: Final = {"time_ns": 1, "time_us": 1_000, "time_ms": 1_000_000, "time_s": 1_000_000_000}
_SIZES: Final = ("nbytes", "bytes", "size", "length")
_YES: Final = ("1", "true", "yes")
_NO: Final = ("0", "false", "no")
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


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV text with their last lines' numbers. Raises TraceError for what csv cannot read."""
    reader = csv.reader(text.splitlines())
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise TraceError(f"line {reader.line_num}: {error}") from None


def parse_csv(text: str, *, interval_ns: int, nbytes: int) -> Trace:
    """Return the trace of a CSV text with a header.

    One of the columns `lost`, `received` (0 or 1) and `outcome` (of a channel trace) is the fate. A column `time_s`,
    `time_ms`, `time_us` or `time_ns` gives the times, `nbytes` (or `bytes`, `size`, `length`) the sizes; without them
    packets are `interval_ns` apart and have `nbytes` each. Other columns have no meaning.
    """
    rows = _rows(text)
    _, first = next(rows, (0, []))
    header = [name.strip().lower() for name in first]
    fate_at, fate = _fate_column(header)
    time_at = next((index for index, name in enumerate(header) if name in _NS_OF), None)
    size_at = next((index for index, name in enumerate(header) if name in _SIZES), None)
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
    return Trace(
        time_ns=[at - times[0] for at in times] or even.time_ns,
        nbytes=sizes or even.nbytes,
        outcome=outcomes,
        producer=_PRODUCER,
    )


def _evenly(outcomes: list[Outcome], interval_ns: int, nbytes: int) -> Trace:
    if not outcomes:
        raise TraceError("there is no packet in it")
    times = [index * interval_ns for index in range(len(outcomes))]
    return Trace(time_ns=times, nbytes=[nbytes] * len(outcomes), outcome=outcomes, producer=_PRODUCER)


def _fate_column(header: list[str]) -> tuple[int, Callable[[str], Outcome]]:
    """Return where the fate of a packet is in a row, and how it is read."""
    readers: dict[str, Callable[[str], Outcome]] = {
        "lost": lambda cell: Outcome.MISSED if _is_yes(cell) else Outcome.OK,
        "received": lambda cell: Outcome.OK if _is_yes(cell) else Outcome.MISSED,
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
        seconds = float(cell)
        value = round(seconds * _NS_OF[unit]) if math.isfinite(seconds) else 1 << 63
    # an int64, with room for differences
    if abs(value) >= 1 << 62:
        raise ValueError(f"{unit} {cell[:20]!r} is too far away")
    return value


def _size(cell: str) -> int:
    size = int(cell)
    if not 0 < size < 1 << 31:
        raise ValueError(f"a packet of {cell.strip()[:20]} octets cannot be")
    return size
