"""Whatever a hop with a base station loses, repeats or reorders, and whenever the station forgets: streams stay whole.

Real connections at both ends: the fixed host sends, the mobile host receives.
"""

from collections import deque
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from common.sequence import MASK, unwrap
from common.units import MS, SECOND
from hosts.tcp.config import TcpConfig
from linklayer.filters.snoop import Limits, Snoop
from linklayer.filters.tagger import Tagger
from tcpip.access import Access, Objects, Octets
from tcpip.options import smart_of
from tcpip.segment import ACK, FIN, RST, SYN, Flow, Segment
from tcpip.wire import emit, parse
from tests.hosts.tcp.pair import Chaos, Pair

_PATIENT = TcpConfig(
    mss=500, syn_retries=30, data_retries=40, max_rto_ns=4 * SECOND, time_wait_ns=3600 * SECOND, window_scaling=True
)
SCHEMES = ("ll", "ll-smart", "snoop", "snoop-smart")
_NUMBERS = st.one_of(st.integers(0, 2**32 - 1), st.integers(2**32 - 30_000, 2**32 - 1))


class Station:
    """A base station and the mobile end's filter, between two hosts and a hop of two `Chaos`."""

    def __init__(
        self, scheme: str, access: Access, up: Chaos, down: Chaos, limits: Limits | None = None, forget: float = 0.0
    ) -> None:
        self.scheme, self.access, self.limits = scheme, access, limits or Limits()
        self.air_up, self.air_down = up, down
        #: how likely the station forgets everything before a segment of the fixed host's
        self.forget = forget
        self.rng = Random(down.rng.random())
        self.tagger = Tagger(access) if scheme.endswith("smart") else None
        self.restarts = 0
        self.base = self.make_base()
        #: ACKs that have passed to the fixed host, with what the base heard before each
        self.passed: list[Segment] = []
        self.up, self.down = Up(self), Down(self)

    def make_base(self) -> Snoop:
        return Snoop(
            self.access,
            suppresses=self.scheme.startswith("snoop"),
            selective=self.scheme.endswith("smart"),
            limits=self.limits,
        )

    def flush(self, now: int) -> None:
        """Put on the air what the base has for it."""
        while (delivery := self.base.poll_to_link()) is not None:
            self.air_down.send(self.segment(delivery[0]), now)
        assert self.base.held_bytes <= self.limits.total_bytes

    def packet(self, segment: Segment) -> Segment | bytes:
        return segment if isinstance(self.access, Objects) else emit(segment)

    def segment(self, packet: Segment | bytes) -> Segment:
        return parse(packet) if isinstance(packet, bytes) else packet


class Up:
    """From the mobile host to the fixed one."""

    def __init__(self, station: Station) -> None:
        self.station = station
        self.ready: deque[Segment] = deque()

    def send(self, segment: Segment, now: int) -> None:
        station = self.station
        if station.tagger is not None:
            station.tagger.handle_to_link(station.packet(segment), 0, now)
            delivery = station.tagger.poll_to_link()
            assert delivery is not None
            segment = station.segment(delivery[0])
        station.air_up.send(segment, now)

    def receive(self, now: int) -> Segment | None:
        station = self.station
        while not self.ready and (segment := station.air_up.receive(now)) is not None:
            self.heard(segment, now)
        return self.ready.popleft() if self.ready else None

    def heard(self, segment: Segment, now: int) -> None:
        base = self.station.base
        base.handle_from_link(self.station.packet(segment), 0, now)
        while (delivery := base.poll_from_link()) is not None:
            passed = self.station.segment(delivery[0])
            self.station.passed.append(passed)
            self.ready.append(passed)
        self.station.flush(now)

    def next_deadline(self) -> int | None:
        return self.station.air_up.next_deadline()


class Down:
    """From the fixed host to the mobile one."""

    def __init__(self, station: Station) -> None:
        self.station = station

    def send(self, segment: Segment, now: int) -> None:
        station = self.station
        if station.rng.random() < station.forget:
            station.base = station.make_base()
            station.restarts += 1
        station.base.handle_to_link(station.packet(segment), 0, now)
        station.flush(now)

    def receive(self, now: int) -> Segment | None:
        station = self.station
        station.base.handle_deadline(now)
        station.flush(now)
        segment = station.air_down.receive(now)
        if segment is not None and station.tagger is not None:
            station.tagger.handle_from_link(station.packet(segment), 0, now)
            assert station.tagger.poll_from_link() is not None
        return segment

    def next_deadline(self) -> int | None:
        times = (self.station.air_down.next_deadline(), self.station.base.next_deadline())
        return min((at for at in times if at is not None), default=None)


@st.composite
def configs(draw: st.DrawFn) -> TcpConfig:
    return replace(
        _PATIENT,
        recovery=draw(st.sampled_from(["reno", "newreno", "sack", "smart"])),
        initial_window=draw(st.integers(1, 10)),
        limited_transmit=draw(st.booleans()),
        timestamps=draw(st.booleans()),
        ecn=draw(st.booleans()),
        frto=draw(st.booleans()),
        delayed_ack_ns=draw(st.sampled_from([0, 40 * MS, 200 * MS])),
        min_rto_ns=draw(st.sampled_from([200 * MS, SECOND])),
        receive_buffer=draw(st.sampled_from([1200, 20_000, 1 << 20])),
        mss=draw(st.sampled_from([500, 1400, 20_000])),
    )


@st.composite
def airs(draw: st.DrawFn, *, ordered: bool = False) -> Chaos:
    return Chaos(
        Random(draw(st.integers(0, 2**32))),
        loss=draw(st.sampled_from([0.0, 0.02, 0.1, 0.3])),
        repeat=0.0 if ordered else draw(st.sampled_from([0.0, 0.1, 0.3])),
        jitter_ns=0 if ordered else draw(st.sampled_from([0, 5 * MS, 60 * MS])),
    )


def joined(station: Station, config: TcpConfig, iss: tuple[int, int] = (1000, 5000), octets: bool = True) -> Pair:
    """The mobile host, which connects, and the fixed one."""
    return Pair(config, up=station.up, down=station.down, iss=iss, octets=octets)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(SCHEMES),
    st.sampled_from([Objects(), Octets()]),
    configs(),
    airs(),
    airs(),
    _NUMBERS,
    st.sampled_from([0.0, 0.02, 0.3]),
    st.sampled_from([Limits(), Limits(flow_bytes=4000, total_bytes=4000, tries=2), Limits(dupacks=1)]),
)
def test_streams_stay_whole_whatever_the_hop_does_and_whenever_the_station_forgets(
    scheme: str,
    access: Access,
    config: TcpConfig,
    up: Chaos,
    down: Chaos,
    number: int,
    forget: float,
    limits: Limits,
) -> None:
    station = Station(scheme, access, up, down, limits, forget)
    pair = joined(station, config, (1000, number))
    octets = Random(number).randbytes(40_000)
    pair.send(0, octets[:3000])
    pair.send(1, octets)
    pair.run()
    assert pair.octets[0] == octets
    assert pair.octets[1] == octets[:3000]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["snoop", "snoop-smart"]),
    configs(),
    airs(ordered=True),
    airs(ordered=True),
    _NUMBERS,
    st.sampled_from([0.0, 0.02]),
)
def test_no_dupack_passes_while_its_loss_is_being_repaired_locally(
    scheme: str, config: TcpConfig, up: Chaos, down: Chaos, number: int, forget: float
) -> None:
    """For what the fixed host has sent once, and this station has seen."""
    station = Station(scheme, Objects(), up, down, forget=forget)
    pair = joined(station, config, (1000, number), octets=False)
    truth = Truth(station)
    pair.send(0, 0)
    pair.send(1, 60_000)
    pair.run()
    assert pair.received[0] == 60_000
    assert truth.broken == []


class Truth:
    """Knows what the hop has lost, and looks at every ACK that passes."""

    def __init__(self, station: Station) -> None:
        self.station = station
        #: by first octet: the station's restarts when its sender had sent it, or None: it has done so twice
        self.sent: dict[int, int | None] = {}
        self.high = 0
        self.lost: set[int] = set()
        #: by first octet: what the station has sent again
        self.repaired: set[int] = set()
        self.flown: set[int] = set()
        self.last: Segment | None = None
        self.broken: list[Segment] = []
        self.heard, self.send, self.fly = station.up.heard, station.down.send, station.air_down.send
        station.up.heard = self.see_ack  # type: ignore[method-assign]
        station.down.send = self.see_data  # type: ignore[method-assign]
        station.air_down.send = self.see_air  # type: ignore[method-assign]

    def see_data(self, segment: Segment, now: int) -> None:
        restarts = self.station.restarts
        self.send(segment, now)
        if self.station.restarts != restarts:
            # it has heard no ACK, so the next one is news
            self.last = None
        size = segment.length + (segment.flags & FIN)
        if size:
            left = unwrap(segment.seq, self.high or segment.seq)
            again = bool(self.high) and left < self.high
            self.sent[segment.seq] = None if again else self.station.restarts
            self.high = max(self.high, left + size)

    def see_air(self, segment: Segment, now: int) -> None:
        before = len(self.station.air_down.flying)
        self.fly(segment, now)
        if segment.length:
            if segment.seq in self.flown:
                self.repaired.add(segment.seq)
            self.flown.add(segment.seq)
            if len(self.station.air_down.flying) == before:
                self.lost.add(segment.seq)
            else:
                self.lost.discard(segment.seq)

    def see_ack(self, segment: Segment, now: int) -> None:
        # of a flow without data, which the station does not know, an ACK tells it nothing
        last, self.last = self.last, segment if self.station.base._flows else None
        before = len(self.station.passed)
        self.heard(segment, now)
        duplicate = (
            last is not None
            and not segment.length
            and segment.flags & (SYN | FIN | RST | ACK) == ACK
            and segment.ack == last.ack
            and segment.window == last.window > 0
        )
        repaired_here = self.sent.get(segment.ack) == self.station.restarts
        passed = len(self.station.passed) > before
        if duplicate and repaired_here and segment.ack in self.lost and passed and self.notices(segment):
            self.broken.append(segment)

    def notices(self, ack: Segment) -> bool:
        """Whether the station knows of the loss: it repairs it, or the ACK shows something behind it."""
        smart = smart_of(ack)
        known = ack.sack or (() if smart is None else (smart,))
        return ack.ack in self.repaired or not known or any(_beyond(right, ack.ack) for _, right in known)


def _beyond(number: int, ack: int) -> bool:
    return 0 < (number - ack & MASK) < 1 << 31


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(SCHEMES), st.integers(0, 2**32), st.lists(st.integers(0, 3), max_size=80))
def test_nothing_that_comes_makes_the_filter_hold_more_than_its_limits(
    scheme: str, seed: int, kinds: list[int]
) -> None:
    limits = Limits(flows=4, flow_bytes=6000, total_bytes=10_000, misfits=4)
    base = Snoop(Objects(), suppresses=scheme.startswith("snoop"), selective=scheme.endswith("smart"), limits=limits)
    rng, now = Random(seed), 0

    def number() -> int:
        return rng.choice((rng.getrandbits(32), rng.randrange(5000), MASK - rng.randrange(3000)))

    for kind in kinds:
        flow = Flow(1, rng.randrange(6), 2, 80)
        now += rng.choice((0, MS, 300 * MS))
        blocks = tuple((number(), number()) for _ in range(rng.randrange(4)))
        segment = Segment(
            flow if kind else flow.reversed(),
            number(),
            number(),
            rng.getrandbits(8) if rng.random() < 0.2 else ACK,
            rng.choice((0, 500)),
            rng.choice((0, 1, 1000, 65_000)) if kind else 0,
            sack=blocks,
        )
        if kind:
            base.handle_to_link(segment, 0, now)
        else:
            base.handle_from_link(segment, 0, now)
        base.handle_deadline(now)
        after = base.next_deadline()
        assert after is None or after > now
        assert base.held_bytes <= limits.total_bytes
        assert base.held_bytes == sum(flow.nbytes for flow in base._flows.values())
        for known in base._flows.values():
            assert all(one.right <= other.left for one, other in zip(known.held, known.held[1:], strict=False))
            assert known.nbytes == sum(len(held.packet) + limits.packet_overhead_bytes for held in known.held)
