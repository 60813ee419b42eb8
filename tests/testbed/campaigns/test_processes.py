"""Calls on workers that die."""

from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from typing_extensions import override

from testbed.campaigns.processes import WorkerError, Workers, call_all, carry_out


class Dying(Workers):
    """Calls `kill` end their process, and with it the call `beside`, which does nothing wrong."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.revived = 0

    @property
    @override
    def room(self) -> int:
        return 3

    @override
    def submit(self, call: Any, task: Any) -> "Future[Any]":
        self.calls.append(task)
        future: Future[Any] = Future()
        if task == "kill" or (task == "beside" and self.calls.count(task) == 1):
            future.set_exception(BrokenProcessPool())
        else:
            future.set_result(call(task))
        return future

    @override
    def revive(self) -> None:
        self.revived += 1

    @override
    def close(self) -> None:
        pass


def test_only_the_call_that_dies_alone_fails() -> None:
    workers, waiting = Dying(), iter(["one", "kill", "beside", "two", "three"])
    ends = {task: future.exception() for task, future in carry_out(workers, str.upper, lambda: next(waiting, None))}
    assert isinstance(ends.pop("kill"), WorkerError)
    assert ends == dict.fromkeys(("one", "beside", "two", "three"))
    # both suspects again, alone, before new calls
    assert sorted(workers.calls[:3]) == ["beside", "kill", "one"]
    assert sorted(workers.calls[3:5]) == ["beside", "kill"]
    assert (workers.calls[5:], workers.revived) == (["two", "three"], 2)


def test_one_worker_or_one_call_needs_no_process() -> None:
    ended: list[tuple[Any, Any]] = []
    assert call_all(len, ["a", "bc"], workers=1, done=lambda *end: ended.append(end)) == [1, 2]
    assert ended == [("a", 1), ("bc", 2)]
    # a function of this test alone could not be pickled
    assert call_all(lambda task: task, ["a"], workers=4) == ["a"]
    assert call_all(len, [], workers=4) == []
