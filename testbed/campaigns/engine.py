"""Carries out a campaign: the plan's runs on workers, their results into the folder.

Rules kept
- The result files do not depend on workers, interruptions or the order of ends.
- All runs have the same sources; runs of others, and an edit under way, end the command with one line.
- Runs of tier `model` share all workers. Real-time runs follow, one at a time, in this process: nothing of the campaign
  runs beside them, and Ctrl-C ends them as it ends `run`.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass

from testbed.campaigns.executing import Parcel, Task, execute, execute_afar, failed, task_of, unpack
from testbed.campaigns.file import CampaignError
from testbed.campaigns.folder import CampaignFolder
from testbed.campaigns.plan import Run
from testbed.campaigns.processes import Workers, carry_out
from testbed.campaigns.rows import Row
from testbed.campaigns.schedule import Schedule
from testbed.errors import is_of_disk
from testbed.run_hooks import Progress
from testbed.sources import SourcesError, require_unchanged


@dataclass(frozen=True, slots=True)
class Status:
    """How far a campaign is."""

    ended: int
    #: planned so far; a stopping rule may ask for more
    planned: int
    failed: int
    #: runs that ended in this session, and planned runs that have not: on tier `model` (False), in real time (True)
    made: Mapping[bool, int]
    left: Mapping[bool, int]
    #: a real-time run that is under way, and its progress
    run: str = ""
    progress: Progress | None = None


def run_campaign(
    folder: CampaignFolder,
    make_workers: Callable[[], Workers],
    *,
    afar: bool = False,
    retry: bool = False,
    allow_late: bool = False,
    show: Callable[[Status], None] = lambda status: None,
    look: Callable[[Schedule], None] = lambda schedule: None,
) -> list[tuple[Run, Row]]:
    """Make all runs that have not ended yet, and return all, in the plan's order.

    `make_workers` is called if there are runs for them. `afar`: they may have no access to the folder. `retry`: runs
    that failed are made again. `look` gets the schedule at the begin and after the end of each run.
    """
    session = _Session(folder, retry, allow_late, show, look)
    try:
        try:
            session.work(make_workers, afar)
        finally:
            folder.finish(session.schedule.rows(), complete=session.complete)
    except OSError as error:
        if is_of_disk(error):
            line = f"{folder.path}: the disk takes no more ({error.strerror}): make room, and the same command goes on"
            raise CampaignError(line) from None
        raise
    return list(session.schedule.rows())


class _Session:
    """One execution of a campaign, from its beginning or where an earlier one ended."""

    def __init__(
        self,
        folder: CampaignFolder,
        retry: bool,
        allow_late: bool,
        show: Callable[[Status], None],
        look: Callable[[Schedule], None],
    ) -> None:
        self._folder = folder
        self._allow_late = allow_late
        self._show = show
        self._look = look
        self.schedule = Schedule(folder.plan, folder.known(retry=retry))
        self._made = {False: 0, True: 0}
        self._failed = sum(row.status == "failed" for _, row in self.schedule.rows())

    @property
    def complete(self) -> bool:
        return self.schedule.ended == self.schedule.planned

    def work(self, make_workers: Callable[[], Workers], afar: bool) -> None:
        self._tell()
        self._look(self.schedule)
        if not self.complete:
            self._folder.hold_sources(row for _, row in self.schedule.rows())
        while not self.complete:
            if (run := self.schedule.poll(real_time=False)) is not None:
                with closing(make_workers()) as workers:
                    self._share(run, workers, afar)
            while (run := self.schedule.poll(real_time=True)) is not None:
                self._make_here(run)

    def _share(self, first: Run, workers: Workers, afar: bool) -> None:
        """Let workers make runs until there are none left for them."""
        runs = {first.name: first}
        waiting = [first]

        def poll() -> Task | None:
            run = waiting.pop() if waiting else self.schedule.poll(real_time=False)
            if run is None:
                return None
            runs[run.name] = run
            return self._task(run)

        call: Callable[[Task], Row | Parcel] = execute_afar if afar else execute
        for task, future in carry_out(workers, call, poll):
            self._end(runs.pop(task.run), _row(task, future))

    def _make_here(self, run: Run) -> None:
        def show(progress: Progress) -> None:
            self._tell(run.name, progress)

        self._end(run, execute(self._task(run), show))

    def _task(self, run: Run) -> Task:
        folder = self._folder
        require_unchanged()
        return task_of(run, folder.plan.campaign, folder.path, folder.incoming, allow_late=self._allow_late)

    def _end(self, run: Run, row: Row) -> None:
        self._folder.add(row)
        self._failed += row.status == "failed"
        self._made[run.point.real_time] += 1
        self.schedule.handle_row(run, row)
        self._tell()
        self._look(self.schedule)

    def _tell(self, run: str = "", progress: Progress | None = None) -> None:
        schedule = self.schedule
        self._show(
            Status(schedule.ended, schedule.planned, self._failed, dict(self._made), schedule.left, run, progress)
        )


def _row(task: Task, future: "Future[Row | Parcel]") -> Row:
    """Return the row of a run that workers have made; one that killed its worker has failed."""
    error = future.exception()
    if isinstance(error, SourcesError) or (error is not None and is_of_disk(error)):
        raise error
    if error is not None:
        return failed(task.run, error)
    answer = future.result()
    return unpack(answer, task) if isinstance(answer, Parcel) else answer
