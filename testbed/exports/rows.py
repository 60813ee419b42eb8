"""The records of a run by time: those before, at and after a moment."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from typing import Any

Row = Mapping[str, Any]


class Rows:
    """Records of one measurement, in order, by what they are of: the values of the field `of`."""

    def __init__(self, rows: Iterable[Row], of: str) -> None:
        self._rows: dict[str, list[Row]] = {}
        for row in sorted(rows, key=_time_ns):
            self._rows.setdefault(row[of], []).append(row)

    def around(self, of: str, from_ns: int, to_ns: int) -> tuple[Row, Row] | None:
        """Return the last record until a time (ns), and the first one after another; None without both."""
        rows = self._rows.get(of, [])
        before, after = bisect_right(rows, from_ns, key=_time_ns) - 1, bisect_right(rows, to_ns, key=_time_ns)
        return None if before < 0 or after == len(rows) else (rows[before], rows[after])

    def over(self, of: str, time_ns: int) -> Row:
        """Return the record of the period with a time (ns): the first one since then; empty without one."""
        rows = self._rows.get(of, [])
        at = bisect_left(rows, time_ns, key=_time_ns)
        return {} if at == len(rows) else rows[at]


def _time_ns(row: Row) -> int:
    time_ns: int = row["time_ns"]
    return time_ns
