"""Tier `model`: a scenario in virtual time.

Rules kept here: the same scenario and seed give the same result and, in a folder, the same files to the byte, whatever
else the machine does; the wall clock is read for progress alone. A request that this tier
cannot fulfil is refused; no TCP stands in for another.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final

from channel.hop import Arrival
from common.sides import SIDES, Side, other
from common.units import MS
from hosts.engine.agent import Report
from hosts.engine.clock import OBSERVER
from hosts.engine.context import ignore
from linklayer.station_counts import Lateness, StationFinal, StationReport
from telemetry.parquet import ParquetSink
from telemetry.records import FlowRecord, Record, TcpRecord
from telemetry.sinks import Sinks
from testbed.errors import FadelabError
from testbed.model.network import LinkNetwork
from testbed.model.traffic import Traffic
from testbed.model.watch import Watch
from testbed.results.frame_trace import FrameTrace, outcome_of
from testbed.results.rates import RecentRate
from testbed.results.store import RunFolder
from testbed.results.summary import Summary, joined_record, summarize
from testbed.run_hooks import NO_HOOKS, Progress, RunHooks, Show
from testbed.scenario.plan import Plan
from testbed.tiers import names_of

#: least time between two progress displays
_SHOW_S: Final = 0.05

Begun = Callable[[LinkNetwork, Traffic], None]


def run_model(
    plan: Plan,
    folder: RunFolder,
    show: Show = lambda progress: None,
    hooks: RunHooks = NO_HOOKS,
) -> Summary:
    """Make the run of a plan in virtual time and return its result, which is also in `folder` with records and traces.

    No file of the folder but the manifest depends on time or place. Closes the observers' sinks.
    Raises FadelabError in one line.
    """
    check_model(plan)
    with ExitStack() as stack:
        parquet = ParquetSink(folder.path, {"run": plan.stem, "tier": plan.tier.name, "scenario": plan.name})
        sinks = Sinks([parquet, *hooks.sinks])
        stack.callback(sinks.close)
        # a database needs wall-clock times; the files must repeat to the byte and have none
        Sinks(hooks.sinks).begin(time.time_ns())
        traces = _Traces(plan, folder, stack) if plan.trace else None
        recorder = _Recorder(plan, sinks, show)
        summary = Simulation(plan, recorder=recorder, traces=traces).run()
    folder.finish(summary)
    return replace(summary, run=folder.name, folder=str(folder.path))


def check_model(plan: Plan) -> None:
    """Raise FadelabError when the plan has something that tier `model` cannot do."""
    tier = plan.tier
    if not tier.simulated:
        raise FadelabError(f"tier {tier.name} is not virtual time: set tier to {names_of(simulated=True)}")
    if plan.capture and not tier.octets:
        raise FadelabError(
            f"capture: frames have no octets on tier {tier.name}: set capture to false, or run --tier emulated"
        )
    for work in plan.workloads:
        if work.largest_packet_bytes is not None and work.largest_packet_bytes > plan.mtu_bytes:
            raise FadelabError(
                f"flow {work.flow}: packet_bytes {work.largest_packet_bytes} is more than the mtu of {plan.mtu_bytes}: "
                f"tier {tier.name} has no IP fragments"
            )


class Simulation:
    """One run, from the link coming up to the summary.

    `watch` gets the TCP segments and frames. `begun` is called at the run's time 0, with the network and the traffic.
    Raises FadelabError in one line for a plan that virtual time cannot fulfil.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        watch: Watch | None = None,
        begun: Begun = lambda network, traffic: None,
        recorder: "_Recorder | None" = None,
        traces: "_Traces | None" = None,
    ) -> None:
        check_model(plan)
        self._plan = plan
        self._watch = watch
        self._begun = begun
        self._recorder = recorder
        self._traces = traces
        self._epoch = 0
        self._network = LinkNetwork(plan, self._on_arrival if traces is not None or watch is not None else None)
        self._main = plan.main
        #: bits sent on the air over time (s): at the instants the result asks for
        self._sent_bits: dict[Side, list[tuple[float, float]]] = {side: [] for side in SIDES}

    def run(self) -> Summary:
        plan, network, recorder, clock = self._plan, self._network, self._recorder, self._network.clock
        self._epoch = epoch = network.bring_up()
        clock.run(until=epoch)
        before = {side: network.stations[side].arrivals for side in SIDES}
        if self._traces is not None:
            self._traces.begin(epoch)
        traffic = Traffic(
            network.hosts,
            plan.workloads,
            {host: each.config for host, each in plan.hosts.items() if each.config is not None},
            seed=plan.seed,
            epoch=epoch,
            ended=self._ended,
            emit=ignore if recorder is None else recorder.emit,
            watch=self._watch,
        )
        self._traffic = traffic
        for work in plan.workloads:
            if work.direction == self._main:
                for seconds in (work.start_s, work.start_s + (getattr(work, "duration_s", None) or 0.0)):
                    clock.at(epoch + int(seconds * 1e9), self._mark, None, OBSERVER)
        if recorder is not None:
            recorder.begin(network, traffic, epoch)
        self._begun(network, traffic)
        clock.run(until=epoch + round(plan.limit_s * 1e9))
        until_ns = clock.now - epoch
        self._mark(None)
        traffic.stop()
        if recorder is not None:
            recorder.end()
        if self._traces is not None:
            self._traces.end(network)
        finals = {
            side: StationFinal(
                counts=network.counts(side), lateness=Lateness(network.stations[side].arrivals - before[side])
            )
            for side in SIDES
        }
        return summarize(
            plan,
            run=plan.stem,
            folder=None,
            reports=traffic.reports,
            finals=finals,
            sent_bits=self._sent_bits,
            until_s=until_ns / 1e9,
            changes=0,
            confusion={} if network.guess_score is None else network.guess_score.confusion(),
            split=None if network.splitter is None else network.splitter.counters(),
        )

    def _on_arrival(self, side: Side, arrival: Arrival[Any]) -> None:
        """Pass a frame and its fate to the traces and the watch."""
        if self._traces is not None:
            self._traces.on_arrival(side, arrival)
        if self._watch is not None:
            self._watch.carried(side, arrival, arrival.arrived_at - self._epoch)

    def _ended(self, report: Report) -> None:
        """Note the end of a transfer; the last one ends the run, when everything else of its instant is done."""
        clock = self._network.clock
        clock.at(clock.now, self._mark, None, OBSERVER)
        if self._traffic.done:
            clock.at(clock.now, lambda _: clock.stop(), None, OBSERVER)

    def _mark(self, _: object) -> None:
        """Note the bits that the main direction's transmitter has sent so far."""
        now_s = (self._network.clock.now - self._epoch) / 1e9
        self._sent_bits[self._main].append((now_s, 8.0 * self._network.stations[self._main].hop.bytes))


class _Recorder:
    """The records of a run, every `probe_interval_ms` of virtual time, and its progress."""

    def __init__(self, plan: Plan, sinks: Sinks, show: Show) -> None:
        self._scheme = plan.scheme.name
        self._interval_ns = plan.probe_interval_ms * MS
        self._write = sinks.write
        self._show = show
        self._progress = Progress.of(plan.workloads)
        self._shown_at = 0.0
        self._last: dict[Side, tuple[int, int, int]] = {}
        self._received: dict[str, int] = {}
        self._goodput = RecentRate()

    def emit(self, record: Record) -> None:
        """Take a record of a host."""
        if isinstance(record, TcpRecord):
            self._progress.cwnd_bytes = record.cwnd_bytes
        elif isinstance(record, FlowRecord):
            self._received[record.flow] = record.bytes_received
            self._goodput.add(record.time_ns / 1e9, sum(self._received.values()))
        self._write(record)

    def begin(self, network: LinkNetwork, traffic: Traffic, epoch: int) -> None:
        """Begin with the run's time 0, which is now."""
        self._network, self._traffic, self._epoch = network, traffic, epoch
        self._progress.phase = "running"
        self._last = {side: (0, *self._sent(side)) for side in SIDES}
        network.clock.at(epoch, self._tick, None, OBSERVER)

    def end(self) -> None:
        """Write the last records."""
        self._sample()
        self._progress.phase = "finishing"
        self._show(self._progress)

    def _tick(self, _: object) -> None:
        clock = self._network.clock
        self._sample()
        clock.at(clock.now + self._interval_ns, self._tick, None, OBSERVER)
        wall_s = time.monotonic()
        if wall_s - self._shown_at >= _SHOW_S:
            self._shown_at = wall_s
            progress = self._progress
            progress.elapsed_s = (clock.now - self._epoch) / 1e9
            progress.bytes_received = self._traffic.nbytes
            progress.goodput_bps = self._goodput.bps
            self._show(progress)

    def _sample(self) -> None:
        self._traffic.sample()
        now = self._network.clock.now - self._epoch
        reports: dict[Side, StationReport] = {}
        for side in SIDES:
            last_at, last_sent, last_useful = self._last[side]
            if now <= last_at:
                return
            sent, useful = self._sent(side)
            self._last[side] = (now, sent, useful)
            reports[side] = StationReport(
                time_ns=now,
                scheme=self._scheme,
                established=self._network.stations[side].link.established,
                throughput_bps=(sent - last_sent) * 8e9 / (now - last_at),
                goodput_bps=(useful - last_useful) * 8e9 / (now - last_at),
                counts=self._network.counts(side),
            )
        for side in SIDES:
            self._write(joined_record(side, reports[side], reports[other(side)].counts))

    def _sent(self, side: Side) -> tuple[int, int]:
        station = self._network.stations[side]
        return station.hop.bytes, station.link.counters().useful_bytes


class _Traces:
    """The channel traces of both directions."""

    def __init__(self, plan: Plan, folder: RunFolder, stack: ExitStack) -> None:
        self._hops = {side: station.hop for side, station in plan.stations.items()}
        self._traces = {
            side: stack.enter_context(
                FrameTrace(folder.path / f"trace-{side}.parquet", link=side, producer=f"fadelab {plan.tier.name}")
            )
            for side in SIDES
        }

    def on_arrival(self, side: Side, arrival: Arrival[Any]) -> None:
        """Write a frame and its fate."""
        nbytes = arrival.frame.nbytes
        started_at = arrival.sent_at - self._hops[side].frame_ns(nbytes)
        self._traces[side].write(started_at, nbytes, outcome_of(arrival.verdict))

    def begin(self, epoch: int) -> None:
        """Count from the run's time 0."""
        for trace in self._traces.values():
            trace.begin(epoch)

    def end(self, network: LinkNetwork) -> None:
        """Write the frames that are still on the air, too: their fate is decided."""
        for side, station in network.stations.items():
            for arrival in station.hop.in_flight():
                self.on_arrival(side, arrival)
