"""The timeline of a run of tier `model`: the run is simulated again, and watched.

Rule kept: the same scenario, seed and checkout give the same run, so the second simulation is the run itself. Another
result than the stored one is an error: the timeline would be that of another run.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from typing_extensions import override

from channel.hop import Arrival
from common.plain_json import object_of
from common.sides import Side
from tcpip.segment import IpPacket, Segment
from testbed.errors import FadelabError
from testbed.exports.packets import Packets, content_of
from testbed.exports.timeline import Frame, Passing, Timeline
from testbed.model.link_network import LinkNetwork
from testbed.model.model_run import Simulation
from testbed.model.traffic import Traffic
from testbed.model.watch import Watch
from testbed.results.frame_trace import outcome_of
from testbed.scenario.run_plan import Plan

_FATES = {"ok": "ok", "payload": "damaged", "missed": "erased"}


def from_model(folder: Path, plan: Plan, records: Mapping[str, Sequence[Mapping[str, Any]]]) -> Timeline:
    """Return the timeline of a run of tier model. Raises FadelabError."""
    try:
        stored = object_of((folder / "summary.json").read_text())
    except (OSError, ValueError):
        raise FadelabError(f"{folder}: has no result: the run failed, was stopped or goes on") from None
    watch = _Recorder(plan)
    summary = Simulation(plan, watch=watch, begun=watch.begin, timed=True).run()
    repeated = json.loads(json.dumps(replace(summary, folder=None).plain()))
    if "quality" not in stored:
        # of a version that did not have it
        del repeated["quality"]
    if repeated != stored:
        wrong = next((key for key in {**repeated, **stored} if repeated.get(key) != stored.get(key)), "a null")
        raise FadelabError(
            f"{folder}: this checkout gives another result ({wrong} is {repeated.get(wrong)!r}, stored is "
            f"{stored.get(wrong)!r}); use the version that its manifest.json names"
        )
    return Timeline(
        run=folder.name,
        tier=plan.tier.name,
        scheme=plan.scheme.name,
        epoch_ns=None,
        packets=watch.packets.found,
        sent=watch.sent_packets,
        received=watch.received_packets,
        frames=watch.frames(),
        records=records,
        crossed=watch.left_packets,
    )


class _Recorder(Watch):
    """Keeps the packets and frames of a run."""

    def __init__(self, plan: Plan) -> None:
        self._stations = plan.stations
        ports = {port: flow for work in plan.workloads for port, flow in work.ports().items()}
        #: flows with a connection of their own between h2 and BAS, whose numbers are not those on the air
        self._apart = {
            flow
            for work in plan.workloads
            if plan.split is not None and work.direction == "down"
            for flow in work.ports().values()
        }
        self.packets = Packets(ports)
        self.sent_packets: list[Passing] = []
        self.received_packets: list[Passing] = []
        self.left_packets: list[Passing] = []
        #: by identity; the packets are kept, so that no other gets the identity of one
        self._numbers: dict[int, tuple[int, IpPacket]] = {}
        #: with times of the network's clock, which began before the run's time 0
        self._carried: list[Frame] = []
        self._epoch = 0
        self._network: LinkNetwork | None = None

    def begin(self, network: LinkNetwork, traffic: Traffic) -> None:
        self._network, self._epoch = network, network.clock.now

    @override
    def sent(self, flow: str, segment: Segment, now: int) -> None:
        if flow not in self._apart:
            self.sent_packets.append(Passing(now, self._number(segment)))

    @override
    def received(self, flow: str, segment: Segment, now: int) -> None:
        if flow not in self._apart:
            self.received_packets.append(Passing(now, self._number(segment)))

    @override
    def left(self, side: Side, packet: IpPacket, now: int) -> None:
        self.left_packets.append(Passing(now, self._number(packet)))

    @override
    def carried(self, side: Side, arrival: Arrival[Any], now: int) -> None:
        kind, fields, payload = content_of(arrival.frame)
        fate = _FATES[outcome_of(arrival.verdict).value]
        nbytes = arrival.frame.nbytes
        self._carried.append(
            Frame(
                number=0,
                side=side,
                start_ns=arrival.sent_at - self._stations[side].hop.frame_ns(nbytes),
                sent_ns=arrival.sent_at,
                arrived_ns=None if fate == "erased" else arrival.arrived_at,
                nbytes=nbytes,
                kind=kind,
                fate=fate,
                fields=fields,
                packet=self._number(payload) if isinstance(payload, IpPacket) else None,
            )
        )

    def frames(self) -> list[Frame]:
        """Return all frames in the order of their ends, those still on their way, too: their fate is decided."""
        assert self._network is not None
        for side, station in self._network.stations.items():
            for arrival in station.hop.in_flight():
                self.carried(side, arrival, 0)
        epoch = self._epoch
        return [
            replace(
                frame,
                number=number,
                start_ns=frame.start_ns - epoch,
                sent_ns=frame.sent_ns - epoch,
                arrived_ns=None if frame.arrived_ns is None else frame.arrived_ns - epoch,
            )
            for number, frame in enumerate(sorted(self._carried, key=lambda frame: frame.sent_ns))
        ]

    def _number(self, packet: IpPacket) -> int:
        known = self._numbers.get(id(packet))
        if known is not None:
            return known[0]
        segment = packet if isinstance(packet, Segment) else None
        number = self.packets.add(segment, packet.nbytes, self.packets.flow_of(packet.flow))
        self._numbers[id(packet)] = number, packet
        return number
