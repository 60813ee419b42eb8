"""Link FEC and hybrid FEC/ARQ: fragments, their code, and both halves of an end."""

from collections.abc import Callable, Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.units import MS
from linklayer.hybrid.code import Counting, ReedSolomon
from linklayer.hybrid.endpoint import Hybrid
from linklayer.hybrid.frames import Ack, Fragment, Frame, emit, parse
from linklayer.hybrid.sender import WINDOW
from linklayer.link import FrameError
from testbed.model.run import simulate
from tests.harness.model_runs import model

WAIT_NS = 40 * MS
PACKETS = [bytes([number]) * (20 + number) for number in range(30)]

#: takes the number of a frame since the start, and the frame; returns whether it is lost
Loses = Callable[[int, Frame], bool]


def end(*, data: int = 3, total: int = 4, retries: int = 3, combine: bool = True, in_order: bool = True) -> Hybrid:
    return Hybrid(
        ReedSolomon(),
        data=data,
        total=total,
        retries=retries,
        wait_ns=WAIT_NS,
        combine=combine,
        in_order=in_order,
        rng=Random(data),
    )


def carry(
    one: Hybrid, other: Hybrid, packets: Sequence[bytes], loses: Loses, *, ms: int = 1000, every_ms: int = 2
) -> list[tuple[int, bytes]]:
    """Send packets one way; frames take a millisecond. Return the time (ms) and the packet of each delivery."""
    waiting, delivered, count = list(packets), [], 0
    air: list[tuple[Hybrid, Frame]] = []
    for now_ms in range(ms):
        now = now_ms * MS
        for end_, frame in air:
            end_.handle_frame(frame, now)
        air = []
        for each in (one, other):
            each.handle_deadline(now)
        if waiting and now_ms % every_ms == 0 and one.wants_packet(0):
            one.handle_packet(waiting.pop(0), 0)
        for near, far in ((one, other), (other, one)):
            while (sent := near.poll_frame(now)) is not None:
                if not loses(count, sent):
                    air.append((far, sent))
                count += 1
        while (found := other.poll_packet()) is not None:
            assert isinstance(found[0], bytes)
            delivered.append((now_ms, found[0]))
    return delivered


def lossless(count: int, frame: Frame) -> bool:
    return False


# -- the code ------------------------------------------------------------------------------------------------


@given(st.binary(min_size=1, max_size=300), st.integers(1, 12), st.integers(0, 12), st.randoms(use_true_random=False))
def test_any_data_fragments_give_the_packet_again(packet: bytes, data: int, more: int, random: Random) -> None:
    fragments = ReedSolomon().cut(packet, data, data + more)
    assert {len(fragment) for fragment in fragments} == {-(-len(packet) // data)}
    chosen = random.sample(range(data + more), data)
    assert ReedSolomon().join(len(packet), data, {index: fragments[index] for index in chosen}) == packet


@given(st.binary(min_size=1, max_size=300), st.integers(1, 12), st.integers(0, 12))
def test_packets_without_octets_have_fragments_of_the_same_length(packet: bytes, data: int, more: int) -> None:
    counted, real = (code.cut(packet, data, data + more) for code in (Counting(), ReedSolomon()))
    assert [len(fragment) for fragment in counted] == [len(fragment) for fragment in real]
    assert Counting().join(len(packet), data, dict(enumerate(counted))) is packet


# -- octets --------------------------------------------------------------------------------------------------

NUMBERS = st.integers(0, 2**32 - 1)


@given(NUMBERS, NUMBERS, st.integers(0, 2**16 - 1), st.binary(min_size=1, max_size=90))
def test_emit_then_parse_gives_an_equal_fragment(tag: int, number: int, back: int, packet: bytes) -> None:
    for index, shard in enumerate(ReedSolomon().cut(packet, 3, 5)):
        fragment = Fragment(tag, number, back, 1, index, 3, 5, len(packet), shard)
        assert parse(emit(fragment)) == fragment
        assert fragment.nbytes == len(emit(fragment))


@given(NUMBERS, NUMBERS, st.integers(0, 2**WINDOW - 1))
def test_emit_then_parse_gives_an_equal_acknowledgement(tag: int, highest: int, received: int) -> None:
    ack = Ack(tag, highest, received)
    assert parse(emit(ack)) == ack
    assert ack.nbytes == len(emit(ack))


@given(st.binary(min_size=1, max_size=40), st.integers(0, 10_000))
def test_a_wrong_bit_anywhere_is_refused(packet: bytes, place: int) -> None:
    octets = bytearray(emit(Fragment(1, 2, 3, 0, 0, 1, 1, len(packet), packet)))
    octets[place % len(octets)] ^= 1 << place % 8
    with pytest.raises(FrameError):
        parse(bytes(octets))


@pytest.mark.parametrize(
    "impossible",
    [
        Fragment(1, 2, 3, 0, 4, 3, 4, 3, b"x"),
        Fragment(1, 2, 3, 0, 0, 5, 4, 5, b"x"),
        Fragment(1, 2, 3, 0, 0, 1, 1, 9, b"x"),
    ],
    ids=["index", "more data than fragments", "length"],
)
def test_a_fragment_that_cannot_be_is_refused(impossible: Fragment) -> None:
    with pytest.raises(FrameError, match=r"cannot be|is not one of"):
        parse(emit(impossible))


# -- both halves ---------------------------------------------------------------------------------------------


def test_packets_cross_in_order_without_retransmissions() -> None:
    one, other = end(), end()
    assert [packet for _, packet in carry(one, other, PACKETS, lossless)] == PACKETS
    counters = one.counters()
    assert (counters.packets, counters.retransmissions, counters.fec_frames) == (30, 0, 30)
    assert (counters.useful_bytes, other.counters().fec_repairs) == (sum(map(len, PACKETS)), 0)


def test_redundancy_repairs_as_many_fragments_as_it_has() -> None:
    one, other = end(), end()

    def loses(count: int, frame: Frame) -> bool:
        return isinstance(frame, Fragment) and frame.index == frame.number % 3

    assert [packet for _, packet in carry(one, other, PACKETS, loses)] == PACKETS
    assert (one.counters().retransmissions, other.counters().fec_repairs) == (0, 30)


def test_a_packet_with_too_few_fragments_goes_again_first_in_line() -> None:
    one, other = end(in_order=False), end(in_order=False)
    lost: list[int] = []

    def loses(count: int, frame: Frame) -> bool:
        if isinstance(frame, Fragment) and frame.number == 2 and frame.index < 2 and len(lost) < 2:
            lost.append(frame.index)
            return True
        return False

    delivered = carry(one, other, PACKETS, loses)
    came_at = {packet: at for at, packet in delivered}
    # handed over at 4 ms, again 40 ms later, and a millisecond on the air
    assert came_at[PACKETS[2]] == 4 + 40 + 1
    assert [packet for _, packet in delivered] != PACKETS
    assert sorted(packet for _, packet in delivered) == sorted(PACKETS)
    assert one.counters().retransmissions == 1


def test_a_packet_that_goes_again_overtakes_new_ones() -> None:
    one = end(data=1, total=1)
    one.handle_packet(b"first", 0)
    assert one.poll_frame(0) is not None
    one.handle_packet(b"second", 0)
    one.handle_deadline(WAIT_NS)
    frames = [one.poll_frame(WAIT_NS) for _ in range(3)]
    assert [isinstance(frame, Fragment) and frame.number for frame in frames] == [0, 1, False]


def test_in_order_the_packets_behind_wait_for_it() -> None:
    one, other = end(), end()
    lost: list[int] = []

    def loses(count: int, frame: Frame) -> bool:
        if isinstance(frame, Fragment) and frame.number == 2 and len(lost) < 4:
            lost.append(frame.index)
            return True
        return False

    delivered = carry(one, other, PACKETS, loses)
    assert [packet for _, packet in delivered] == PACKETS
    assert {at for at, packet in delivered if packet in PACKETS[2:20]} == {45}


@pytest.mark.parametrize("combine", [True, False])
def test_fragments_of_two_sendings_count_together_or_not(combine: bool) -> None:
    one, other = end(combine=combine), end(combine=combine)
    came: list[int] = []

    def loses(count: int, frame: Frame) -> bool:
        if not isinstance(frame, Fragment) or frame.number != 2:
            return False
        came.append(frame.sending)
        # of each of the first two sendings two fragments come, other ones
        return frame.sending < 2 and frame.index % 2 == frame.sending

    assert [packet for _, packet in carry(one, other, PACKETS, loses)] == PACKETS
    assert max(came) == (1 if combine else 2)


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_packet_is_given_up_after_its_last_sending(retries: int) -> None:
    one, other = end(retries=retries), end(retries=retries)

    def loses(count: int, frame: Frame) -> bool:
        return isinstance(frame, Fragment) and frame.number == 1

    delivered = carry(one, other, PACKETS[:3], loses)
    assert [packet for _, packet in delivered] == [PACKETS[0], PACKETS[2]]
    assert (one.poll_given_up(), one.poll_given_up()) == (PACKETS[1], None)
    counters = one.counters()
    assert (counters.retransmissions, counters.residual_losses) == (retries, 1)
    # nothing may come after that time, and the receiver knows it
    assert delivered[1][0] == 4 + 1 + (retries + 1) * 40
    assert (one.next_deadline(), other.next_deadline()) == (None, None)


def test_a_lost_acknowledgement_costs_a_sending_and_no_packet_twice() -> None:
    one, other = end(), end()

    def loses(count: int, frame: Frame) -> bool:
        return isinstance(frame, Ack) and count < 40

    assert [packet for _, packet in carry(one, other, PACKETS, loses)] == PACKETS
    assert one.counters().residual_losses == 0


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.floats(0, 0.5), st.booleans(), st.integers(1, 4), st.integers(0, 2), st.integers(0, 3))
def test_every_packet_is_delivered_once_or_given_up(
    seed: int, loss: float, in_order: bool, data: int, more: int, retries: int
) -> None:
    one, other = (end(data=data, total=data + more, retries=retries, in_order=in_order) for _ in range(2))
    air = Random(seed)
    delivered = [packet for _, packet in carry(one, other, PACKETS, lambda count, frame: air.random() < loss)]
    given_up = []
    while (packet := one.poll_given_up()) is not None:
        given_up.append(packet)
    assert len(set(delivered)) == len(delivered)
    # an acknowledgement may be lost, a packet may not
    assert {*delivered, *given_up} == set(PACKETS)
    if in_order:
        assert delivered == sorted(delivered)
    assert one.next_deadline() is None


def test_packets_wait_in_the_queue_while_the_window_is_full() -> None:
    one = end(data=1, total=1)
    for number in range(WINDOW):
        assert one.wants_packet(0)
        one.handle_packet(b"x", 0)
        assert one.poll_frame(number) is not None
    assert not one.wants_packet(0)
    with pytest.raises(RuntimeError):
        one.handle_packet(b"x", 0)


def test_without_retries_the_oldest_is_given_up_instead() -> None:
    one = end(data=1, total=1, retries=0)
    for number in range(WINDOW + 5):
        assert one.wants_packet(0)
        one.handle_packet(bytes([number % 256]), 0)
        assert one.poll_frame(number) is not None
    assert [one.poll_given_up() for _ in range(6)] == [bytes([number]) for number in range(5)] + [None]


def test_a_sender_that_begins_anew_is_heard() -> None:
    other = end()
    assert [packet for _, packet in carry(end(), other, PACKETS, lossless)] == PACKETS
    anew = end(data=2, total=2)
    assert [packet for _, packet in carry(anew, other, PACKETS[:3], lossless)] == PACKETS[:3]


FRAGMENTS = st.builds(
    Fragment,
    st.integers(0, 2),
    NUMBERS,
    st.integers(0, 2**16 - 1),
    st.integers(0, 2),
    st.integers(0, 3),
    st.integers(1, 3),
    st.just(4),
    st.integers(1, 60),
    st.binary(min_size=1, max_size=20),
)
ACKS = st.builds(Ack, st.integers(0, 2**32 - 1), NUMBERS, st.integers(0, 2**70))


@settings(max_examples=200, deadline=None)
@given(st.lists(FRAGMENTS | ACKS, max_size=60))
def test_no_frame_makes_it_raise_or_grow(frames: list[Fragment | Ack]) -> None:
    one, other = end(), end()
    for now, frame in enumerate(frames):
        other.handle_frame(frame, now)
        while other.poll_packet() is not None:
            pass
        while other.poll_frame(now) is not None:
            pass
    assert [packet for _, packet in carry(one, other, PACKETS, lossless, ms=400)][-len(PACKETS) :] == PACKETS


# -- links in a run ------------------------------------------------------------------------------------------


def test_fec_alone_loses_the_packets_that_too_few_fragments_reach() -> None:
    # any 9 of 10 at a loss of 10 %: 1 - 0.9^10 - 10 0.1 0.9^9 = 0.264 of the packets are lost
    run = model(
        link={"scheme": "fec"},
        channel={"rate_bps": 8_000_000, "up": {"per": 0.1}},
        workloads=[{"kind": "onoff-udp", "rate_bps": 1_000_000, "off_ms": 0, "duration_s": 20}],
        seed=3,
    )
    up = simulate(run).link["up"]
    # 2500 packets: three standard deviations are 0.027
    assert up.residual_per == pytest.approx(0.264, abs=0.027)


def test_sendings_that_stand_alone_save_all_but_the_packets_lost_four_times() -> None:
    run = model(
        link={"scheme": "hybrid", "hybrid": {"wait_ms": 60, "combine": False}},
        channel={"rate_bps": 8_000_000, "up": {"per": 0.2}},
        workloads=[{"kind": "onoff-udp", "rate_bps": 1_000_000, "off_ms": 0, "duration_s": 20}],
        seed=3,
    )
    up = simulate(run).link["up"]
    # any 9 of 10 at 20 %: 0.624 lost each time; 0.624^4 = 0.152, and three standard deviations 0.022
    assert up.residual_per == pytest.approx(0.152, abs=0.022)
