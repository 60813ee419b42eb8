"""SLACP under an adversary: what must hold whatever the medium does to frames and acknowledgements."""

from random import Random
from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from linklayer.classify import FAST, RELIABLE
from linklayer.link import FrameError
from linklayer.slacp import ChannelOptions, ReedSolomon, Slacp, SlacpConfig
from linklayer.slacp.frames import Data, Frame
from linklayer.slacp.wire import emit, parse
from tests.harness.slacp_pair import MS, A, B, Pair, has_work, packets

ENDS = st.sampled_from([A, B])
#: numbers begin just below the wrap
FIRST = 0xFFFF_FFF8


class Adversary(RuleBasedStateMachine):
    """Frames may be lost, damaged, duplicated, delayed and reordered at will; stations may restart.

    Every packet carries its own number, so that a wrong, repeated or misplaced delivery shows.
    """

    config = SlacpConfig(window=16, block_frames=3, ack_every=2)

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.rng = Random(1)
        self.ends = {name: self.make_end() for name in (A, B)}
        self.flying: dict[str, list[bytes]] = {A: [], B: []}
        self.sent: dict[str, dict[bytes, int]] = {A: {}, B: {}}
        self.delivered: dict[str, list[tuple[bytes, int]]] = {A: [], B: []}

    def make_end(self) -> Slacp:
        return Slacp(self.config, ReedSolomon(), self.rng, self.now, first=FIRST)

    @initialize(established=st.sampled_from([True, True, True, False]))
    def begin(self, established: bool) -> None:
        while established and not all(end.established for end in self.ends.values()):
            for name in (A, B):
                self.transmit(name, 1)
                self.deliver_in_order(B if name == A else A, 1)

    @rule(end=ENDS, channel=st.sampled_from([RELIABLE, FAST]), n=st.integers(2, 8))
    def burst(self, end: str, channel: int, n: int) -> None:
        for _ in range(n):
            self.send(end, channel, 20)
            self.transmit(end, 1)

    @rule(end=ENDS, channel=st.sampled_from([RELIABLE, FAST]), size=st.integers(4, 59))
    def send(self, end: str, channel: int, size: int) -> None:
        if self.ends[end].wants_packet(channel):
            packet = len(self.sent[end]).to_bytes(4, "big").ljust(size, b"\xa5")
            self.sent[end][packet] = channel
            self.ends[end].handle_packet(packet, channel)

    @rule(end=ENDS, n=st.integers(1, 6))
    def transmit(self, end: str, n: int) -> None:
        for _ in range(n):
            frame = self.ends[end].poll_frame(self.now)
            if frame is None:
                break
            self.flying[B if end == A else A].append(emit(frame))

    @precondition(lambda self: any(self.flying.values()))
    @rule(end=ENDS, place=st.integers(0, 30), keep=st.booleans())
    def deliver(self, end: str, place: int, keep: bool) -> None:
        """A frame arrives, early or late; with `keep` it will arrive again."""
        if self.flying[end]:
            place %= len(self.flying[end])
            octets = self.flying[end][place] if keep else self.flying[end].pop(place)
            self.ends[end].handle_frame(parse(octets), self.now)
            self.take(end)

    @precondition(lambda self: any(self.flying.values()))
    @rule(end=ENDS, n=st.integers(1, 20))
    def deliver_in_order(self, end: str, n: int) -> None:
        for octets in self.flying[end][:n]:
            self.ends[end].handle_frame(parse(octets), self.now)
        del self.flying[end][:n]
        self.take(end)

    @precondition(lambda self: any(self.flying.values()))
    @rule(end=ENDS, place=st.integers(0, 30))
    def lose(self, end: str, place: int) -> None:
        if self.flying[end]:
            del self.flying[end][place % len(self.flying[end])]

    @precondition(lambda self: any(self.flying.values()))
    @rule(end=ENDS, place=st.integers(0, 30), bit=st.integers(0, 10_000))
    def damage(self, end: str, place: int, bit: int) -> None:
        if self.flying[end]:
            octets = bytearray(self.flying[end].pop(place % len(self.flying[end])))
            bit %= len(octets) * 8
            octets[bit // 8] ^= 1 << bit % 8
            try:
                frame = parse(bytes(octets))
            except FrameError:
                return
            self.ends[end].handle_frame(frame, self.now)
            self.take(end)

    @rule(dt=st.integers(1, 3_000))
    def wait(self, dt: int) -> None:
        self.now += dt * MS
        for end in self.ends.values():
            end.handle_deadline(self.now)

    @rule(end=ENDS)
    def restart(self, end: str) -> None:
        self.ends[end] = self.make_end()

    def take(self, end: str) -> None:
        while (delivery := self.ends[end].poll_packet()) is not None:
            self.delivered[end].append((cast(bytes, delivery[0]), delivery[1]))

    @invariant()
    def deliveries_are_true(self) -> None:
        for end, source in ((A, B), (B, A)):
            packets = [packet for packet, _ in self.delivered[end]]
            assert len(set(packets)) == len(packets), "a packet was delivered twice"
            for packet, channel in self.delivered[end]:
                assert self.sent[source].get(packet) == channel, "a packet was delivered that nobody sent"
            if self.config.logical_channels[RELIABLE].in_order:
                ordered = [packet for packet, channel in self.delivered[end] if channel == RELIABLE]
                assert ordered == sorted(ordered), "a packet was delivered out of order"

    @invariant()
    def a_station_always_has_a_deadline(self) -> None:
        for end in self.ends.values():
            assert end.next_deadline() is not None

    def teardown(self) -> None:
        """Once the medium behaves, everything is settled, and packets of 60 octets cross both ways."""
        for name in (A, B):
            self.deliver_in_order(name, len(self.flying[name]))
        limit = self.now + 120_000 * MS
        probed = {A: False, B: False}
        while not all(probed.values()) or any(has_work(end) for end in self.ends.values()):
            assert self.now < limit, "deadlock: work is left and nothing moves"
            for name, machine in self.ends.items():
                # a probe may fall into a session whose other end has restarted: then another one is sent
                if not probed[name] and not has_work(machine):
                    self.send(name, RELIABLE, 60)
                self.transmit(name, 1000)
            for name in (A, B):
                self.deliver_in_order(name, len(self.flying[name]))
                source = B if name == A else A
                probed[source] |= any(len(packet) == 60 for packet, _ in self.delivered[name])
            self.deliveries_are_true()
            if not any(self.flying.values()):
                self.now = max(self.now, min(end.next_deadline() for end in self.ends.values()))
                for machine in self.ends.values():
                    machine.handle_deadline(self.now)


class AdversaryImmediate(Adversary):
    """The same with immediate delivery, no FEC, and two retransmissions."""

    config = SlacpConfig(
        retransmissions=2,
        redundancy=0,
        window=16,
        channels=(ChannelOptions(in_order=False), ChannelOptions(arq=False, in_order=True)),
    )


TestAdversary = Adversary.TestCase
TestAdversaryImmediate = AdversaryImmediate.TestCase


@settings(max_examples=100)
@given(
    limit=st.integers(1, 3),
    redundancy=st.sampled_from([0.0, 0.5, 1.0]),
    data_losses=st.lists(st.integers(0, 3), min_size=1, max_size=40),
    other_losses=st.sets(st.integers(0, 200), max_size=60),
    both_ways=st.booleans(),
    first=st.sampled_from([0, 0xFFFF_FFF0, 0xFFFF_FFFF]),
)
def test_with_losses_within_the_limit_everything_arrives_in_order(
    limit: int, redundancy: float, data_losses: list[int], other_losses: set[int], both_ways: bool, first: int
) -> None:
    """Each packet's transmissions are lost up to `limit` times, other frames at 60 arbitrary places."""
    taken: dict[tuple[str, int], int] = {}
    others = [0]

    def drop(direction: str, frame: Frame) -> bool:
        if isinstance(frame, Data):
            key = direction, frame.seq
            taken[key] = taken.get(key, 0) + 1
            return taken[key] <= min(limit, data_losses[frame.seq % len(data_losses)])
        others[0] += 1
        return others[0] in other_losses

    config = SlacpConfig(retransmissions=limit, redundancy=redundancy, block_frames=4, window=32)
    pair = Pair(config, drop=drop, first=first).establish()
    pair.send(A, *packets(60))
    if both_ways:
        pair.send(B, *packets(60))
    pair.run()
    assert pair.delivered[B] == packets(60)
    assert not pair.given_up[A]
    assert pair.delivered[A] == (packets(60) if both_ways else [])


@settings(max_examples=100)
@given(limit=st.integers(0, 2), lost=st.sets(st.integers(0, 400), max_size=250), seed=st.integers(0, 5))
def test_whatever_is_lost_every_packet_is_delivered_or_reported(limit: int, lost: set[int], seed: int) -> None:
    count = [0]

    def drop(direction: str, frame: Frame) -> bool:
        count[0] += 1
        return count[0] in lost

    pair = Pair(SlacpConfig(retransmissions=limit, block_frames=4, window=32), drop=drop, seed=seed)
    pair.establish()
    pair.carry(*packets(80))
    assert pair.delivered[B] == sorted(pair.delivered[B])
    assert set(pair.delivered[B]) | set(pair.given_up[A]) == set(packets(80))
    assert len(pair.delivered[B]) + pair.ends[B].stats.abandoned == 80
