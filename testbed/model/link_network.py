"""The network of a scenario in virtual time: h1 - ST ~~ BAS - h2.

Rules kept here: everything random comes from the scenario's seed, under the same names as on the real-time tiers, so
both directions meet the same air as there. The link is up before the run's time 0.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from channel.hop import Arrival
from common.sides import Host, Side
from common.units import MS
from hosts.engine.packets import Deliver, taker
from hosts.engine.stack import Stack
from hosts.kernel.network import AddressPlan
from tcpip.access import Objects
from tcpip.segment import IpPacket
from testbed.errors import FadelabError
from testbed.model.radio_link import Direction, RadioLink
from testbed.model.split_station import Splitter
from testbed.model.station_driver import ModelStation
from testbed.model.virtual_clock import VirtualClock
from testbed.model.wired_link import Wire
from testbed.results.frame_trace import FrameTrace
from testbed.results.ground_truth import GuessScore, LossReporter
from testbed.scenario.run_plan import Plan, SplitPlan, StationPlan, make_rng

#: the LAN between h1 and ST, as in SLACP section 4
LAN_BPS: Final = 100_000_000
LAN_DELAY_NS: Final = 0
#: how long the link may take to come up
_READY_S: Final = 30
#: from the link being up to the run's time 0: this, and up to a second more, so that the run's start has no fixed place
#: on the grid of a DAMA's superframes
_LEAD_NS: Final = 200 * MS
_LEAD_SPREAD_NS: Final = 1_000 * MS

#: called with the side that a frame was sent on, and the frame with its fate
OnArrival = Callable[[Side, Arrival[Any]], None]
#: called with the side that a packet was sent on, and the packet as it leaves the far station
OnCrossing = Callable[[Side, IpPacket], None]


class LinkNetwork:
    """Two hosts and two stations, built to a plan; `stations` are by the side they transmit on."""

    def __init__(
        self,
        plan: Plan,
        on_arrival: OnArrival | None = None,
        traces: Mapping[Side, FrameTrace] | None = None,
        on_crossing: OnCrossing | None = None,
    ) -> None:
        self._seed = seed = plan.seed
        self._on_crossing = on_crossing
        self._traces = traces or {}
        self.clock = clock = VirtualClock()
        addresses = AddressPlan()
        to_st = Wire(clock, lambda packet: st.take(packet), rate_bps=LAN_BPS, delay_ns=LAN_DELAY_NS)
        to_bas = Wire(clock, lambda packet: enter_bas(packet), rate_bps=plan.wire_bps, delay_ns=plan.wire_delay_ns)
        h1 = Stack(clock, int(addresses.h1.ip), to_st, make_rng(seed, "iss", "h1"))
        h2 = Stack(clock, int(addresses.h2.ip), to_bas, make_rng(seed, "iss", "h2"))
        to_h1 = Wire(clock, h1, rate_bps=LAN_BPS, delay_ns=LAN_DELAY_NS)
        to_h2 = Wire(clock, h2, rate_bps=plan.wire_bps, delay_ns=plan.wire_delay_ns)
        #: compares the packet filters' guesses with the true causes, where any filter guesses
        self.guess_score = GuessScore() if plan.guesses else None
        #: where the scheme splits TCP connections
        self.splitter = None
        if plan.split is not None:
            self.splitter = _splitter(clock, plan.split, seed, to_h2, lambda packet: bas.take(packet))
        leave_bas: Deliver = to_h2 if self.splitter is None else self.splitter.handle_wireless
        radio_link = RadioLink(
            clock,
            plan.scheme,
            up=self._direction(plan.stations["up"], leave_bas, on_arrival),
            down=self._direction(plan.stations["down"], to_h1, on_arrival),
            max_frame_bytes=plan.max_frame_bytes,
            repeats=plan.stations["up"].link.repeats,
            classifier=plan.classifier,
            guess_score=self.guess_score,
        )
        self.stations: Mapping[Side, ModelStation] = radio_link.stations
        st, bas = self.stations["up"], self.stations["down"]
        enter_bas = bas.take if self.splitter is None else self.splitter.handle_wired
        self.hosts: Mapping[Host, Stack] = {"h1": h1, "h2": h2}
        self._present, self._changes = plan, 0

    def _direction(self, plan: StationPlan, deliver: Deliver, on_arrival: OnArrival | None) -> Direction:
        link = plan.link.make(plan.rng("link"), self.clock.now, sized=True)
        return Direction(
            link=link,
            hop=plan.hop.make(plan.hop.buffer_bytes[link.flow_control]),
            queues=plan.make_queues(),
            deliver=deliver if self._on_crossing is None else self._told(self._on_crossing, plan.side, deliver),
            frame_ns=plan.hop.frame_ns,
            trace=self._traces.get(plan.side),
            on_arrival=None if on_arrival is None else lambda arrival: on_arrival(plan.side, arrival),
        )

    def _told(self, tell: OnCrossing, side: Side, deliver: Deliver) -> Deliver:
        """Return what tells of each packet, and then delivers it."""
        to = taker(deliver)

        def told(packet: IpPacket) -> None:
            tell(side, packet)
            to.take(packet)

        return told

    def change(self, plan: Plan) -> None:
        """Go on with another plan, which may differ in errors, link scheme and packet filters only."""
        before, self._present = self._present, plan
        self._changes += 1
        number = str(self._changes)
        for side, station in self.stations.items():
            there, after = before.stations[side], plan.stations[side]
            if after.hop.errors != there.hop.errors:
                station.hop.set_errors(after.hop.make_errors(after.rng("channel", number)))
            if (after.link.scheme, after.link.options) != (there.link.scheme, there.link.options):
                link = after.link.make(after.rng("link", number), self.clock.now, sized=True)
                buffer_bytes = after.hop.buffer_bytes[link.flow_control]
                station.switch(link, plan.scheme, buffer_bytes=buffer_bytes, max_frame_bytes=plan.max_frame_bytes)
            elif after.link.filters != there.link.filters:
                link = after.link.refit(station.link, sized=True)
                station.refit(link, buffer_bytes=after.hop.buffer_bytes[link.flow_control])
        reporter = None
        if self.guess_score is not None:
            reporter = LossReporter(Objects(), plan.scheme, self.guess_score.handle_loss, self.guess_score.handle_guess)
        for side, station in self.stations.items():
            station.tell(reporter, repeats=plan.stations[side].link.repeats)
            station.go_on()

    def restart(self, side: Side) -> None:
        """Let the station that transmits on `side` die, and another take its place; the far one goes on."""
        self._changes += 1
        station, there = self.stations[side], self._present.stations[side]
        link = there.link.make(there.rng("link", str(self._changes)), self.clock.now, sized=True)
        station.restart(link, self._present.scheme, buffer_bytes=there.hop.buffer_bytes[link.flow_control])
        station.go_on()

    def bring_up(self) -> int:
        """Bring the link up; return the run's time 0, which lies ahead. Raises FadelabError."""
        clock = self.clock
        while not all(station.link.established for station in self.stations.values()):
            if clock.now >= _READY_S * 1000 * MS:
                raise FadelabError(f"the stations have not found each other in {_READY_S} s: no frames get through")
            clock.run(until=clock.now + MS)
        return clock.now + _LEAD_NS + make_rng(self._seed, "lead").randrange(_LEAD_SPREAD_NS)


def _splitter(clock: VirtualClock, plan: SplitPlan, seed: int, send_wired: Deliver, send_wireless: Deliver) -> Splitter:
    assert plan.wired is not None
    assert plan.wireless is not None
    return Splitter(
        clock,
        wired=plan.wired,
        wireless=plan.wireless,
        buffer_bytes=plan.buffer_bytes,
        send_wired=send_wired,
        send_wireless=send_wireless,
        rng=make_rng(seed, "iss", "bas"),
    )
