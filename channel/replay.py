"""Channel traces in memory, and their replay as an error model.

Read first: `docs/channel.md`, section "Channel traces". A trace has a row for each frame sent to a
receiver: its time, its size, its SNR and carrier offset, and its outcome. `channel/trace.py` keeps traces in files.

Rules: a replayed trace gives the same verdicts to the same calls, with no draws at all. An outcome belongs to
the index or the time of a frame, and does not depend on the length of the replayed frame.

Left out: scaling an outcome to another frame length or modulation; record a trace with the frames of the
replay.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import Final, Literal

from channel.errors import ERASED, INTACT, ErrorModel, Fate, Verdict

#: Bytes at the start of a frame that survive a `payload` outcome: room for any link layer's header.
HEADER_BYTES: Final = 32

_PAYLOAD_HIT: Final = Verdict(Fate.DAMAGED, (8 * HEADER_BYTES,))


class TraceError(ValueError):
    """A trace that cannot be read or is used up; one line with the remedy."""


class Outcome(Enum):
    """The outcome of one frame at a receiver."""

    OK = "ok"
    #: header decoded, CRC of the payload failed
    PAYLOAD = "payload"
    #: nothing decoded
    MISSED = "missed"
    #: nothing decoded, for the receiver's host had lost the samples
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Trace:
    """One row per frame, as columns of equal length; `time_ns` (start of frame) never decreases.

    `snr_db` and `cfo_hz` are None where the receiver had no estimate. Raises TraceError when the columns do
    not fit together.
    """

    time_ns: Sequence[int]
    nbytes: Sequence[int]
    outcome: Sequence[Outcome]
    snr_db: Sequence[float | None] = field(default=())
    cfo_hz: Sequence[float | None] = field(default=())
    link: str = ""
    producer: str = ""

    def __post_init__(self) -> None:
        rows = len(self.time_ns)
        for name in ("snr_db", "cfo_hz"):
            if not getattr(self, name):
                object.__setattr__(self, name, (None,) * rows)
        for name in ("nbytes", "outcome", "snr_db", "cfo_hz"):
            if len(getattr(self, name)) != rows:
                raise TraceError(f"{name} has {len(getattr(self, name))} rows; time_ns has {rows}.")
        if any(later < earlier for earlier, later in pairwise(self.time_ns)):
            raise TraceError("time_ns goes back; sort the rows by time.")

    def __len__(self) -> int:
        return len(self.time_ns)


class TraceReplay(ErrorModel):
    """An error model that repeats a trace.

    `by="index"`: the n-th frame gets the n-th outcome. `by="time"`: a frame gets the outcome in force at its
    start, that of the latest row at or before it, and the first frame starts at the time of the first
    row; the last row is in force for the mean distance between rows. With `loop` the trace starts again at its end;
    otherwise a frame beyond the end raises TraceError. Rows with an unknown outcome are left out.

    Raises TraceError for a trace without known outcomes, or without duration when replayed by time; ValueError for
    another `by`.
    """

    def __init__(self, trace: Trace, by: Literal["index", "time"], loop: bool) -> None:
        known = [row for row, outcome in enumerate(trace.outcome) if outcome is not Outcome.UNKNOWN]
        rows = len(known)
        if not rows:
            raise TraceError("the trace has no rows; record one with at least one frame.")
        times_ns = [trace.time_ns[row] for row in known]
        first, last = times_ns[0], times_ns[-1]
        if by == "time" and first == last:
            raise TraceError("the trace has no duration; replay it by index.")
        self._by_index = by == "index"
        self._loop = loop
        self._verdicts = [_VERDICTS[trace.outcome[row]] for row in known]
        self._next = 0
        self._times = [at - first for at in times_ns]
        self._period_ns = (last - first) * rows // max(rows - 1, 1)
        self._started_at: int | None = None

    def judge(self, start: int, end: int, nbytes: int) -> Verdict:
        """Return the trace's outcome for this frame; `payload` damages the first bit behind the header.

        A frame that is all header has its last bit damaged. Raises TraceError past the end of a trace that
        does not loop.
        """
        verdict = self._verdicts[self._row(start)]
        if verdict is _PAYLOAD_HIT and nbytes <= HEADER_BYTES:
            return Verdict(Fate.DAMAGED, (8 * nbytes - 1,))
        return verdict

    def _row(self, start: int) -> int:
        if self._by_index:
            row = self._next
            if row == len(self._verdicts):
                self._check_loop()
                row = 0
            self._next = row + 1
            return row
        if self._started_at is None:
            self._started_at = start
        at = start - self._started_at
        if at >= self._period_ns:
            self._check_loop()
            at %= self._period_ns
        return bisect_right(self._times, at) - 1

    def _check_loop(self) -> None:
        if not self._loop:
            raise TraceError("the trace is used up; replay it with loop, or record a longer one.")


_VERDICTS: Final = {Outcome.OK: INTACT, Outcome.PAYLOAD: _PAYLOAD_HIT, Outcome.MISSED: ERASED}
