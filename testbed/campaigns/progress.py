"""How far a campaign is, for the terminal and, in `progress.json`, for other programs such as the dashboard.

Rules kept
- The file is there while the campaign's command runs, whole at any moment, and at most a second old in writing. A
  command that was killed leaves it behind: the lock of the folder tells whether one runs.
- The estimate takes runs of tier `model` and real-time runs apart: the former share workers.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from testbed.campaigns.engine import Status
from testbed.campaigns.folder import PROGRESS
from testbed.results.whole_files import write_whole

#: seconds between two files
INTERVAL_S = 1.0


@dataclass(frozen=True, slots=True)
class Report:
    """How far a campaign is."""

    name: str
    ended: int
    #: planned so far; a stopping rule may ask for more
    planned: int
    failed: int
    #: of this session
    runs_per_s: float | None
    elapsed_s: float
    #: until all planned runs have ended; None: not known yet
    left_s: float | None
    #: the real-time run that is under way
    run: str
    run_elapsed_s: float | None
    run_goodput_bps: float | None


class Reporter:
    """Makes reports of a session that began at `began`, and keeps the newest in a file. Times: s, of one clock."""

    def __init__(self, name: str, folder: Path, began: float) -> None:
        self._name = name
        self._path = folder / PROGRESS
        self._began = began
        self._written_at = -INTERVAL_S
        #: of runs that ended in this session, by kind: their number, and the time until the last of them ended
        self._ended: dict[bool, int] = {False: 0, True: 0}
        self._busy_s: dict[bool, float] = {False: 0.0, True: 0.0}
        self._looked_at = began

    def report(self, status: Status, now: float) -> Report:
        """Take a status; return the report, and write it if the file is old."""
        for real_time, ended in status.made.items():
            if ended > self._ended[real_time]:
                self._ended[real_time] = ended
                self._busy_s[real_time] += now - self._looked_at
                self._looked_at = now
        made, elapsed = sum(self._ended.values()), now - self._began
        progress = status.progress
        found = Report(
            name=self._name,
            ended=status.ended,
            planned=status.planned,
            failed=status.failed,
            runs_per_s=made / elapsed if made and elapsed else None,
            elapsed_s=elapsed,
            left_s=self._left_s(status.left),
            run=status.run,
            run_elapsed_s=None if progress is None else progress.elapsed_s,
            run_goodput_bps=None if progress is None else progress.goodput_bps,
        )
        if now >= self._written_at + INTERVAL_S:
            self._written_at = now
            # a full disk is the campaign's to report
            with suppress(OSError):
                write_whole(self._path, (json.dumps(asdict(found)) + "\n").encode())
        return found

    def remove(self) -> None:
        """Remove the file: the command ends."""
        self._path.unlink(missing_ok=True)

    def _left_s(self, left: Mapping[bool, int]) -> float | None:
        """Return the time that the rest will take, by that of the runs that ended; None where a kind has none."""
        total = 0.0
        for real_time, runs in left.items():
            if runs and not self._ended[real_time]:
                return None
            if runs:
                total += runs * self._busy_s[real_time] / self._ended[real_time]
        return total
