"""Many calls on several processes, their answers in order.

Rules kept
- The answers do not depend on how many processes there are, nor on which of them did what.
- A process lives for many calls; one that dies, or a call that raises, ends them all.
- Only this process handles Ctrl-C: the others are started with it blocked, and end with this one.

Left out: other machines.
"""

import os
import pickle
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, TypeVar

from testbed.errors import FadelabError

Task = TypeVar("Task")
Answer = TypeVar("Answer")

#: how soon a Ctrl-C that comes just before a wait is noticed at the latest
_INTERRUPT_S = 0.2
_KILLED = "a worker process was killed: see that there is memory enough, or use fewer with --workers"


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
    error of a call (with the far traceback as a note), and WorkerError when a process is killed.
    """
    workers = min(workers, len(tasks))
    if workers <= 1:
        return [_and_tell(call(task), task, done) for task in tasks]
    answers: dict[int, Answer] = {}
    waiting = deque(enumerate(tasks))
    busy: dict[Connection, int] = {}
    with _started(call, workers) as pipes:
        for pipe in pipes:
            index, task = waiting.popleft()
            _ask(pipe, task)
            busy[pipe] = index
        while busy:
            for ready in wait(list(busy), _INTERRUPT_S):
                assert isinstance(ready, Connection)
                index = busy.pop(ready)
                answers[index] = _received(ready)
                done(tasks[index])
                if waiting:
                    index, task = waiting.popleft()
                    _ask(ready, task)
                    busy[ready] = index
    return [answers[index] for index in range(len(tasks))]


def _and_tell(answer: Answer, task: Task, done: Callable[[Task], None]) -> Answer:
    done(task)
    return answer


def _ask(pipe: Connection, task: Any) -> None:
    try:
        pipe.send(task)
    except OSError:
        raise WorkerError(_KILLED) from None


def _received(pipe: Connection) -> Any:
    try:
        answer, error = pipe.recv()
    except (EOFError, OSError):
        raise WorkerError(_KILLED) from None
    if error is not None:
        raise error
    return answer


@contextmanager
def _started(call: Callable[[Task], Answer], workers: int) -> Iterator[list[Connection]]:
    """Yield the pipes of processes that answer on one each, and end the processes."""
    context = get_context("spawn")
    pipes: list[Connection] = []
    processes: list[SpawnProcess] = []
    # it unblocks Ctrl-C when it starts, so it has to be there before
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        try:
            for _ in range(workers):
                ours, theirs = context.Pipe()
                process = context.Process(target=_work, args=(theirs, call), daemon=True)
                process.start()
                theirs.close()
                pipes.append(ours)
                processes.append(process)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        yield pipes
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()
        for pipe in pipes:
            pipe.close()


def _work(pipe: Connection, call: Callable[[Task], Answer]) -> None:
    """Answer until the pipe is closed."""
    with suppress(EOFError, OSError):
        while True:
            task = pipe.recv_bytes()
            answer, failure = None, None
            try:
                answer = call(pickle.loads(task))
            except Exception as error:
                error.add_note("in a worker process:\n" + "".join(traceback.format_exception(error)))
                failure = error
            pipe.send((answer, failure))
