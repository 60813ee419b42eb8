"""Many calls on several processes, their answers in order.

Rules kept
- The answers do not depend on how many processes there are, nor on which of them did what.
- A process lives for many calls; one that dies, or a call that raises, ends them all.
- Only this process handles Ctrl-C: the others are started with it blocked, and end with this one.

Left out: other machines.
"""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context, resource_tracker
from typing import TypeVar

from testbed.errors import FadelabError

Task = TypeVar("Task")
Answer = TypeVar("Answer")

#: how soon a Ctrl-C that comes just before a wait is noticed at the latest
_INTERRUPT_S = 0.2


class WorkerError(FadelabError):
    """A process ended before its work did."""


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


def call_all(
    call: Callable[[Task], Answer],
    tasks: Sequence[Task],
    *,
    workers: int,
    done: Callable[[Task], None] = lambda task: None,
) -> list[Answer]:
    """Return `call(task)` for every task, in the order of the tasks; `done` hears of each as it ends.

    With one worker everything happens in this process. With more, `call`, tasks and answers are pickled. Raises the
    error of a call (with the far traceback as its cause), and WorkerError when a process is killed.
    """
    workers = min(workers, len(tasks))
    if workers <= 1:
        answers = []
        for task in tasks:
            answers.append(call(task))
            done(task)
        return answers
    pool, others = ProcessPoolExecutor(workers, get_context("spawn")), set(active_children())
    try:
        with _without_interrupts():
            task_of = {pool.submit(call, task): task for task in tasks}
        running = set(task_of)
        while running:
            ended, running = wait(running, _INTERRUPT_S, FIRST_COMPLETED)
            for future in ended:
                future.result()
                done(task_of[future])
        return [future.result() for future in task_of]
    except BrokenProcessPool:
        raise WorkerError(
            "a worker process was killed: see that there is memory enough, or use fewer with --workers"
        ) from None
    finally:
        for process in set(active_children()) - others:
            process.terminate()
        pool.shutdown(cancel_futures=True)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block Ctrl-C in the processes started here."""
    # it unblocks Ctrl-C when it starts, so it has to be there before
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
