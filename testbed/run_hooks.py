"""The progress of a run, and the hooks by which a database or a dashboard takes part in it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from hosts.workloads import Workload
from telemetry.records import FlowRecord, Record, TcpRecord
from telemetry.sinks import Sink
from telemetry.views import PhyView
from testbed.results.rates import RecentRate
from testbed.results.summary import Summary

if TYPE_CHECKING:
    from testbed.steering import Steering


@dataclass(slots=True)
class Progress:
    """The state of a run, for a progress display."""

    phase: str = "setting up"
    elapsed_s: float = 0.0
    #: duration of the run, if known
    expected_s: float | None = None
    bytes_received: int = 0
    bytes_expected: int | None = None
    #: mean over the last second, all flows together
    goodput_bps: float = 0.0
    cwnd_bytes: int | None = None

    @classmethod
    def of(cls, works: Sequence[Workload]) -> "Progress":
        """Return the progress before a run: its duration where no workload ends by size, its bytes where all do."""
        ends = [work.ends_s for work in works if work.ends_s is not None]
        sizes = [work.payload_bytes for work in works if work.payload_bytes is not None]
        return cls(
            expected_s=max(ends) if len(ends) == len(works) else None,
            bytes_expected=sum(sizes) if len(sizes) == len(works) else None,
        )


Show = Callable[[Progress], None]


class ProgressMeter:
    """Keeps the progress of a run from the records of its hosts, and shows it."""

    def __init__(self, works: Sequence[Workload], show: Show) -> None:
        self._progress = Progress.of(works)
        self._call = show
        #: payload octets by flow
        self._received: dict[str, int] = {}
        self._goodput = RecentRate()

    def handle(self, record: Record) -> None:
        """Take a record."""
        if isinstance(record, TcpRecord):
            self._progress.cwnd_bytes = record.cwnd_bytes
        elif isinstance(record, FlowRecord):
            self._received[record.flow] = record.bytes_received
            self._goodput.add(record.time_ns / 1e9, sum(self._received.values()))

    def show(self, phase: str | None = None, elapsed_s: float | None = None) -> None:
        """Show the progress, with a new phase and time where they are given."""
        progress = self._progress
        progress.phase = progress.phase if phase is None else phase
        progress.elapsed_s = progress.elapsed_s if elapsed_s is None else elapsed_s
        progress.bytes_received = sum(self._received.values())
        progress.goodput_bps = self._goodput.bps
        self._call(progress)


class ViewSink(Protocol):
    """Takes the views of a run's radios."""

    @property
    def watched(self) -> bool:
        """Whether views are wanted at present."""

    def show(self, view: PhyView) -> None:
        """Take a view."""


@dataclass(frozen=True, slots=True)
class RunHooks:
    """Additions to a run: sinks for its records, a sink for views of its radios, live controls, and a callback."""

    sinks: Sequence[Sink] = ()
    view_sink: ViewSink | None = None
    steering: "Steering | None" = None
    #: called at the end with the summary, or with the error
    ended: Callable[[Summary | None, str | None], None] = lambda summary, error: None
    #: called when all processes of the run are ready, before its time 0; may wait, so that runs begin together
    ready: Callable[[], None] = lambda: None


NO_HOOKS = RunHooks()
