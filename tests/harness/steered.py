"""A run in a thread that a test steers while it goes on, and looks at."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from telemetry.records import FlowRecord, LinkRecord, Record
from telemetry.views import PhyView
from testbed.results.summary import Summary
from testbed.run_hooks import RunHooks
from testbed.running import run_once
from testbed.scenario.schema import Scenario
from testbed.steering import Steering
from tests.harness.waiting import wait_for

#: a transfer that somebody has to end
ENDLESS = [{"kind": "bulk", "duration_s": 600}]


class RecordingSink:
    """A sink for records and views of one run that keeps everything, and begins and ends once."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.views: list[PhyView] = []
        self.epoch_ns = 0
        self.closed = False
        self.watched = False

    def begin(self, epoch_ns: int) -> None:
        assert not self.epoch_ns
        assert not self.records
        self.epoch_ns = epoch_ns

    def write(self, record: Record) -> None:
        self.records.append(record)

    def close(self) -> None:
        assert not self.closed
        self.closed = True

    def show(self, view: PhyView) -> None:
        self.views.append(view)

    def links(self, side: str = "up") -> list[LinkRecord]:
        return [r for r in self.records if isinstance(r, LinkRecord) and r.link == side]

    def corrupted(self) -> int:
        """Frames of the data direction that the channel has damaged or erased."""
        losses = self.links()[-1].corruption_losses
        assert losses is not None
        return losses

    def received(self) -> int:
        flows = [r for r in self.records if isinstance(r, FlowRecord)]
        return flows[-1].bytes_received if flows else 0


class Drive:
    """A run in a thread, with a hand on its controls; a context manager, which ends it."""

    def __init__(self, scenario: Scenario, runs: Path) -> None:
        self.sink = RecordingSink()
        self.steering = Steering(scenario)
        self.outcomes: list[tuple[Summary | None, str | None]] = []
        hooks = RunHooks([self.sink], self.sink, self.steering, lambda *outcome: self.outcomes.append(outcome))
        self._pool = ThreadPoolExecutor(1)
        self._run = self._pool.submit(run_once, scenario, runs, lambda progress: None, lambda scenario, folder: hooks)

    def until(self, what: Callable[[], Any]) -> None:

        def happened() -> bool:
            assert not self._run.done(), self._run.result()
            return bool(what())

        wait_for(happened)

    def grows(self, count: Callable[[], int], by: int) -> None:
        before = count()
        self.until(lambda: count() >= before + by)

    def end(self) -> Summary:
        self.steering.stop()
        return self._run.result(60)

    def __enter__(self) -> "Drive":
        return self

    def __exit__(self, *_: object) -> None:
        self.steering.stop()
        self._pool.shutdown()
