"""What the tests of tier `model` share: small scenarios, and runs that are kept."""

import gc
import tracemalloc
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
    """The octets Python has allocated in a run when so much virtual time has passed."""
    memory = Memory(marks_s)
    tracemalloc.start()
    try:
        simulate(run, memory)
    finally:
        tracemalloc.stop()
    return memory.used


class Memory(Watch):
    """A watch that looks at the memory in use when so much virtual time has passed."""

    def __init__(self, marks_s: tuple[float, ...]) -> None:
        self._marks_ns = [int(mark_s * 1e9) for mark_s in marks_s]
        self.used: list[int] = []

    def delivered(self, flow: str, nbytes: int, now: int) -> None:
        if self._marks_ns and now >= self._marks_ns[0]:
            self._marks_ns.pop(0)
            # how much waits for the collector depends on the tests before
            gc.collect()
            self.used.append(tracemalloc.get_traced_memory()[0])
