"""Tier `model`: a scenario in virtual time.

Rules kept here: the same scenario and seed give the same result and, in a folder, the same files to the byte, under
any load of the machine; the wall clock is read for progress alone. A request that this tier cannot fulfil is refused;
no TCP stands in for another.
"""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from io import StringIO
from typing import Any, Final, TextIO

from channel.hop import Arrival
from common.sides import SIDES, Side, other
from common.units import MS
from hosts.engine.clock import OBSERVER
from hosts.engine.context import ignore
from hosts.engine.ports import OpenLog
from hosts.engine.results import EndReport
from linklayer.station_counts import Lateness, StationFinal
from tcpip.segment import IpPacket, Segment
from telemetry.parquet import ParquetSink
from telemetry.records import ControlRecord, Record
from telemetry.sinks import Sinks
from testbed.errors import FadelabError
from testbed.model.link_network import LinkNetwork
from testbed.model.traffic import Traffic
from testbed.model.watch import Watch
from testbed.results.frame_trace import FrameTrace
from testbed.results.store import RunFolder
from testbed.results.summary import Summary, belief_record, joined_record, summarize
from testbed.run_hooks import NO_HOOKS, ProgressMeter, RunHooks, Show
from testbed.scenario.run_plan import Plan, PlannedChange
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
        traces = {side: stack.enter_context(_trace(plan, folder, side)) for side in SIDES if plan.trace}
        recorder = _Recorder(plan, sinks, show)

        def open_log(name: str) -> TextIO:
            return stack.enter_context((folder.path / name).open("w", encoding="utf-8"))

        summary = Simulation(plan, recorder=recorder, traces=traces, timed=True, open_log=open_log).run()
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
    `timed`: the result has the delays of TCP's packets. `open_log` opens files for logs that workloads ask for; without
    it there are none.
    Raises FadelabError in one line for a plan that virtual time cannot fulfil.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        watch: Watch | None = None,
        begun: Begun = lambda network, traffic: None,
        recorder: "_Recorder | None" = None,
        traces: Mapping[Side, FrameTrace] | None = None,
        timed: bool = False,
        open_log: OpenLog | None = None,
    ) -> None:
        check_model(plan)
        self._timed = timed
        self._open_log = open_log
        self._plan = plan
        self._watch = watch
        self._begun = begun
        self._recorder = recorder
        self._traces = traces or {}
        self._epoch = 0
        watched = (None, None) if watch is None else (self._on_arrival, self._on_crossing)
        self._network = LinkNetwork(plan, watched[0], self._traces, watched[1])
        self._main = plan.main
        #: bits sent on the air over time (s): at the instants the result asks for
        self._sent_bits: dict[Side, list[tuple[float, float]]] = {side: [] for side in SIDES}

    def run(self) -> Summary:
        plan, network, recorder, clock = self._plan, self._network, self._recorder, self._network.clock
        self._epoch = epoch = network.bring_up()
        clock.run(until=epoch)
        before = {side: network.stations[side].arrivals for side in SIDES}
        for trace in self._traces.values():
            trace.begin(epoch)
        traffic = Traffic(
            network.hosts,
            plan.workloads,
            {host: each.config for host, each in plan.hosts.items() if each.config is not None},
            seed=plan.seed,
            epoch=epoch,
            ended=self._ended,
            emit=ignore if recorder is None else recorder.emit,
            watch=self._watch,
            timed=self._timed,
            open_log=self._open_log or (lambda name: StringIO()),
        )
        self._traffic = traffic
        for work in plan.workloads:
            if work.direction == self._main:
                for seconds in (work.start_s, work.start_s + (getattr(work, "duration_s", None) or 0.0)):
                    clock.at(epoch + int(seconds * 1e9), self._mark, None, OBSERVER)
        for change in plan.changes:
            clock.at(epoch + change.at_ns, self._change, change, OBSERVER)
        if recorder is not None:
            recorder.begin(network, traffic, epoch)
        self._begun(network, traffic)
        clock.run(until=epoch + round(plan.limit_s * 1e9))
        until_ns = clock.now - epoch
        self._mark(None)
        traffic.stop()
        if recorder is not None:
            recorder.end()
        for station in network.stations.values():
            # of frames that are still on the air the fate is decided, too
            for arrival in station.hop.in_flight():
                station.fates.write(arrival)
        finals = {
            side: StationFinal(
                counts=station.meter.counts(),
                lateness=Lateness(station.arrivals - before[side]),
                airtime_ns=station.hop.airtime_ns,
            )
            for side, station in network.stations.items()
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

    def _change(self, change: PlannedChange) -> None:
        self._network.change(change.plan)
        if change.paused is not None:
            self._traffic.pause(change.paused)
        if self._recorder is not None:
            self._recorder.changed(change)

    def _on_arrival(self, side: Side, arrival: Arrival[Any]) -> None:
        assert self._watch is not None
        self._watch.carried(side, arrival, arrival.arrived_at - self._epoch)

    def _on_crossing(self, side: Side, packet: IpPacket) -> None:
        assert self._watch is not None
        now = self._network.clock.now
        self._watch.left(side, packet, now - self._epoch)
        if isinstance(packet, Segment) and packet.length and packet.timed_at >= 0:
            self._watch.crossed(side, now - packet.timed_at, now - self._epoch)

    def _ended(self, report: EndReport) -> None:
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
        self._interval_ns = plan.probe_interval_ms * MS
        self._write = sinks.write
        self._progress = ProgressMeter(plan.workloads, show)
        self._shown_at = 0.0

    def emit(self, record: Record) -> None:
        """Take a record of a host."""
        self._progress.handle(record)
        self._write(record)

    def begin(self, network: LinkNetwork, traffic: Traffic, epoch: int) -> None:
        """Begin with the run's time 0, which is now."""
        self._network, self._traffic, self._epoch = network, traffic, epoch
        for station in network.stations.values():
            station.meter.begin(epoch)
        network.clock.at(epoch, self._tick, None, OBSERVER)

    def changed(self, change: PlannedChange) -> None:
        """Write the records of a scheduled change."""
        for key, value in change.settings.items():
            self._write(ControlRecord(time_ns=change.at_ns, name=key, value=json.dumps(value)))

    def end(self) -> None:
        """Write the last records."""
        self._sample()
        self._progress.show("finishing")

    def _tick(self, _: object) -> None:
        clock = self._network.clock
        self._sample()
        clock.at(clock.now + self._interval_ns, self._tick, None, OBSERVER)
        wall_s = time.monotonic()
        if wall_s - self._shown_at >= _SHOW_S:
            self._shown_at = wall_s
            self._progress.show("running", (clock.now - self._epoch) / 1e9)

    def _sample(self) -> None:
        self._traffic.sample()
        now = self._network.clock.now
        reports = {side: station.meter.report(now) for side, station in self._network.stations.items()}
        for side, report in reports.items():
            far = reports[other(side)]
            if report is not None and far is not None:
                self._write(joined_record(side, report, far.counts))
                if (beliefs := belief_record(side, report)) is not None:
                    self._write(beliefs)


def _trace(plan: Plan, folder: RunFolder, side: Side) -> FrameTrace:
    path = folder.path / f"trace-{side}.parquet"
    return FrameTrace(path, link=side, producer=f"fadelab {plan.tier.name}")
