"""The channel trace of a run. Its times count from the run's epoch, which is known only after the first frames."""

from concurrent.futures import Executor
from pathlib import Path

from typing_extensions import override

from channel.errors import Fate, Verdict
from channel.replay import Outcome
from common.closing import Closing

_OUTCOMES = {Fate.INTACT: Outcome.OK, Fate.DAMAGED: Outcome.PAYLOAD, Fate.ERASED: Outcome.MISSED}


def outcome_of(verdict: Verdict) -> Outcome:
    """Return the fate of a modelled frame in the form of traces."""
    return _OUTCOMES[verdict.fate]


class FrameTrace(Closing):
    """Writes a channel trace; a context manager. Rows wait until `begin` gives the run's time 0.

    `aside` as in `channel/trace.py`.
    """

    def __init__(self, path: Path, *, link: str, producer: str, aside: Executor | None = None) -> None:
        # imports pyarrow, which the run's own process does without
        from channel.trace import TraceWriter

        self._writer = TraceWriter(path, link=link, producer=producer, aside=aside)
        self._epoch: int | None = None
        self._early: list[tuple[int, int, Outcome, float | None, float | None]] = []

    def write(
        self, at: int, nbytes: int, outcome: Outcome, snr_db: float | None = None, cfo_hz: float | None = None
    ) -> None:
        """Append the frame that started at `at` (CLOCK_MONOTONIC, ns)."""
        if self._epoch is None:
            self._early.append((at, nbytes, outcome, snr_db, cfo_hz))
        else:
            self._writer.write(at - self._epoch, nbytes, outcome, snr_db, cfo_hz)

    def begin(self, epoch: int) -> None:
        """Write the rows so far, and count from `epoch`. A replay by index needs the early rows, too."""
        self._epoch = epoch
        for row in self._early:
            self.write(*row)
        self._early.clear()

    @override
    def close(self) -> None:
        self._writer.close()
