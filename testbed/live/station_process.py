"""One station of a run: `python -m testbed.live.station_process` joins a TAP, in a namespace of its own, to the medium.

Messages (`hosts/messages.py`)

- on stdin: `StationConfig` first, then `Go`, `StationChange`, `Watch`, and `Stop` or the end of the input;
- on stdout: `Started`, and `Ready` once the link is up; at every interval `StationReport` and `StationRecord`, with a
  radio `PhyRecord`, while watched `PhyView`, with packet filters at either end and without a radio `LossEvents`;
  `StationFinal` at the end, or `Error` and exit status 2.

Rules kept: the station ends on `stop` and when its stdin closes, so a killed run leaves no station behind. It ignores
SIGINT; on Ctrl-C the run ends it. Only the TAP is in the namespace: the process stays in the host's network, where
Ethernet devices are.
"""

import gc
import os
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from typing import Any

from common.sides import STATIONS
from common.units import MS
from flowgraphs.frontend import LostRadioError
from hosts.jsonlines import MessageReader, run_child, unexpected, write_message
from hosts.kernel.namespaces import run_in
from hosts.kernel.privileges import CAP_DAC_OVERRIDE, CAP_SYS_NICE, keep
from hosts.kernel.tap import Tap
from hosts.messages import Error, Go, LossEvents, Ready, Started, StationChange, StationConfig, Stop, ToProcess, Watch
from linklayer.filters.filter import Guess, Loss
from linklayer.link import Link
from linklayer.station_counts import StationFinal
from tcpip.access import Octets
from telemetry.parquet import spare_pandas
from telemetry.records import StationRecord
from testbed.live import grid
from testbed.live.capture import CapturedRadio
from testbed.live.media import RadioContext, medium_of
from testbed.live.process_usage import Usage, resident_bytes
from testbed.live.station_loop import StationLoop
from testbed.results.frame_fates import FrameFates, FrameView
from testbed.results.ground_truth import LossReporter
from testbed.results.station_meter import DriverCounts, StationMeter
from testbed.scenario.file import plan_of
from testbed.scenario.run_plan import Plan

_STDIN = 0
#: real-time scheduling (sched(7)) of threads with a deadline: frames leave on time under any load
_PRIORITY = 1
#: nice level of the other threads, above all a radio's receiver: a share before other programs', but not all of a core
_NICE = -10


class StationProcess:
    """Builds a station from its configuration, and reports its counts and losses."""

    def __init__(self, config: StationConfig, stack: ExitStack, reader: MessageReader) -> None:
        self.plan = plan = plan_of(config.scenario)
        self._side = side = config.side
        self._station = station = plan.stations[side]
        self._reader = reader
        #: changes of the scenario so far
        self._changes = 0
        self._start = config.start
        port = stack.enter_context(_open_tap(config, plan.mtu_bytes))
        if not plan.tier.radio:
            # before libraries start threads, which have what this thread has
            keep({CAP_DAC_OVERRIDE, CAP_SYS_NICE})
        self.link = self._make_link()
        view = FrameView(len, self._packet, lambda frame: hash(self._packet(frame)))
        self._fates = FrameFates(view, station.hop.frame_ns)
        context = RadioContext(
            plan=plan,
            side=side,
            wiring=config.wiring,
            folder=Path(config.folder),
            stack=stack,
            flow_control=self.link.flow_control,
            fates=self._fates,
            frame_cost=lambda loss: self.link.frame_cost(loss),
        )
        self._radio = medium_of(plan).make_radio(context)
        #: the same radio with a capture of its frames
        self._capture: CapturedRadio | None = None
        if plan.capture:
            self._capture = stack.enter_context(CapturedRadio(self._radio, context.folder, side, plan.scheme))
        queues = station.make_queues()
        self.loop = StationLoop(
            port=port,
            link=self.link,
            scheme=plan.scheme,
            radio=self._capture or self._radio,
            queues=queues,
            classifier=plan.classifier,
            report=self._report,
            report_interval_ns=plan.probe_interval_ms * MS,
            control=self._read_messages,
            control_fds=(_STDIN,),
        )
        self._meter = StationMeter(
            self.loop.station, self._radio.hop, queues, plan.scheme, self._driver_counts, self._fates.lost_packets
        )
        #: losses of TCP segments, and guesses of packet filters, since the last report
        self._losses: list[Loss] = []
        self._guesses: list[Guess] = []
        self._watch_losses()
        self._ready = False
        self._epoch: int | None = None
        self._usage = Usage()
        if plan.clock == "virtual":
            # what was imported meanwhile, and how long that took, depends on the packages that are installed
            grid.pause()

    def _packet(self, frame: bytes) -> Any:
        return self.plan.scheme.parse(frame).payload

    def _make_link(self) -> Link:
        rng = self._rng("link" if self._start is None else f"link {self._start}")
        return self._station.link.make(rng, time.monotonic_ns(), sized=False)

    def _rng(self, purpose: str) -> Random:
        """Return the generator for a purpose; after every change of the scenario it is a new one."""
        return self._station.rng(purpose, *((str(self._changes),) if self._changes else ()))

    def _driver_counts(self) -> DriverCounts:
        return DriverCounts(self.loop.bad_frames, self.loop.port_refusals, self._radio.unheard)

    def run_in_real_time(self) -> None:
        """Let the loop's thread, which must be this one, and the radio's run in real time. Raises PermissionError."""
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(_PRIORITY))
        self._radio.run_in_real_time(_PRIORITY)

    def about_radio(self) -> Mapping[str, Any]:
        """Return what the radio says of itself."""
        return self._radio.about()

    def _watch_losses(self) -> None:
        """Report losses while packet filters guess at them; the losses of a real air are unknown."""
        plan, scheme, reporter = self.plan, self.plan.scheme, None
        if plan.tier.fates and plan.guesses:
            reporter = LossReporter(Octets(), scheme, self._losses.append, self._guesses.append)
        self._fates.loss_reporter = self.loop.station.loss_observer = reporter
        self._fates.repeats = self._station.link.repeats

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
                    self._change(plan_of(message.scenario))
                case Watch():
                    self._radio.watch(message.watched)
                case Stop():
                    self.loop.stop()
                case _:
                    raise unexpected(message)

    def _change(self, plan: Plan) -> None:
        """Continue with another plan, which may differ in errors, link scheme and ELN only."""
        before, self.plan = self._station, plan
        self._station = after = plan.stations[self._side]
        self._changes += 1
        if after.hop.errors != before.hop.errors:
            self._radio.hop.set_errors(after.hop.make_errors(self._rng("channel")))
        if (after.link.scheme, after.link.options) != (before.link.scheme, before.link.options):
            self._switch(time.monotonic_ns())
        elif after.link.filters != before.link.filters:
            self.link = after.link.refit(self.link, sized=False)
            self._resize()
            self.loop.station.refit(self.link, time.monotonic_ns())
        self._watch_losses()

    def _switch(self, now: int) -> None:
        scheme = self.plan.scheme
        self._meter.switch(scheme)
        self.link = self._make_link()
        self._resize()
        if self._capture is not None:
            self._capture.switch(scheme)
        self.loop.switch(self.link, scheme, now)

    def _resize(self) -> None:
        buffer_bytes = self._station.hop.buffer_bytes[self.link.flow_control]
        self._radio.resize(buffer_bytes=buffer_bytes, max_frame_bytes=self.plan.max_frame_bytes)

    def _begin(self, epoch: int) -> None:
        self._epoch = epoch
        self._meter.begin(epoch)
        self._radio.begin(epoch)
        if self._fates.trace is not None:
            self._fates.trace.begin(epoch)

    def _report(self, now: int) -> None:
        # the radio does not wake at the ends of frames without a waiter
        self._radio.hop.handle_deadline(now)
        if not self._ready and self.link.established:
            self._ready = True
            write_message(Ready())
        report = None if self._epoch is None else self._meter.report(now)
        if report is None:
            return
        write_message(report)
        usage = StationRecord(
            time_ns=report.time_ns,
            station=STATIONS[self._side],
            processor_percent=self._usage.processor_percent(),
            memory_bytes=resident_bytes() if self.plan.clock == "wall" else None,
            late_events=self._radio.lateness.late_events,
        )
        write_message(usage)
        if self._fates.loss_reporter is not None:
            write_message(LossEvents(until_ns=now, losses=tuple(self._losses), guesses=tuple(self._guesses)))
        self._losses.clear()
        self._guesses.clear()
        for record in self._radio.take_records(now, report.time_ns):
            write_message(record)

    def final(self) -> StationFinal:
        """Write the last report and the trace of frames still on the air; return the final counts."""
        now = time.monotonic_ns()
        # no frame ends between the trace and the counts
        self._radio.hop.handle_deadline(now)
        for arrival in self._radio.hop.in_flight():
            self._fates.handle(arrival)
        self._report(now)
        return StationFinal(
            counts=self._meter.counts(), lateness=self._radio.lateness, airtime_ns=self._radio.hop.airtime_ns
        )


def _open_tap(config: StationConfig, mtu: int) -> Tap:
    def open_here() -> Tap:
        return Tap(config.tap, mtu=mtu, descriptor=config.tun_fd)

    return open_here() if config.namespace is None else run_in(config.namespace, open_here)


def serve(reader: MessageReader, config: StationConfig, pending: list[ToProcess]) -> None:
    """Run one station from configuration to stop."""
    with suppress(PermissionError):
        # threads that are started from here on inherit it
        os.setpriority(os.PRIO_PROCESS, 0, _NICE)
    try:
        _serve(reader, config, pending)
    except LostRadioError as error:
        write_message(Error(text=str(error)))
        os._exit(2)


def _serve(reader: MessageReader, config: StationConfig, pending: list[ToProcess]) -> None:
    with ExitStack() as stack:
        process = StationProcess(config, stack, reader)
        if process.plan.clock == "wall":
            with suppress(PermissionError):
                process.run_in_real_time()
        # in virtual time nothing is late, and no slice of time ends within an instant: a thread with such a priority
        # that yields until another one has done something would keep that one from ever doing it
        write_message(Started(radio=process.about_radio()))
        process.handle_messages(pending)
        gc.freeze()
        if not process.plan.tier.radio:
            # the cores make no reference cycles, and a collection would delay frames; GNU Radio makes cycles
            gc.disable()
        try:
            process.loop.run()
        except LostRadioError:
            write_message(process.final())
            raise
        write_message(process.final())


if __name__ == "__main__":
    spare_pandas()
    sys.exit(run_child(StationConfig, serve))
