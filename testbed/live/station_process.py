"""One station of a run: `python -m testbed.live.station_process` joins a TAP to the medium, in its own namespace.

On stdin: the configuration (`station_config` makes it), `{"go": EPOCH}` with the CLOCK_MONOTONIC ns of the run's
start, and `{"stop": true}` or the end of the input; while it runs, `{"scenario": {...}}` with other errors or another
link scheme than before, and `{"watch": true}` or false: whether anybody looks at its radio. On stdout:
`{"started": true}`, `{"ready": true}` once the link is up, then `{"link": {...}}` (and with a radio `{"phy": {...}}`
and, watched, `{"view": {...}}`; with packet filters on either side and without a radio `{"truth": {...}}`) at every
interval, `{"station": {...}}` with them, `{"final": {...}}` at the end, or `{"error": "one line"}` and exit status 2.

Rule kept: it ends when told to or when its stdin closes, so a killed run leaves no station behind. Ctrl-C is the
run's business.
"""

import gc
import os
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from channel.errors import Fate
from channel.hop import Arrival
from common.sides import Side, other
from common.units import MS
from hosts.jsonlines import Orders, run_child, say
from hosts.namespaces import enter
from hosts.network import TAP_NAME
from hosts.tap import Tap
from linklayer.classify import Classifier
from linklayer.filters.filter import Guess
from linklayer.link import FrameError, Link, LinkCounters
from linklayer.schemes import SCHEMES
from tcpip.access import Octets
from testbed.live.capture import CapturedRadio
from testbed.live.emulated_radio import EmulatedRadio
from testbed.live.hop_radio import HopRadio, Lateness
from testbed.live.process_usage import Usage, resident_bytes
from testbed.live.station_loop import StationLoop
from testbed.results.frame_trace import FrameTrace, outcome_of
from testbed.results.ground_truth import Loss, Witness
from testbed.results.lost_packets import LostPackets
from testbed.results.station_counts import StationCounts, StationFinal, StationReport
from testbed.scenario.channel_models import buffer_bytes, frame_ns, make_errors, make_hop, make_rng
from testbed.scenario.file import validate
from testbed.scenario.ip_queues import make_queues
from testbed.scenario.link_ends import has_guessers, make_link, refit
from testbed.scenario.schema import Scenario

if TYPE_CHECKING:
    from testbed.live.receiver_stats import Hearing
    from testbed.live.receiver_view import Viewfinder

_STDIN = 0
#: real-time scheduling (sched(7)), so that frames leave on time whatever else runs; the kernel keeps 5 % for the rest
_PRIORITY = 1


def station_config(
    scenario: Scenario,
    side: Side,
    *,
    wiring: Mapping[str, Any],
    folder: Path,
    namespace: str | None = None,
    tap: str = TAP_NAME,
    start: int | None = None,
) -> dict[str, Any]:
    """The configuration line for the station that transmits on `side`.

    `wiring` is what the tier's medium gives it: a socket's `peer_fd` or a radio's `device`; and `tun_fd`, an open
    /dev/net/tun, where the station may not open it. Traces and recordings go to `folder`. Without a namespace it stays
    where it is started. `start` tells this start from others with the same seed: where the peer goes on, the same
    random numbers would look like the station it has a session with.
    """
    return {
        "scenario": scenario.model_dump(mode="json", exclude_defaults=True),
        "side": side,
        "namespace": namespace,
        "tap": tap,
        "folder": str(folder),
        "start": start,
        **wiring,
    }


@dataclass(slots=True)
class _Unrepaired:
    """Frames lost while the scheme repaired nothing: in the modelled medium, and in the air towards this station."""

    taken: int = 0
    unheard: int = 0
    #: all lost frames at the last count
    _before: tuple[int, int] = (0, 0)

    def count(self, taken: int, unheard: int, repairs: bool) -> None:
        if not repairs:
            self.taken += taken - self._before[0]
            self.unheard += unheard - self._before[1]
        self._before = taken, unheard


class StationProcess:
    """Builds a station from its configuration and reports what it does."""

    def __init__(self, config: Mapping[str, Any], stack: ExitStack, orders: Orders) -> None:
        scenario = validate(config["scenario"], "scenario")
        side: Side = config["side"]
        self._side = side
        self._orders = orders
        if config["namespace"] is not None:
            enter(config["namespace"])
        self._scenario = scenario
        self._out = scenario.channel.direction(side)
        self._scheme = SCHEMES[scenario.link.scheme]
        #: changes of the scenario so far
        self._changes = 0
        self._start = config.get("start")
        self.link = self._make_link()
        #: what links before this one have done
        self._before = LinkCounters()
        self._queues = make_queues(scenario, side)
        #: what the station's own transmissions met, where the medium is modelled
        self._trace: FrameTrace | None = None
        #: what its receiver heard, where there is a radio
        self._hearing: Hearing | None = None
        #: and what that looks like
        self._view: Viewfinder | None = None
        make_radio = self._onair_radio if "device" in config else self._emulated_radio
        self._radio = make_radio(config, scenario, stack)
        #: the same, with all its frames written down
        self._capture: CapturedRadio | None = None
        if scenario.capture:
            folder = Path(config["folder"])
            self._capture = stack.enter_context(CapturedRadio(self._radio, folder, side, self._scheme))
        tap = stack.enter_context(Tap(config["tap"], mtu=scenario.mtu, descriptor=config.get("tun_fd")))
        self.loop = StationLoop(
            port=tap,
            link=self.link,
            scheme=self._scheme,
            radio=self._capture or self._radio,
            queues=self._queues,
            classifier=Classifier(scenario.link.fast.dscp, scenario.link.fast.protocols),
            report=self._report,
            report_interval_ns=scenario.timing.probe_interval_ms * MS,
            control=self._listen,
            control_fds=(_STDIN,),
        )
        #: what was lost of TCP, and what packet filters have guessed, since the last report
        self._losses: list[Loss] = []
        self._guesses: list[Guess] = []
        self._witness: Witness | None = None
        self._watch_losses()
        self._ready = False
        self._epoch: int | None = None
        self._last = (0, 0, 0)
        self._usage = Usage()
        self._unrepaired = _Unrepaired()
        #: while packet filters send packets again
        self._lost_packets = LostPackets()

    def _make_link(self) -> Link:
        """Return a new link of the scenario's scheme."""
        rng = self._rng("link" if self._start is None else f"link {self._start}")
        return make_link(self._scenario, self._side, rng, time.monotonic_ns(), sized=False)

    def _rng(self, purpose: str) -> Random:
        """Return the generator for a purpose; another one after every change of the scenario."""
        changes = (str(self._changes),) if self._changes else ()
        return make_rng(self._scenario.seed, purpose, self._side, *changes)

    def _emulated_radio(self, config: Mapping[str, Any], scenario: Scenario, stack: ExitStack) -> EmulatedRadio:
        if scenario.trace:
            path = Path(config["folder"]) / f"trace-{self._side}.parquet"
            self._trace = stack.enter_context(FrameTrace(path, link=self._side, producer="fadelab emulated"))
        return EmulatedRadio(
            make_hop(self._out, self._side, scenario.seed, self._mac_buffer_bytes(scenario)),
            stack.enter_context(socket.socket(fileno=config["peer_fd"])),
            max_frame_bytes=scenario.max_frame_bytes,
            late_bound_ns=round(scenario.timing.late_bound_ms * MS),
            judged=self._judged,
        )

    def _onair_radio(self, config: Mapping[str, Any], scenario: Scenario, stack: ExitStack) -> HopRadio:
        # GNU Radio behind it: not for a run without
        from testbed.live.receiver_stats import Hearing
        from testbed.live.receiver_view import Viewfinder
        from testbed.live.usrp_radio import OnAirRadio, open_transceiver, radio_delay_ns

        side, far = self._side, other(self._side)
        folder = Path(config["folder"])
        recording = folder / f"iq-{far}" if scenario.radio.record else None
        transceiver = stack.enter_context(open_transceiver(scenario, side, config["device"], recording))
        trace = None
        if scenario.trace:
            path = folder / f"trace-{far}.parquet"
            trace = stack.enter_context(FrameTrace(path, link=far, producer=f"fadelab {scenario.tier}"))
        self._hearing = Hearing(far, scenario.radio.rate_sps, trace)
        self._view = Viewfinder(far, transceiver)
        # the time on the air is part of the modelled delay
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
            heard=self._hearing.handle_frame,
        )

    def _mac_buffer_bytes(self, scenario: Scenario) -> int:
        return buffer_bytes(self._out, scenario.max_frame_bytes, scenario.link.ip_queue_bytes, self.link.flow_control)

    def _watch_losses(self) -> None:
        """Have the losses told while packet filters guess at them; a real air does not tell of its own."""
        scheme = self._scheme
        known = self._hearing is None and has_guessers(self._scenario)
        self._witness = (
            Witness(Octets(), scheme.name, scheme.repairs, self._losses.append, self._guesses.append) if known else None
        )
        self.loop.station.witness = self._witness

    def _judged(self, arrival: Arrival[bytes]) -> None:
        if self._witness is not None and not self._scheme.repairs and arrival.verdict.fate is not Fate.INTACT:
            # after a change of schemes there are frames that are none of the new one
            with suppress(FrameError):
                self._witness.taken(self._scheme.parse(arrival.frame).payload, arrival.arrived_at)
        if self._scenario.link.resends:
            self._lost_packets.judge(hash(arrival.frame), arrival.verdict.fate is not Fate.INTACT)
        if self._trace is not None:
            nbytes = len(arrival.frame)
            started_at = arrival.sent_at - frame_ns(self._out, nbytes)
            self._trace.write(started_at, nbytes, outcome_of(arrival.verdict))

    def _listen(self, fd: int) -> None:
        orders = self._orders.read()
        if orders is None:
            self.loop.stop()
        else:
            self.obey(orders)

    def obey(self, orders: list[dict[str, Any]]) -> None:
        """Do what the run says."""
        for order in orders:
            if "go" in order:
                self._begin(int(order["go"]))
            if "scenario" in order:
                self._become(validate(order["scenario"], "scenario"))
            if "watch" in order and self._view is not None:
                self._view.watched = bool(order["watch"])
            if order.get("stop"):
                self.loop.stop()

    def _become(self, scenario: Scenario) -> None:
        """Go on by another scenario, which differs in nothing but errors, link scheme and ELN."""
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
        """Go on with the scenario's scheme."""
        # what was lost until now met the old scheme
        self._counts()
        old, self._scheme = self.link, SCHEMES[self._scenario.link.scheme]
        self.link = self._make_link()
        self._resize()
        if self._capture is not None:
            self._capture.switch(self._scheme)
        self.loop.switch(self.link, self._scheme, now)
        self._before += old.counters()

    def _resize(self) -> None:
        """Give the radio what the present link asks for."""
        self._radio.resize(
            buffer_bytes=self._mac_buffer_bytes(self._scenario), max_frame_bytes=self._scenario.max_frame_bytes
        )

    def _begin(self, epoch: int) -> None:
        self._epoch = epoch
        # what was late while the processes still started is nobody's result
        self._radio.lateness = Lateness()
        self._last = (epoch, *self._bytes())
        if self._trace is not None:
            self._trace.begin(epoch)
        if self._hearing is not None:
            self._hearing.begin(epoch)

    def _bytes(self) -> tuple[int, int]:
        return self._radio.hop.bytes, self._link_counters().useful_bytes

    def _link_counters(self) -> LinkCounters:
        return self._before + self.link.counters()

    def _report(self, now: int) -> None:
        if not self._ready and self.link.established:
            self._ready = True
            say({"ready": True})
        if self._epoch is not None and now > self._last[0]:
            last_at, last_sent, last_useful = self._last
            sent, useful = self._bytes()
            self._last = (now, sent, useful)
            seconds = (now - last_at) / 1e9
            report = StationReport(
                time_ns=now - self._epoch,
                scheme=self._scheme.name,
                established=self.link.established,
                throughput_bps=(sent - last_sent) * 8 / seconds,
                goodput_bps=(useful - last_useful) * 8 / seconds,
                counts=self._counts(),
            )
            say({"link": asdict(report)})
            usage = {"processor_percent": self._usage.processor_percent(), "memory_bytes": resident_bytes()}
            say({"station": {"time_ns": now - self._epoch, **usage}})
            if self._witness is not None:
                say({"truth": {"until": now, "losses": self._losses[:], "guesses": self._guesses[:]}})
            self._losses.clear()
            self._guesses.clear()
            if self._hearing is not None:
                say({"phy": asdict(self._hearing.take_record(now - self._epoch))})
            if self._view is not None and (view := self._view.poll(now, now - self._epoch)) is not None:
                say({"view": asdict(view)})

    def _counts(self) -> StationCounts:
        """What this station has sent (on its own direction), heard and repaired (on the other)."""
        counters, loop, hop = self._link_counters(), self.loop, self._radio.hop
        unheard = 0 if self._hearing is None else self._hearing.corrupted + self._hearing.missed
        self._unrepaired.count(hop.erased + hop.damaged, unheard, self._scheme.repairs)
        return StationCounts.of(
            counters,
            hop,
            self._queues,
            congestion_losses=loop.station.congestion_losses,
            unheard=unheard,
            unrepaired_taken=self._unrepaired.taken - self._lost_packets.spared,
            unrepaired_unheard=self._unrepaired.unheard,
            bad_frames=loop.counters.bad_frames + counters.refused,
            port_refusals=loop.counters.port_refusals,
            repeats=self._lost_packets.repeats,
        )

    def final(self) -> dict[str, Any]:
        """The station's last word, after its last report; the trace gets what is still on the air, fate decided."""
        for arrival in self._radio.hop.in_flight():
            self._judged(arrival)
        self._report(time.monotonic_ns())
        return asdict(StationFinal(counts=self._counts(), **asdict(self._radio.lateness)))


def serve(orders: Orders, config: dict[str, Any], waiting: list[dict[str, Any]]) -> None:
    """Run one station from configuration to stop."""
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(_PRIORITY))
    with ExitStack() as stack:
        process = StationProcess(config, stack, orders)
        say({"started": True})
        process.obey(waiting)
        gc.freeze()
        if "device" not in config:
            # the cores make no cycles, and a pause would be a late frame; GNU Radio makes some in every call of a block
            gc.disable()
        process.loop.run()
        say({"final": process.final()})


if __name__ == "__main__":
    sys.exit(run_child(serve))
