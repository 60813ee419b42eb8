"""One station of a run: `python -m testbed.station` joins a TAP to the medium, in its own namespace.

On stdin: the configuration (`station_config` makes it), `{"go": EPOCH}` with the CLOCK_MONOTONIC ns of the run's
start, and `{"stop": true}` or the end of the input. On stdout: `{"ready": true}` once the link is up, then
`{"link": {...}}` at every interval, `{"final": {...}}` at the end, or `{"error": "one line"}` and exit status 2.

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
from dataclasses import asdict
from pathlib import Path
from typing import Any

from channel.errors import Fate
from channel.hop import Arrival
from channel.replay import Outcome
from hosts.jsonlines import Orders, run_child, say
from hosts.namespaces import enter
from hosts.network import TAP_NAME
from hosts.tap import Tap
from linklayer.classify import Classifier
from linklayer.link import Link
from linklayer.queues import DropTail
from linklayer.schemes import SCHEMES
from linklayer.station import Station
from testbed.emulated import EmulatedRadio, Lateness
from testbed.medium import buffer_bytes, frame_ms, frame_ns, make_hop, make_rng
from testbed.scenario import MS, SIDES, Scenario, Side
from testbed.scenario_file import validate

_STDIN = 0
_CHANNELS = 2
#: real-time scheduling (sched(7)), so that frames leave on time whatever else runs; the kernel keeps 5 % for the rest
_PRIORITY = 1
_OUTCOMES = {Fate.INTACT: Outcome.OK, Fate.DAMAGED: Outcome.PAYLOAD, Fate.ERASED: Outcome.MISSED}


def station_config(
    scenario: Scenario, side: Side, *, namespace: str, peer_fd: int, trace: Path | None
) -> dict[str, Any]:
    """The configuration line for the station that transmits on `side`; `trace` is where its frames' fates go."""
    return {
        "scenario": scenario.model_dump(mode="json", exclude_defaults=True),
        "side": side,
        "namespace": namespace,
        "peer_fd": peer_fd,
        "trace": None if trace is None else str(trace),
    }


class StationProcess:
    """Builds a station from its configuration and reports what it does."""

    def __init__(self, config: Mapping[str, Any], stack: ExitStack, orders: Orders) -> None:
        scenario = validate(config["scenario"], "scenario")
        side: Side = config["side"]
        self._side = side
        self._orders = orders
        enter(config["namespace"])
        scheme = SCHEMES[scenario.link.scheme]
        out, back = (scenario.channel.direction(s) for s in (side, SIDES[1 - SIDES.index(side)]))
        self._out = out
        self.link: Link = scheme.make(
            # the peer's frames set our ACK timer
            scenario.link.slacp.config(frame_ms(back, scenario.max_frame_bytes)),
            make_rng(scenario.seed, "link", side),
            time.monotonic_ns(),
        )
        self._queues = [DropTail(scenario.link.ip_queue_bytes) for _ in range(_CHANNELS)]
        mac_buffer_bytes = buffer_bytes(
            out, scenario.max_frame_bytes, scenario.link.ip_queue_bytes, self.link.flow_control
        )
        self._radio = EmulatedRadio(
            make_hop(out, side, scenario.seed, mac_buffer_bytes),
            stack.enter_context(socket.socket(fileno=config["peer_fd"])),
            max_frame_bytes=scenario.max_frame_bytes,
            late_bound_ns=round(scenario.timing.late_bound_ms * MS),
            judged=self._judged,
        )
        self._trace = None
        #: the frames judged before the run's start is known: start, bytes, fate
        self._early: list[tuple[int, int, Fate]] = []
        if config["trace"] is not None:
            # pyarrow behind it: not for the run's own process, which imports this module too
            from channel.trace import TraceWriter

            self._trace = stack.enter_context(
                TraceWriter(Path(config["trace"]), link=side, producer="fadelab emulated")
            )
        tap = stack.enter_context(Tap(TAP_NAME, mtu=scenario.mtu))
        self.station = Station(
            port=tap,
            link=self.link,
            scheme=scheme,
            radio=self._radio,
            queues=self._queues,
            classifier=Classifier(scenario.link.fast.dscp, scenario.link.fast.protocols),
            report=self._report,
            report_interval_ns=scenario.timing.probe_interval_ms * MS,
            control=self._listen,
            control_fds=(_STDIN,),
        )
        self._ready = False
        self._epoch: int | None = None
        self._last = (0, 0, 0)

    def _judged(self, arrival: Arrival[bytes]) -> None:
        if self._trace is None:
            return
        nbytes, fate = len(arrival.frame), arrival.verdict.fate
        started_at = arrival.sent_at - frame_ns(self._out, nbytes)
        if self._epoch is None:
            self._early.append((started_at, nbytes, fate))
        else:
            self._trace.write(started_at - self._epoch, nbytes, _OUTCOMES[fate])

    def _listen(self, fd: int) -> None:
        orders = self._orders.read()
        if orders is None:
            self.station.stop()
        else:
            self.obey(orders)

    def obey(self, orders: list[dict[str, Any]]) -> None:
        """Do what the run says."""
        for order in orders:
            if "go" in order:
                self._epoch = int(order["go"])
                # what was late while the processes still started is nobody's result
                self._radio.lateness = Lateness()
                self._last = (self._epoch, *self._bytes())
                # a replay by index repeats every verdict only if none is missing
                for started_at, nbytes, fate in self._early:
                    assert self._trace is not None
                    self._trace.write(started_at - self._epoch, nbytes, _OUTCOMES[fate])
                self._early.clear()
            if order.get("stop"):
                self.station.stop()

    def _bytes(self) -> tuple[int, int]:
        return self._radio.hop.bytes, self.link.counters().useful_bytes

    def _report(self, now: int) -> None:
        if not self._ready and self.link.established:
            self._ready = True
            say({"ready": True})
        if self._epoch is not None and now > self._last[0]:
            last_at, last_sent, last_useful = self._last
            sent, useful = self._bytes()
            self._last = (now, sent, useful)
            seconds = (now - last_at) / 1e9
            rates = {
                "time_ns": now - self._epoch,
                "throughput_bps": (sent - last_sent) * 8 / seconds,
                "goodput_bps": (useful - last_useful) * 8 / seconds,
            }
            say({"link": {**rates, **self._counts()}})

    def _counts(self) -> dict[str, int]:
        """What this station has sent (on its own direction) and repaired (on the other)."""
        counters, station, hop = self.link.counters(), self.station.counters, self._radio.hop
        return {
            "frames": hop.frames,
            "frame_bytes": hop.bytes,
            "packets": counters.packets,
            "retransmissions": counters.retransmissions,
            "fec_frames": counters.fec_frames,
            "residual_losses": counters.residual_losses,
            "queue_bytes": sum(queue.nbytes for queue in self._queues),
            "congestion_losses": sum(queue.drops for queue in self._queues) + station.radio_refusals,
            "corruption_losses": hop.erased + hop.damaged,
            "fec_repairs": counters.fec_repairs,
            "delivered": counters.delivered,
            "delivered_bytes": counters.delivered_bytes,
            "duplicates": counters.duplicates,
            "bad_frames": station.bad_frames + counters.refused,
            "sessions": counters.sessions,
            "port_refusals": station.port_refusals,
        }

    def final(self) -> dict[str, Any]:
        """The station's last word, after its last report; the trace gets what is still on the air, fate decided."""
        for arrival in self._radio.hop.in_flight():
            self._judged(arrival)
        self._report(time.monotonic_ns())
        return {**self._counts(), **asdict(self._radio.lateness)}


def serve(orders: Orders, config: dict[str, Any], waiting: list[dict[str, Any]]) -> None:
    """Run one station from configuration to stop."""
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(_PRIORITY))
    with ExitStack() as stack:
        process = StationProcess(config, stack, orders)
        process.obey(waiting)
        # the cores make no cycles; a collector's pause would be a late frame
        gc.freeze()
        gc.disable()
        process.station.run()
        say({"final": process.final()})


if __name__ == "__main__":
    sys.exit(run_child(serve))
