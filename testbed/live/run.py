"""Running a scenario in real time: namespaces, stations, hosts, and what they report.

The tiers differ in what joins the stations (`wiring.py`) and in their radios (`station_process.py`); all else is the
same.

Rules: whatever happens, nothing is left behind; a process that fails ends the run with what it said; a run that did
not keep the clock says so in its result.
"""

import os
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from common.sides import HOSTS, SIDES, STATIONS, Host, Side, other
from hosts.bpf.eln import Eln, needs_eln
from hosts.engine.split import SplitCounters
from hosts.kernel_profiles import PROFILES, apply, kernel_profile
from hosts.network import Network
from hosts.split import split_config
from hosts.workloads import EndReport, agent_config
from linklayer.filters.filter import Guess
from linklayer.schemes import SCHEMES
from tcpip.segment import Flow
from telemetry.parquet import ParquetSink
from telemetry.records import ControlRecord, FlowRecord, PhyRecord, StationRecord, TcpRecord
from telemetry.sinks import Sinks
from telemetry.views import PhyView
from testbed.live.children import Child, ChildError, Family, Message
from testbed.live.station_process import station_config
from testbed.live.steering import Change
from testbed.live.wiring import Medium, Wiring
from testbed.onlookers import NOBODY, Onlookers, Progress, Show
from testbed.paths import bpf_objects
from testbed.results.ground_truth import Confusion, Join, Judge, Loss
from testbed.results.rates import RecentRate
from testbed.results.station_counts import StationCounts, StationFinal, StationReport
from testbed.results.store import RunFolder
from testbed.results.summary import (
    Summary,
    joined_record,
    summarize,
)
from testbed.scenario.link_ends import has_guessers
from testbed.scenario.schema import Scenario

_READY_S = 30.0
_FINAL_S = 10.0
#: the run's epoch lies this far ahead when it is announced, so that everybody has heard
_LEAD_NS = 200_000_000


def run_live(
    scenario: Scenario,
    folder: RunFolder,
    medium: Medium,
    show: Show = lambda progress: None,
    onlookers: Onlookers = NOBODY,
) -> Summary:
    """Run `scenario` in real time over `medium` and return its result, which is also in `folder`.

    Closes the onlookers' sinks. Raises FadelabError or HostError in one line.
    """
    return _LiveRun(scenario, folder, medium, show, onlookers).run()


@dataclass(slots=True)
class _Heard:
    """What the processes have said so far."""

    ready: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)
    reports: list[EndReport] = field(default_factory=list)
    latest: dict[Side, StationReport] = field(default_factory=dict)
    finals: dict[Side, StationFinal] = field(default_factory=dict)
    received: dict[str, int] = field(default_factory=dict)
    goodput: RecentRate = field(default_factory=RecentRate)
    split: SplitCounters | None = None


class _LiveRun:
    def __init__(self, scenario: Scenario, folder: RunFolder, medium: Medium, show: Show, onlookers: Onlookers) -> None:
        self._scenario = scenario
        #: the scenario as a person has changed it
        self._present = scenario
        self._steering, self._watcher = onlookers.steering, onlookers.watcher
        tags = {"run": folder.name, "tier": scenario.tier, "scenario": scenario.name}
        self._sinks = Sinks([ParquetSink(folder.path, tags), *onlookers.sinks])
        self._folder = folder
        self._medium = medium
        self._show = show
        self._workloads = scenario.make_workloads()
        self._heard = _Heard()
        self._progress = Progress.of(scenario)
        self._epoch = 0
        self._stations: dict[Side, Child] = {}
        self._hosts: dict[Host, Child] = {}
        self._wirings: Mapping[Side, Wiring] = {}
        #: what the stations were told of anybody watching, and how often a person has changed the run
        self._watched = False
        self._changes = 0
        self._sides: dict[str, Side] = {}
        self._judge = Judge()
        self._join = Join(self._judge)
        #: until when the stations have told what they have lost and guessed
        self._told_until: dict[Side, int] = {}
        #: bits sent on the air over time (s)
        self._sent_bits: dict[Side, list[tuple[float, float]]] = {side: [(0.0, 0.0)] for side in SIDES}

    def run(self) -> Summary:
        scenario = self._scenario
        self._show(self._progress)
        with ExitStack() as stack:
            stack.callback(self._sinks.close)
            # two runs may start in the same second from different folders: the pid keeps them apart
            network = Network(f"{os.getpid()}-{id(self) & 0xFFFFFF:x}", mtu=scenario.mtu)
            self._wirings = stack.enter_context(self._medium(scenario))
            stack.callback(network.close)
            eln = Eln(bpf_objects())
            stack.callback(eln.close)
            family = stack.enter_context(Family())
            # the interpreters start while the network is made
            self._start_stations(family)
            self._hosts = {host: family.add(Child(f"host {host}", "hosts.agent")) for host in HOSTS}
            splits = SCHEMES[scenario.link.scheme].split
            proxy = None if splits is None else family.add(Child("split", "hosts.split"))
            network.up()
            for child in family.children:
                network.add_child(child.pid)
            for host in HOSTS:
                profile = kernel_profile(scenario.tcp_of(host), scenario.receive_buffer_bytes)
                if needs_eln(profile):
                    eln.load(network.run)
                    eln.add(self._hosts[host].pid)
                apply(network.namespaces[host], eln.of(profile))
            self._configure_stations(network)
            self._configure_hosts(network)
            if proxy is not None:
                proxy.tell(self._split_config(network, str(splits)))
            everybody = {child.name for child in family.children}
            if not family.listen(
                self._hear, lambda: self._heard.ready == everybody, timeout_s=_READY_S, tick=self._tick
            ):
                missing = ", ".join(sorted(everybody - self._heard.ready))
                raise ChildError(f"not ready after {_READY_S:.0f} s: {missing}")
            duration_s = self._go(family)
            self._finish(family)
        summary = self._summarize(duration_s)
        self._folder.finish(summary)
        return summary

    def _start_stations(self, family: Family) -> None:
        for side, wiring in self._wirings.items():
            child = family.add(Child(f"station {STATIONS[side]}", "testbed.live.station_process", pass_fds=wiring.fds))
            self._sides[child.name] = side
            self._stations[side] = child

    def _configure_stations(self, network: Network) -> None:
        for side, child in self._stations.items():
            config = station_config(
                self._scenario,
                side,
                namespace=network.namespaces[STATIONS[side]],
                wiring=self._wirings[side].config,
                folder=self._folder.path.absolute(),
            )
            child.tell(config)

    def _configure_hosts(self, network: Network) -> None:
        for host, peer in zip(HOSTS, reversed(HOSTS), strict=True):
            tcp = self._scenario.tcp_of(host)
            config = agent_config(
                host,
                self._workloads,
                peer=network.address(peer),
                namespace=network.namespaces[host],
                seed=self._scenario.seed,
                probe_interval_ms=self._scenario.timing.probe_interval_ms,
                tcp=tcp,
                delayed_ack=kernel_profile(tcp).delayed_ack,
                receive_buffer_bytes=self._scenario.receive_buffer_bytes,
            )
            self._hosts[host].tell(config)

    def _split_config(self, network: Network, profile: str) -> dict[str, Any]:
        return split_config(
            namespace=network.namespaces["bas"],
            mobile=network.address("h1"),
            buffer_bytes=self._scenario.link.split_buffer_bytes,
            # a TCP that the kernel has is the kernel's
            wireless=None if profile in PROFILES else profile,
        )

    def _go(self, family: Family) -> float:
        """Run until every host has done its work; return for how long it ran."""
        self._epoch = time.monotonic_ns() + _LEAD_NS
        family.tell({"go": self._epoch})
        epoch_ns = time.time_ns() + self._epoch - time.monotonic_ns()
        self._folder.began(datetime.fromtimestamp(epoch_ns / 1e9, UTC))
        self._sinks.begin(epoch_ns)
        self._progress.phase = "running"
        hosts = {f"host {host}" for host in HOSTS}
        family.listen(
            self._hear,
            lambda: hosts <= self._heard.done or (self._steering is not None and self._steering.stopped),
            timeout_s=self._scenario.limit_s,
            tick=self._tick,
        )
        return (time.monotonic_ns() - self._epoch) / 1e9

    def _finish(self, family: Family) -> None:
        """Hear everybody's last word."""
        self._progress.phase = "finishing"
        self._show(self._progress)
        family.tell({"stop": True})
        family.listen(
            self._hear,
            lambda: len(self._heard.finals) == len(SIDES) and all(child.ended for child in family.children),
            timeout_s=_FINAL_S,
            may_end=True,
        )

    def _tick(self) -> None:
        progress = self._progress
        if self._epoch:
            progress.elapsed_s = max((time.monotonic_ns() - self._epoch) / 1e9, 0.0)
        progress.bytes_received = sum(self._heard.received.values())
        progress.goodput_bps = self._heard.goodput.bps
        self._show(progress)
        if self._watcher is not None and self._watcher.watched != self._watched:
            self._watched = not self._watched
            for station in self._stations.values():
                station.tell({"watch": self._watched})
        if self._steering is not None and 0 < self._epoch <= time.monotonic_ns():
            for change in self._steering.take():
                self._change(change)

    def _change(self, change: Change) -> None:
        """Let everybody become what a person wants, and keep that it was so."""
        before, after = self._present, change.scenario
        self._present = after
        for side in SIDES:
            reshape = self._wirings[side].reshape
            if reshape is not None:
                reshape(after.channel.direction(side))
        if (before.channel, before.link) != (after.channel, after.link):
            values = after.model_dump(mode="json", exclude_defaults=True)
            for station in self._stations.values():
                station.tell({"scenario": values})
        for host in self._hosts.values():
            host.tell({"pause": change.paused})
        self._changes += 1
        self._sinks.write(
            ControlRecord(time_ns=time.monotonic_ns() - self._epoch, name=change.name, value=change.value)
        )

    # -- hearing ---------------------------------------------------------------------------------------------

    def _hear(self, child: Child, message: Message) -> None:
        heard = self._heard
        for kind, body in message.items():
            if kind == "ready":
                heard.ready.add(child.name)
            elif kind == "done":
                heard.done.add(child.name)
            elif kind == "tcp":
                self._progress.cwnd_bytes = body["cwnd_bytes"]
                self._sinks.write(TcpRecord(**body))
            elif kind == "flow":
                heard.received[body["flow"]] = body["bytes_received"]
                heard.goodput.add(body["time_ns"] / 1e9, sum(heard.received.values()))
                self._sinks.write(FlowRecord(**body))
            elif kind == "link":
                self._hear_station(self._sides[child.name], StationReport.parse(body))
            elif kind == "phy":
                self._sinks.write(PhyRecord(**body))
            elif kind == "station":
                self._sinks.write(StationRecord(station=STATIONS[self._sides[child.name]], **body))
            elif kind == "view" and self._watcher is not None:
                self._watcher.show(PhyView(**body))
            elif kind == "result":
                heard.reports.append(body)
            elif kind == "truth":
                self._hear_truth(self._sides[child.name], body)
            elif kind == "final":
                heard.finals[self._sides[child.name]] = StationFinal.parse(body)
            elif kind == "split":
                heard.split = SplitCounters(**body)

    def _hear_station(self, side: Side, report: StationReport) -> None:
        self._heard.latest[side] = report
        points = self._sent_bits[side]
        last_s, last_bits = points[-1]
        time_s = report.time_ns / 1e9
        points.append((time_s, last_bits + report.throughput_bps * (time_s - last_s)))
        far = self._heard.latest.get(other(side))
        self._sinks.write(joined_record(side, report, StationCounts() if far is None else far.counts))

    def _hear_truth(self, side: Side, body: dict[str, Any]) -> None:
        """Take what a station has lost and guessed; what was before both stations' last words can be judged."""
        for at, flow, seq, end, cause in body["losses"]:
            self._join.handle(Loss(at, Flow(*flow), seq, end, cause))
        for at, flow, seq, cause, by in body["guesses"]:
            self._join.handle(Guess(at, Flow(*flow), seq, cause, by))
        self._told_until[side] = body["until"]
        if len(self._told_until) == len(SIDES):
            self._join.settle(min(self._told_until.values()))

    def _confusion(self) -> Confusion | None:
        """How right guesses were; None where there were some and nobody knows."""
        if self._scenario.tier != "emulated":
            return None if has_guessers(self._scenario) or has_guessers(self._present) else {}
        self._join.settle(max(self._told_until.values(), default=0) + 1)
        return self._judge.confusion()

    # -- the result ------------------------------------------------------------------------------------------

    def _summarize(self, until_s: float) -> Summary:
        scenario, heard = self._scenario, self._heard
        if len(heard.finals) < len(SIDES):
            raise ChildError("a station ended without its last word")
        if SCHEMES[scenario.link.scheme].split is not None and heard.split is None:
            raise ChildError("the proxy that splits connections ended without its last word")
        return summarize(
            scenario,
            run=self._folder.name,
            folder=str(self._folder.path),
            reports=heard.reports,
            finals=heard.finals,
            sent_bits=self._sent_bits,
            until_s=until_s,
            changes=self._changes,
            split=heard.split,
            confusion=self._confusion(),
        )
