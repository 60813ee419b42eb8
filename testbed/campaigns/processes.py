"""Many calls on several processes.

Rules kept
- The answers do not depend on how many processes there are, nor on which of them did what.
- A process lives for many calls. The death of a process costs the calls under way, which are made again, one at a
  time: a call that is alone when its process dies is the culprit, and fails.
- Only this process handles Ctrl-C: the others are started with it blocked, and end with this one, killed or not.
"""

import ctypes
import os
import signal
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import active_children, get_context, resource_tracker
from typing import Any, TypeVar

from typing_extensions import override

from common import signals
from common.closing import Closing
from testbed.errors import FadelabError

Task = TypeVar("Task")
Answer = TypeVar("Answer")

#: how soon a Ctrl-C that comes just before a wait is noticed at the latest
_INTERRUPT_S = 0.2
#: calls under way or waiting, per worker: no worker waits for this process
_AHEAD = 3
#: Linux's prctl(2): the signal that a process gets when its parent dies
_PR_SET_PDEATHSIG = 1


class WorkerError(FadelabError):
    """A process ended before its work did."""


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


class Workers(Closing):
    """Makes calls elsewhere; `call`, task and answer are pickled. Closing gives up all calls under way."""

    @property
    @abstractmethod
    def room(self) -> int:
        """How many calls it wants under way."""

    @abstractmethod
    def submit(self, call: Callable[[Task], Answer], task: Task) -> "Future[Answer]":
        """Begin a call; its future may raise BrokenProcessPool."""

    @abstractmethod
    def revive(self) -> None:
        """Be usable again after a future has raised BrokenProcessPool."""


class Processes(Workers):
    """Workers: processes of this machine."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._others = set(active_children())
        self.revive()

    @property
    @override
    def room(self) -> int:
        return _AHEAD * self._count

    @override
    def submit(self, call: Callable[[Task], Answer], task: Task) -> "Future[Answer]":
        try:
            # it unblocks Ctrl-C when it starts, so it has to be there before
            resource_tracker.ensure_running()
            with signals.waiting(signal.SIGINT):
                return self._pool.submit(call, task)
        except BrokenProcessPool as error:
            lost: Future[Answer] = Future()
            lost.set_exception(error)
            return lost

    @override
    def revive(self) -> None:
        context = get_context("spawn")
        self._pool = ProcessPoolExecutor(self._count, context, initializer=_end_with_parent, initargs=(os.getpid(),))

    @override
    def close(self) -> None:
        for process in set(active_children()) - self._others:
            process.terminate()
        self._pool.shutdown(cancel_futures=True)


def carry_out(
    workers: Workers, call: Callable[[Task], Answer], poll_task: Callable[[], Task | None]
) -> Iterator[tuple[Task, "Future[Answer]"]]:
    """Make a call for each task that `poll_task` returns; yield each task with its future as it ends.

    `poll_task` returns None while there is no task. It is asked again after each end, and no more when it has none and
    no call is under way. A future raises the call's error, or WorkerError when the call has killed its process.
    """
    running: dict[Future[Any], Task] = {}
    #: calls that were under way when a process died
    suspects: deque[Task] = deque()
    while True:
        if suspects:
            if not running:
                task = suspects.popleft()
                running[workers.submit(call, task)] = task
        else:
            while len(running) < workers.room and (new := poll_task()) is not None:
                running[workers.submit(call, new)] = new
        if not running:
            return
        alone = len(running) == 1
        ended, _ = wait(running, _INTERRUPT_S, FIRST_COMPLETED)
        if any(map(_is_lost, ended)):
            # the other calls on these processes end now, too
            ended, _ = wait(running)
            workers.revive()
        for future in ended:
            task = running.pop(future)
            if alone or not _is_lost(future):
                yield task, _explained(future)
            else:
                suspects.append(task)


def _is_lost(future: "Future[Any]") -> bool:
    return isinstance(future.exception(), BrokenProcessPool)


def _explained(future: "Future[Answer]") -> "Future[Answer]":
    """Return the future; one whose process died has a WorkerError."""
    if not _is_lost(future):
        return future
    explained: Future[Answer] = Future()
    explained.set_exception(
        WorkerError("a worker process was killed: see that there is memory enough, or use fewer with --workers")
    )
    return explained


def call_all(
    call: Callable[[Task], Answer],
    tasks: Sequence[Task],
    *,
    workers: int,
    done: Callable[[Task, Answer], None] = lambda task, answer: None,
) -> list[Answer]:
    """Return `call(task)` for every task, in the order of the tasks; `done` gets each with its answer as it ends.

    With one worker everything happens in this process. Raises the error of a call (with the far traceback as its
    cause), and WorkerError when a call kills its process.
    """
    workers = min(workers, len(tasks))
    answers: dict[int, Answer] = {}
    if workers <= 1:
        for index, task in enumerate(tasks):
            answers[index] = call(task)
            done(task, answers[index])
    else:
        waiting = iter(enumerate(tasks))
        with Processes(workers) as processes:
            for (index, task), future in carry_out(processes, partial(_answer, call), lambda: next(waiting, None)):
                answers[index] = future.result()
                done(task, answers[index])
    return [answers[index] for index in range(len(tasks))]


def _answer(call: Callable[[Task], Answer], numbered: tuple[int, Task]) -> Answer:
    return call(numbered[1])


def _end_with_parent(parent: int) -> None:
    """Let the kernel kill this process when its parent dies: a killed parent cannot end it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
