"""The channel trace of a run. Its times count from an epoch that comes later than the first frames."""

from pathlib import Path
from types import TracebackType
from typing import Self

from channel.errors import Fate, Verdict
from channel.replay import Outcome

_OUTCOMES = {Fate.INTACT: Outcome.OK, Fate.DAMAGED: Outcome.PAYLOAD, Fate.ERASED: Outcome.MISSED}


def outcome_of(verdict: Verdict) -> Outcome:
    """Return the outcome in a trace for a modelled frame's fate."""
    return _OUTCOMES[verdict.fate]


class FrameTrace:
    """Writes a channel trace; a context manager. Rows wait until `begin` says when the run's time 0 is."""

    def __init__(self, path: Path, *, link: str, producer: str) -> None:
        # pyarrow behind it: not for the run's own process, which imports the station's module too
        from channel.trace import TraceWriter

        self._writer = TraceWriter(path, link=link, producer=producer)
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
        """Count from `epoch`; a replay by index repeats every verdict only if the early ones are there, too."""
        self._epoch = epoch
        for row in self._early:
            self.write(*row)
        self._early.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()
