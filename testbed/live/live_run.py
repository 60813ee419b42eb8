"""Runs a scenario in real time: sets up namespaces, stations and hosts, and collects their reports.

The tiers differ in the medium between the stations and in their radios (`media/`), and in nothing else.

Rules: a run leaves nothing behind, however it ends; a process that fails ends the run with its message; the result of
a run tells how many events were late.
"""

import itertools
import os
import time
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime

from common.sides import HOSTS, Host
from hosts.engine.delays import Delays
from hosts.engine.results import EndReport
from hosts.engine.split_pairs import SplitCounters
from hosts.kernel.bpf.eln import Eln, needs_eln
from hosts.kernel.network import SECOND_STATIONS, Network
from hosts.kernel.profiles import PROFILES, apply, kernel_profile
from hosts.messages import (
    AgentConfig,
    Done,
    FromProcess,
    Go,
    Pause,
    Ready,
    SplitConfig,
    Stop,
)
from hosts.workloads import sender_of
from hosts.workloads.mptcp import Mptcp
from telemetry.parquet import SECOND, ParquetSink
from telemetry.records import ControlRecord, FlowRecord, TcpRecord
from telemetry.sinks import Sinks
from telemetry.views import PhyView
from testbed.live import grid
from testbed.live.children import Child, ChildError, ChildGroup
from testbed.live.link_stations import LinkStations
from testbed.live.media import medium_of
from testbed.paths import bpf_objects
from testbed.results.end_reports import EndReports
from testbed.results.store import RunFolder
from testbed.results.summary import Summary, summarize
from testbed.run_hooks import NO_HOOKS, ProgressMeter, RunHooks, Show
from testbed.scenario.run_plan import Plan
from testbed.steering import Change, Steering

_AGENT, _PROXY = "hosts.agent_process", "hosts.split_proxy"
_READY_S = 30.0
_FINAL_S = 10.0
#: the run's epoch lies this far ahead at least when it is announced, so that it reaches every process in time
_LEAD_NS = 200_000_000

#: of the runs of this process
_numbers = itertools.count()


def run_live(
    plan: Plan,
    folder: RunFolder,
    show: Show = lambda progress: None,
    hooks: RunHooks = NO_HOOKS,
) -> Summary:
    """Make the run of a plan in real time and return its result, which is also in `folder`.

    Closes the hooks' sinks. Raises FadelabError or HostError in one line.
    """
    return _LiveRun(plan, folder, show, hooks).run()


class _LiveRun:
    def __init__(self, plan: Plan, folder: RunFolder, show: Show, hooks: RunHooks) -> None:
        self._plan = plan
        self._steering = hooks.steering or Steering.of(plan)
        self._view_sink = hooks.view_sink
        self._all_ready = hooks.ready
        # a run in virtual time repeats to the byte, and the folder's name has the wall clock's
        self._name = plan.stem if plan.clock == "virtual" else folder.name
        tags = {"run": self._name, "tier": plan.tier.name, "scenario": plan.name}
        self._sinks = Sinks([ParquetSink(folder.path, tags), *hooks.sinks])
        #: for the second link's stations, whose records the hooks do not have
        self._second_sinks = Sinks([] if plan.second is None else [ParquetSink(folder.path, tags, SECOND)])
        self._folder = folder
        #: names of processes that are ready, and of hosts whose work is done
        self._ready: set[str] = set()
        self._done: set[str] = set()
        self._reports = EndReports()
        self._split: SplitCounters | None = None
        #: the senders' smoothed round-trip times, by flow
        self._smoothed: dict[str, Delays] = {}
        self._progress = ProgressMeter(plan.workloads, show)
        self._epoch = 0
        self._hosts: dict[Host, Child] = {}
        #: of the link, and of the second one
        self._links: list[LinkStations] = []
        #: whether the stations make views of their radios, and the number of changes by a person
        self._watched = False
        self._changes = 0

    def run(self) -> Summary:
        plan = self._plan
        self._progress.show()
        with ExitStack() as stack:
            stack.callback(self._sinks.close)
            stack.callback(self._second_sinks.close)
            # two runs may start in the same second from different folders: the pid keeps them apart
            network = Network(
                f"{os.getpid()}-{next(_numbers)}", mtu=plan.mtu_bytes, second_link=plan.second is not None
            )
            group = stack.enter_context(ChildGroup())
            # children start while the network is made; those without a radio before the medium loads what radios need,
            # and starts threads
            copied = plan.clock == "virtual"
            self._hosts = {host: group.add(Child(f"host {host}", _AGENT, copied=copied)) for host in HOSTS}
            proxy = None if plan.split is None else group.add(Child("split", _PROXY, copied=copied))
            wirings = stack.enter_context(medium_of(plan).open(plan))
            links = [LinkStations(plan, wirings, self._folder, self._sinks.write)]
            if (second := plan.second) is not None:
                wirings = stack.enter_context(medium_of(second).open(second))
                links.append(LinkStations(second, wirings, self._folder, self._second_sinks.write, SECOND_STATIONS))
            self._links = links
            stack.callback(network.close)
            eln = Eln(bpf_objects())
            stack.callback(eln.close)
            # before all that they use
            stack.callback(group.close)
            for link in links:
                link.start(group)
            network.up()
            for child in group.children:
                network.add_child(child.pid)
            for host in HOSTS:
                profile = kernel_profile(plan.hosts[host].tcp, plan.hosts[host].receive_buffer_bytes)
                if needs_eln(profile):
                    eln.load(network.run)
                    eln.add(self._hosts[host].pid)
                apply(network.namespaces[host], eln.of(profile))
            if plan.clock == "virtual":
                # radios begin when stations are configured: at the same time, whatever came before
                grid.pause()
            if second is not None:
                # all in one direction
                network.add_paths(next(sender_of(work) for work in plan.workloads if isinstance(work, Mptcp)))
            for link in links:
                link.configure(network.namespaces)
            ends = {child.name for child in group.children if not any(link.has(child) for link in links)}
            stations = {child.name for child in group.children} - ends
            self._await_ready(group, stations)
            if plan.clock == "virtual":
                # and hosts when stations are waiting for their packets: how long either takes to begin does not matter
                grid.pause()
            self._configure_hosts(network)
            if proxy is not None and plan.split is not None:
                profile_name = plan.split.profile
                config = SplitConfig(
                    namespace=network.namespaces["bas"],
                    mobile=network.address("h1"),
                    buffer_bytes=plan.split.buffer_bytes,
                    # None: the kernel's TCP, where it has the profile
                    wireless=None if profile_name in PROFILES else profile_name,
                )
                proxy.send(config)
            self._await_ready(group, ends)
            duration_s = self._go(group)
            self._finish(group)
        summary = self._summarize(duration_s)
        self._folder.finish(summary)
        return replace(summary, run=self._folder.name, folder=str(self._folder.path))

    def _await_ready(self, group: ChildGroup, names: Collection[str]) -> None:
        """Wait until these children are ready. Raises ChildError."""
        if not group.receive_until(
            self._handle_message, lambda: self._ready.issuperset(names), timeout_s=_READY_S, tick=self._tick
        ):
            missing = ", ".join(sorted(set(names) - self._ready))
            raise ChildError(f"not ready after {_READY_S:.0f} s: {missing}")

    def _configure_hosts(self, network: Network) -> None:
        for host, peer in zip(HOSTS, reversed(HOSTS), strict=True):
            plan = self._plan.hosts[host]
            config = AgentConfig(
                host=host,
                peer=network.address(peer),
                address=network.address(host),
                second_peer=next(iter(network.host_addresses(peer)[1:]), None),
                workloads=self._plan.workloads,
                namespace=network.namespaces[host],
                seed=self._plan.seed,
                probe_interval_ms=self._plan.probe_interval_ms,
                tcp=plan.tcp,
                tcp_changes=plan.changes,
                delayed_ack=kernel_profile(plan.tcp).delayed_ack,
                receive_buffer_bytes=plan.receive_buffer_bytes,
                folder=str(self._folder.path.absolute()) if any(work.logs for work in self._plan.workloads) else None,
            )
            self._hosts[host].send(config)

    def _go(self, group: ChildGroup) -> float:
        """Run until every host is done; return the duration of the run (s)."""
        self._all_ready()
        self._epoch = grid.next_time(time.monotonic_ns() + _LEAD_NS)
        group.send(Go(epoch_ns=self._epoch))
        epoch_ns = time.time_ns() + self._epoch - time.monotonic_ns()
        self._folder.began(datetime.fromtimestamp(epoch_ns / 1e9, UTC))
        self._sinks.begin(epoch_ns)
        self._second_sinks.begin(epoch_ns)
        self._progress.show("running")
        hosts = {f"host {host}" for host in HOSTS}
        group.receive_until(
            self._handle_message,
            lambda: hosts <= self._done or self._steering.stopped,
            timeout_s=self._plan.limit_s,
            tick=self._tick,
        )
        return (time.monotonic_ns() - self._epoch) / 1e9

    def _finish(self, group: ChildGroup) -> None:
        self._progress.show("finishing")
        group.send(Stop())
        if not group.receive_until(
            self._handle_message,
            lambda: all(child.ended for child in group.children),
            timeout_s=_FINAL_S,
            may_end=True,
        ):
            stuck = ", ".join(child.name for child in group.children if not child.ended)
            raise ChildError(f"{stuck}: no answer within {_FINAL_S:.0f} s of the run's end: stopped, stuck or too slow")

    def _tick(self) -> float | None:
        """Show the progress, and apply changes; return the time until the next scheduled one (s)."""
        elapsed_s = (time.monotonic_ns() - self._epoch) / 1e9 if self._epoch else None
        self._progress.show(elapsed_s=None if elapsed_s is None else max(elapsed_s, 0.0))
        if self._view_sink is not None and self._view_sink.watched != self._watched:
            self._watched = not self._watched
            # the page shows the first link
            self._links[0].watch(self._watched)
        if elapsed_s is None:
            return None
        if elapsed_s >= 0:
            for change in self._steering.take(elapsed_s):
                self._change(change)
        next_s = self._steering.next_s
        return None if next_s is None else next_s - elapsed_s

    def _change(self, change: Change) -> None:
        """Apply a change to the media, the stations and the hosts, and record it."""
        for link, after in zip(self._links, (change.plan, change.plan.second), strict=False):
            if after is not None:
                link.change(after)
        for host in self._hosts.values():
            host.send(Pause(paused=change.paused))
        self._changes += not change.scheduled
        self._sinks.write(
            ControlRecord(time_ns=time.monotonic_ns() - self._epoch, name=change.name, value=change.value)
        )

    # -- messages --------------------------------------------------------------------------------------------

    def _handle_message(self, child: Child, message: FromProcess) -> None:
        match message:
            case Ready():
                self._ready.add(child.name)
            case Done():
                self._done.add(child.name)
            case TcpRecord() | FlowRecord():
                self._progress.handle(message)
                if isinstance(message, TcpRecord) and message.srtt_ms is not None:
                    self._smoothed.setdefault(message.flow, Delays()).add(round(message.srtt_ms * 1e6))
                self._sinks.write(message)
            case PhyView():
                if self._view_sink is not None:
                    self._view_sink.show(message)
            case EndReport():
                self._reports.append(message)
            case SplitCounters():
                self._split = message
            case _:
                for link in self._links:
                    if link.has(child):
                        link.handle(child, message)

    # -- the result ------------------------------------------------------------------------------------------

    def _summarize(self, until_s: float) -> Summary:
        first, *others = [link.result(until_s) for link in self._links]
        if self._plan.split is not None and self._split is None:
            raise ChildError("the proxy that splits connections ended without its final report")
        return summarize(
            self._plan,
            run=self._name,
            folder=None if self._plan.clock == "virtual" else str(self._folder.path),
            reports=self._reports,
            finals=first.finals,
            sent_bits=first.sent_bits,
            until_s=until_s,
            changes=self._changes,
            split=self._split,
            confusion=self._links[0].confusion(),
            access=first.access,
            smoothed_us={flow: delays.counts() for flow, delays in self._smoothed.items()},
            second=others[0] if others else None,
        )
