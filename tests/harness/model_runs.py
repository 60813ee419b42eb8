"""What the tests of tier `model` share: small scenarios, and runs that are kept."""

import gc
import sys
from pathlib import Path
from typing import Any

from testbed.model.watch import Watch
from testbed.results.summary import Summary
from testbed.running import run_once
from testbed.scenario.schema import Scenario
from testbed.simulation import simulate
from tests.harness.scenarios import scenario


def model(**changes: Any) -> Scenario:
    return scenario(**{"tier": "model", "tcp": "sack", "trace": False, **changes})


def kept(run: Scenario, folder: Path) -> tuple[Summary, Path]:
    summary = run_once(run, folder, lambda progress: None)
    return summary, Path(str(summary.folder))


def memory_used(run: Scenario, marks_s: tuple[float, ...]) -> list[int]:
    """The octets of a run's objects when so much virtual time has passed."""
    memory = Memory(marks_s)
    before = held()
    simulate(run, memory)
    return [used - before for used in memory.used]


def held() -> int:
    """The octets of all objects but those from before the tests (`gc.freeze`).

    Of what the collector does not track, as numbers and octets, those count that a tracked object refers to.
    tracemalloc sees the same leaks and takes four times as long.
    """
    gc.collect()
    tracked = gc.get_objects()
    others = {id(each): each for item in tracked for each in gc.get_referents(item) if not gc.is_tracked(each)}
    return sum(map(sys.getsizeof, tracked)) + sum(map(sys.getsizeof, others.values()))


class Memory(Watch):
    """A watch that looks at the memory in use when so much virtual time has passed."""

    def __init__(self, marks_s: tuple[float, ...]) -> None:
        self._marks_ns = [int(mark_s * 1e9) for mark_s in marks_s]
        self.used: list[int] = []

    def delivered(self, flow: str, nbytes: int, now: int) -> None:
        if self._marks_ns and now >= self._marks_ns[0]:
            self._marks_ns.pop(0)
            self.used.append(held())
