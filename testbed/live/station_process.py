"""One station of a run: `python -m testbed.live.station_process` joins a TAP to the medium, in its own namespace.

Messages (`hosts/messages.py`)

- on stdin: `StationConfig` first, then `Go`, `StationChange`, `Watch`, and `Stop` or the end of the input;
- on stdout: `Started`, and `Ready` once the link is up; at every interval `StationReport` and `StationRecord`, with a
  radio `PhyRecord`, while watched `PhyView`, with packet filters at either end and without a radio `LossEvents`;
  `StationFinal` at the end, or `Error` and exit status 2.

Rule kept: the station ends on `stop` and when its stdin closes, so a killed run leaves no station behind. It ignores
SIGINT; on Ctrl-C the run ends it.
"""

import gc
import os
import socket
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from channel.errors import Fate
from channel.hop import Arrival
from common.sides import STATIONS, other
from common.units import MS
from hosts.jsonlines import MessageReader, run_child, unexpected, write_message
from hosts.kernel.namespaces import enter
from hosts.kernel.tap import Tap
from hosts.messages import Go, LossEvents, Ready, Started, StationChange, StationConfig, Stop, ToProcess, Watch
from linklayer.classify import Classifier
from linklayer.filters.filter import Guess, Loss
from linklayer.link import FrameError, Link, LinkCounters
from linklayer.schemes import SCHEMES
from linklayer.station_counts import Lateness, StationCounts, StationFinal, StationReport
from tcpip.access import Octets
from telemetry.records import StationRecord
from testbed.live.capture import CapturedRadio
from testbed.live.emulated_radio import EmulatedRadio
from testbed.live.hop_radio import HopRadio
from testbed.live.process_usage import Usage, resident_bytes
from testbed.live.station_loop import StationLoop
from testbed.results.frame_trace import FrameTrace, outcome_of
from testbed.results.ground_truth import LossReporter
from testbed.results.lost_packets import LostPackets
from testbed.results.station_counts import count_station
from testbed.scenario.channel_models import buffer_bytes, frame_ns, make_errors, make_hop, make_rng
from testbed.scenario.file import validate
from testbed.scenario.ip_queues import make_queues
from testbed.scenario.link_ends import has_guessers, make_link, refit
from testbed.scenario.schema import Scenario

if TYPE_CHECKING:
    from flowgraphs.transceiver import Transceiver
    from testbed.live.receiver_stats import ReceiverStats
    from testbed.live.receiver_view import ReceiverView

_STDIN = 0
#: real-time scheduling (sched(7)) of what has a deadline: frames leave on time under any load
_PRIORITY = 1
#: of what has none, a radio's receiver above all: a share before other programs', but not all of a core
_NICE = -10


@dataclass(slots=True)
class _Unrepaired:
    """Frames lost under schemes without repair: in the modelled medium, and in the air towards this station."""

    taken: int = 0
    unheard: int = 0
    #: both numbers of all lost frames, at the last count
    _before: tuple[int, int] = (0, 0)

    def count(self, taken: int, unheard: int, repairs: bool) -> None:
        if not repairs:
            self.taken += taken - self._before[0]
            self.unheard += unheard - self._before[1]
        self._before = taken, unheard


class StationProcess:
    """Builds a station from its configuration, and reports its counts and losses."""

    def __init__(self, config: StationConfig, stack: ExitStack, reader: MessageReader) -> None:
        scenario = validate(dict(config.scenario), "scenario")
        self._side = side = config.side
        self._reader = reader
        if config.namespace is not None:
            enter(config.namespace)
        self._scenario = scenario
        self._out = scenario.channel.direction(side)
        self._scheme = SCHEMES[scenario.link.scheme]
        #: changes of the scenario so far
        self._changes = 0
        self._start = config.start
        self.link = self._make_link()
        #: counters of the links before this one
        self._before = LinkCounters()
        self._queues = make_queues(scenario, side)
        #: trace of the station's own frames, where the medium is modelled
        self._trace: FrameTrace | None = None
        #: statistics and views of the receiver, where there is a radio
        self._receiver_stats: ReceiverStats | None = None
        self._view: ReceiverView | None = None
        self._transceiver: Transceiver | None = None
        make_radio = self._emulated_radio if config.device is None else self._onair_radio
        self._radio = make_radio(config, scenario, stack)
        #: the same radio with a capture of its frames
        self._capture: CapturedRadio | None = None
        if scenario.capture:
            folder = Path(config.folder)
            self._capture = stack.enter_context(CapturedRadio(self._radio, folder, side, self._scheme))
        tap = stack.enter_context(Tap(config.tap, mtu=scenario.mtu, descriptor=config.tun_fd))
        self.loop = StationLoop(
            port=tap,
            link=self.link,
            scheme=self._scheme,
            radio=self._capture or self._radio,
            queues=self._queues,
            classifier=Classifier(scenario.link.fast.dscp, scenario.link.fast.protocols),
            report=self._report,
            report_interval_ns=scenario.timing.probe_interval_ms * MS,
            control=self._read_messages,
            control_fds=(_STDIN,),
        )
        #: losses of TCP segments, and guesses of packet filters, since the last report
        self._losses: list[Loss] = []
        self._guesses: list[Guess] = []
        self._loss_reporter: LossReporter | None = None
        self._watch_losses()
        self._ready = False
        self._epoch: int | None = None
        self._last = (0, 0, 0)
        self._usage = Usage()
        self._unrepaired = _Unrepaired()
        #: used while packet filters retransmit packets
        self._lost_packets = LostPackets()

    def _make_link(self) -> Link:
        """Return a new link of the scenario's scheme."""
        rng = self._rng("link" if self._start is None else f"link {self._start}")
        return make_link(self._scenario, self._side, rng, time.monotonic_ns(), sized=False)

    def _rng(self, purpose: str) -> Random:
        """Return the generator for a purpose; after every change of the scenario it is a new one."""
        changes = (str(self._changes),) if self._changes else ()
        return make_rng(self._scenario.seed, purpose, self._side, *changes)

    def _emulated_radio(self, config: StationConfig, scenario: Scenario, stack: ExitStack) -> EmulatedRadio:
        if scenario.trace:
            path = Path(config.folder) / f"trace-{self._side}.parquet"
            self._trace = stack.enter_context(FrameTrace(path, link=self._side, producer="fadelab emulated"))
        return EmulatedRadio(
            make_hop(self._out, self._side, scenario.seed, self._mac_buffer_bytes(scenario)),
            stack.enter_context(socket.socket(fileno=config.peer_fd)),
            max_frame_bytes=scenario.max_frame_bytes,
            late_bound_ns=round(scenario.timing.late_bound_ms * MS),
            on_arrival=self._on_arrival,
        )

    def _onair_radio(self, config: StationConfig, scenario: Scenario, stack: ExitStack) -> HopRadio:
        # imports GNU Radio, which other tiers do without
        from testbed.live.receiver_stats import ReceiverStats
        from testbed.live.receiver_view import ReceiverView
        from testbed.live.usrp_radio import OnAirRadio, open_transceiver, radio_delay_ns

        side, far = self._side, other(self._side)
        folder = Path(config.folder)
        recording = folder / f"iq-{far}" if scenario.radio.record else None
        self._transceiver = stack.enter_context(open_transceiver(scenario, side, config.device or "", recording))
        transceiver = self._transceiver
        trace = None
        if scenario.trace:
            path = folder / f"trace-{far}.parquet"
            trace = stack.enter_context(FrameTrace(path, link=far, producer=f"fadelab {scenario.tier}"))
        self._receiver_stats = ReceiverStats(far, scenario.radio.rate_sps, trace)
        self._view = ReceiverView(far, transceiver)
        # airtime counts towards the modelled delay
        delay_ms = max(0.0, self._out.delay_ms - radio_delay_ns(transceiver, scenario.max_frame_bytes) / MS)
        return OnAirRadio(
            make_hop(
                self._out.model_copy(update={"delay_ms": delay_ms}),
                side,
                scenario.seed,
                self._mac_buffer_bytes(scenario),
            ),
            transceiver,
            max_frame_bytes=scenario.max_frame_bytes,
            late_bound_ns=round(scenario.timing.late_bound_ms * MS),
            automatic_gain=scenario.radio.rx_gain_db == "auto",
            on_received=self._receiver_stats.handle_frame,
        )

    def run_in_real_time(self) -> None:
        """Let the loop's thread, which must be this one, and the radio's run in real time. Raises PermissionError."""
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(_PRIORITY))
        if self._transceiver is not None:
            self._transceiver.run_in_real_time(_PRIORITY)

    def _mac_buffer_bytes(self, scenario: Scenario) -> int:
        return buffer_bytes(self._out, scenario.max_frame_bytes, scenario.link.ip_queue_bytes, self.link.flow_control)

    def _watch_losses(self) -> None:
        """Report losses while packet filters guess at them; the losses of a real air are unknown."""
        scheme = self._scheme
        known = self._receiver_stats is None and has_guessers(self._scenario)
        self._loss_reporter = (
            LossReporter(Octets(), scheme.name, scheme.repairs, self._losses.append, self._guesses.append)
            if known
            else None
        )
        self.loop.station.loss_observer = self._loss_reporter

    def _on_arrival(self, arrival: Arrival[bytes]) -> None:
        if self._loss_reporter is not None and not self._scheme.repairs and arrival.verdict.fate is not Fate.INTACT:
            # after a change of schemes, frames of the old scheme still arrive
            with suppress(FrameError):
                self._loss_reporter.taken(self._scheme.parse(arrival.frame).payload, arrival.arrived_at)
        if self._scenario.link.resends:
            self._lost_packets.handle_fate(hash(arrival.frame), arrival.verdict.fate is not Fate.INTACT)
        if self._trace is not None:
            nbytes = len(arrival.frame)
            started_at = arrival.sent_at - frame_ns(self._out, nbytes)
            self._trace.write(started_at, nbytes, outcome_of(arrival.verdict))

    def _read_messages(self, fd: int) -> None:
        messages = self._reader.read()
        if messages is None:
            self.loop.stop()
        else:
            self.handle_messages(messages)

    def handle_messages(self, messages: list[ToProcess]) -> None:
        """Handle messages of the run."""
        for message in messages:
            match message:
                case Go():
                    self._begin(message.epoch_ns)
                case StationChange():
                    self._change(validate(dict(message.scenario), "scenario"))
                case Watch():
                    if self._view is not None:
                        self._view.watched = message.watched
                case Stop():
                    self.loop.stop()
                case _:
                    raise unexpected(message)

    def _change(self, scenario: Scenario) -> None:
        """Continue with another scenario, which may differ in errors, link scheme and ELN only."""
        before, self._scenario = self._scenario, scenario
        self._out = scenario.channel.direction(self._side)
        self._changes += 1
        if self._out.errors != before.channel.direction(self._side).errors:
            self._radio.hop.set_errors(make_errors(self._out.errors, self._rng("channel")))
        if scenario.link.scheme != before.link.scheme:
            self._switch(time.monotonic_ns())
        elif scenario.link.eln != before.link.eln:
            self.link = refit(self.link, scenario, self._side)
            self._resize()
            self.loop.station.refit(self.link, time.monotonic_ns())
        self._watch_losses()

    def _switch(self, now: int) -> None:
        """Switch to the scenario's link scheme."""
        # count the losses so far under the old scheme
        self._counts()
        old, self._scheme = self.link, SCHEMES[self._scenario.link.scheme]
        self.link = self._make_link()
        self._resize()
        if self._capture is not None:
            self._capture.switch(self._scheme)
        self.loop.switch(self.link, self._scheme, now)
        self._before += old.counters()

    def _resize(self) -> None:
        """Set the radio's sizes to those of the present link."""
        self._radio.resize(
            buffer_bytes=self._mac_buffer_bytes(self._scenario), max_frame_bytes=self._scenario.max_frame_bytes
        )

    def _begin(self, epoch: int) -> None:
        self._epoch = epoch
        self._last = (epoch, *self._bytes())
        if self._trace is not None:
            self._trace.begin(epoch)
        if self._receiver_stats is not None:
            self._receiver_stats.begin(epoch)
        # lateness while the processes started does not count
        self._radio.lateness = Lateness()

    def _bytes(self) -> tuple[int, int]:
        return self._radio.hop.bytes, self._link_counters().useful_bytes

    def _link_counters(self) -> LinkCounters:
        return self._before + self.link.counters()

    def _report(self, now: int) -> None:
        # the radio sleeps through the ends of frames that nobody waits for
        self._radio.hop.handle_deadline(now)
        if not self._ready and self.link.established:
            self._ready = True
            write_message(Ready())
        if self._epoch is not None and now > self._last[0]:
            last_at, last_sent, last_useful = self._last
            sent, useful = self._bytes()
            self._last = (now, sent, useful)
            seconds = (now - last_at) / 1e9
            time_ns = now - self._epoch
            report = StationReport(
                time_ns=time_ns,
                scheme=self._scheme.name,
                established=self.link.established,
                throughput_bps=(sent - last_sent) * 8 / seconds,
                goodput_bps=(useful - last_useful) * 8 / seconds,
                counts=self._counts(),
            )
            write_message(report)
            usage = StationRecord(
                time_ns=time_ns,
                station=STATIONS[self._side],
                processor_percent=self._usage.processor_percent(),
                memory_bytes=resident_bytes(),
            )
            write_message(usage)
            if self._loss_reporter is not None:
                events = LossEvents(until_ns=now, losses=tuple(self._losses), guesses=tuple(self._guesses))
                write_message(events)
            self._losses.clear()
            self._guesses.clear()
            if self._receiver_stats is not None:
                write_message(self._receiver_stats.take_record(time_ns))
            if self._view is not None and (view := self._view.poll(now, time_ns)) is not None:
                write_message(view)

    def _counts(self) -> StationCounts:
        """Return the counts of frames sent (on the station's own direction), received and repaired (on the other)."""
        counters, loop, hop = self._link_counters(), self.loop, self._radio.hop
        unheard = 0 if self._receiver_stats is None else self._receiver_stats.corrupted + self._receiver_stats.missed
        self._unrepaired.count(hop.erased + hop.damaged, unheard, self._scheme.repairs)
        return count_station(
            counters,
            hop,
            self._queues,
            congestion_losses=loop.station.congestion_losses,
            unheard=unheard,
            unrepaired_taken=self._unrepaired.taken - self._lost_packets.spared,
            unrepaired_unheard=self._unrepaired.unheard,
            bad_frames=loop.bad_frames + counters.refused,
            port_refusals=loop.port_refusals,
            repeats=self._lost_packets.repeats,
        )

    def final(self) -> StationFinal:
        """Write the last report and the trace of frames still on the air; return the final counts."""
        now = time.monotonic_ns()
        # no frame ends between the trace and the counts
        self._radio.hop.handle_deadline(now)
        for arrival in self._radio.hop.in_flight():
            self._on_arrival(arrival)
        self._report(now)
        return StationFinal(counts=self._counts(), lateness=self._radio.lateness)


def serve(reader: MessageReader, config: StationConfig, pending: list[ToProcess]) -> None:
    """Run one station from configuration to stop."""
    with suppress(PermissionError):
        # threads that are started from here on inherit it
        os.setpriority(os.PRIO_PROCESS, 0, _NICE)
    with ExitStack() as stack:
        process = StationProcess(config, stack, reader)
        with suppress(PermissionError):
            process.run_in_real_time()
        write_message(Started())
        process.handle_messages(pending)
        gc.freeze()
        if config.device is None:
            # the cores make no reference cycles, and a collection would delay frames; GNU Radio makes cycles
            gc.disable()
        process.loop.run()
        write_message(process.final())


if __name__ == "__main__":
    sys.exit(run_child(StationConfig, serve))
