"""The network of the COHERENCE paper (figure 6) in virtual time: a bottleneck, and a wireless link before or behind it.

        s1 -- r1 -- bottleneck -- r2 ~~ wireless ~~ d1            last hop: the mobile host receives
        s1 ~~ wireless ~~ r1 -- bottleneck -- r2 -- d1            first hop: the mobile host sends
        s1 -- r1 -- bottleneck -- r2 ~~ wireless ~~ r3 -- d1      middle
        s2 -- r1 -- bottleneck -- r2 -- d2                        cross traffic: UDP, on and off

The other lines are wires of 10 Mbit/s and 1 ms. The mobile end of the wireless link is beside the mobile host; in the
middle it is at r3.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import Any, Final, Literal

from channel.errors import ErrorModel
from channel.hop import Arrival
from common.sides import Side, other
from common.units import MS
from hosts.engine.content import Numbers
from hosts.engine.context import Context, ignore
from hosts.engine.datagrams import UdpSender
from hosts.engine.packets import Datagram, Taker
from hosts.engine.probe import ConnectionProbe
from hosts.engine.stack import Stack
from linklayer.queues import Queue
from tcpip.segment import ECT0, IpPacket, Segment
from testbed.model.radio_link import RadioLinkConfig, make_radio_link
from testbed.model.traffic import StackDatagrams
from testbed.model.virtual_clock import VirtualClock
from testbed.model.wired_link import Router, Wire
from testbed.results.ground_truth import GuessScore, LossReporter
from testbed.scenario.run_plan import make_rng

Position = Literal["last", "first", "middle"]
#: direction of the data on the wireless link, by its position
DATA_SIDES: Final[dict[Position, Side]] = {"last": "down", "first": "up", "middle": "down"}
#: addresses of s1, s2, d1 and d2
_S1, _S2, _D1, _D2 = 0x0A01_0001, 0x0A01_0002, 0x0A02_0001, 0x0A02_0002
_CROSS_PORT: Final = 5801


@dataclass(frozen=True, kw_only=True)
class RadioPathConfig:
    """The lines of the network; the defaults are the paper's."""

    position: Position = "last"
    lan_bps: int = 10_000_000
    lan_delay_ns: int = 1 * MS
    bottleneck_bps: int = 1_500_000
    bottleneck_delay_ns: int = 20 * MS
    radio: RadioLinkConfig = field(default_factory=lambda: RadioLinkConfig(mtu_bytes=1000))
    #: whether queues may mark the cross traffic
    cross_ect: bool = True


class RadioPath:
    """The network. `queue` and `radio_queue` are those of the bottleneck and of the wireless link for data.

    Packets are lost to congestion in these two alone. `make_errors` makes the error model of each direction of the
    wireless link. `on_data(arrival)` is called for every frame that carries a packet in the direction of the data.
    """

    def __init__(
        self,
        clock: VirtualClock,
        config: RadioPathConfig,
        *,
        seed: int,
        queue: Queue,
        radio_queue: Queue,
        make_errors: Callable[[Side], ErrorModel],
        on_data: Callable[[Arrival[Any]], None] | None = None,
    ) -> None:
        self.clock, self._seed, self._config = clock, seed, config
        #: compares the guesses of the packet filters with the true causes
        self.guess_score = GuessScore()
        #: datagrams of the cross traffic that have come
        self.cross_packets = 0
        rate, delay_ns = config.bottleneck_bps, config.bottleneck_delay_ns
        to_sources, to_sinks = Router(), Router()
        self.bottleneck = Wire(clock, to_sinks, rate_bps=rate, delay_ns=delay_ns, queue=queue)
        back = Wire(clock, to_sources, rate_bps=rate, delay_ns=delay_ns)
        data_side = DATA_SIDES[config.position]
        ack_side = other(data_side)

        def lan(to: Taker) -> Wire:
            return Wire(clock, to, rate_bps=config.lan_bps, delay_ns=config.lan_delay_ns)

        # the wireless link needs the hosts, and these need the link
        behind_radio = {side: Router() for side in (data_side, ack_side)}
        self.radio = make_radio_link(
            clock,
            config.radio,
            seed=seed,
            deliver=behind_radio,
            errors={side: make_errors(side) for side in behind_radio},
            queues={data_side: radio_queue},
            on_arrival=None if on_data is None else {data_side: on_data},
            guess_score=self.guess_score,
        )
        data_enters, acks_enter = (self.radio.stations[side] for side in (data_side, ack_side))
        assert self.radio.loss_reporter is not None
        #: losses of the bottleneck's queue: packets of TCP, and others
        self.drops = Drops(self.bottleneck, clock, self.radio.loss_reporter)
        self._data_enters = data_enters

        def stack(address: int, out: Taker, name: str) -> Stack:
            return Stack(clock, address, out, make_rng(seed, "iss", name))

        first = config.position == "first"
        self.source = stack(_S1, data_enters if first else lan(self.drops), "s1")
        self.sink = stack(_D1, acks_enter if config.position == "last" else lan(back if first else acks_enter), "d1")
        cross = lan(self.drops)
        self.cross_source = stack(_S2, _Labelled(cross) if config.cross_ect else cross, "s2")
        self.cross_sink = stack(_D2, lan(back), "d2")
        # ways of the data
        behind_radio[data_side].routes[_D1] = (
            self.drops if first else self.sink if config.position == "last" else lan(self.sink)
        )
        to_sinks.routes[_D1] = lan(self.sink) if first else data_enters
        to_sinks.routes[_D2] = lan(self.cross_sink)
        # ways of the ACKs
        behind_radio[ack_side].routes[_S1] = self.source if first else back
        to_sources.routes[_S1] = acks_enter if first else lan(self.source)
        to_sources.routes[_S2] = lan(self.cross_source)

    @property
    def congestion_losses(self) -> int:
        """Packets of TCP that the queues of the data have lost."""
        return self.drops.segments + self._data_enters.congestion_losses

    def cross(self, *, rate_bps: float, on_ms: float, off_ms: float, packet_bytes: int, end_at: int) -> UdpSender:
        """Let s2 send UDP to d2 from now on; on and off periods are exponential."""
        context = Context(clock=self.clock, host="s2", seed=self._seed, contents=Numbers(), probe=ConnectionProbe("s2"))
        self.cross_sink.bind(_CROSS_PORT, self._count)
        sender = StackDatagrams(self.cross_source).sender(str(IPv4Address(_D2)), _CROSS_PORT, packet_bytes)
        return UdpSender(
            context, sender, ignore, flow="cross", rate_bps=rate_bps, on_ms=on_ms, off_ms=off_ms,
            packet_bytes=packet_bytes, end_at=end_at,
        )  # fmt: skip

    def _count(self, datagram: Datagram) -> None:
        self.cross_packets += 1


class Drops(Taker):
    """Stands before a wire, counts the packets that its queue does not take, and reports the TCP segments lost."""

    def __init__(self, wire: Wire, clock: VirtualClock, reporter: LossReporter) -> None:
        self._wire, self._clock, self._reporter = wire, clock, reporter
        self.segments = 0
        self.others = 0

    def take(self, packet: IpPacket) -> None:
        """Pass on one packet."""
        wire = self._wire
        before = wire.congestion_drops
        wire.take(packet)
        if wire.congestion_drops == before:
            return
        if isinstance(packet, Segment):
            self.segments += 1
            self._reporter.dropped(packet, self._clock.now)
        else:
            self.others += 1


class _Labelled(Taker):
    """Makes datagrams ECN-capable."""

    def __init__(self, to: Taker) -> None:
        self._to = to

    def take(self, packet: Datagram) -> None:
        packet.ecn = ECT0
        self._to.take(packet)
