"""SLACP's recovery in hard weather: outages, wrong headers, changing delays, small windows, long runs."""

from functools import partial
from random import Random

import pytest

from common.sequence import MASK
from linklayer.classify import RELIABLE
from linklayer.slacp import Counting, Slacp, SlacpConfig
from linklayer.slacp.frames import Ack, Damaged, Data, Fec, Frame
from linklayer.slacp.sender import ArqSender
from tests.harness.checked import footprint
from tests.harness.slacp_pair import MS, A, B, Pair, keep_all, packets


def is_later(pair: Pair, at: int) -> bool:
    return pair.now > at


@pytest.mark.parametrize("block_frames", [2, 8])
def test_a_whole_window_of_blocks_is_repaired(block_frames: int) -> None:
    """After an outage every block's frames come before the first block's redundancy."""
    window = 1024

    def drop(direction: str, frame: Frame) -> bool:
        if isinstance(frame, Data):
            return direction == A and frame.seq < window and frame.index == 0
        return isinstance(frame, Fec) and frame.index > frame.actual

    config = SlacpConfig(window=window, block_frames=block_frames)
    pair = Pair(config, drop=drop, frame_time=MS // 10).establish()
    pair.carry(*packets(window + 50))
    assert pair.delivered[B] == packets(window + 50)
    assert pair.ends[B].stats.fec_repairs == window // block_frames


@pytest.mark.parametrize("ahead", [1, 2, 40, 70, 1 << 20, 1 << 31, -3])
@pytest.mark.parametrize("channel", [0, 1])
def test_a_damaged_frame_that_lies_about_its_number_does_not_stop_the_link(ahead: int, channel: int) -> None:
    """Sixteen bits of header check pass one wrong header in 65536."""
    pair = Pair().establish()
    pair.carry(*packets(5))
    b = pair.ends[B]
    tx = b._tx_high + ahead
    b.handle_frame(Damaged(b._session.rx_tag, channel, tx & MASK, 3), pair.now)
    pair.drop = lambda d, f: isinstance(f, Data) and not f.retransmission and f.seq in (9, 10)
    pair.carry(*packets(11)[5:])
    assert pair.delivered[B] == packets(11)
    assert not pair.given_up[A]


@pytest.mark.parametrize(("before", "after"), [(25, 1500), (250, 1000)])
def test_a_link_that_becomes_slower_is_learned(before: int, after: int) -> None:
    """Repeated acknowledgements run ahead of a round trip that has grown; one such mistake teaches."""
    pair = Pair(delay=before * MS).establish()
    pair.carry(*packets(50))
    pair.delay = after * MS
    for index in range(20):
        pair.run_until(partial(is_later, pair, pair.now + 4000 * MS + index * 137 * MS))
        pair.carry(b"sparse")
    assert pair.ends[A].stats.retransmissions <= 2
    assert len(pair.given_up[A]) <= 1


def lose_one(pair: Pair) -> int:
    """Lose a lone packet and the frame that guards it; return how long the packet takes."""
    lost: list[Frame] = []

    def drop(direction: str, frame: Frame) -> bool:
        if direction == A and len(lost) < 2:
            lost.append(frame)
            return True
        return False

    pair.drop, start, before = drop, pair.now, len(pair.delivered[B])
    pair.send(A, b"lost")
    pair.run_until(lambda: len(pair.delivered[B]) > before)
    return pair.now - start


def test_a_frame_held_up_for_long_does_not_make_later_tail_losses_wait_as_long() -> None:
    """No sample of the round-trip time makes a sender wait longer than half of what ends the session."""
    config = SlacpConfig(dead_after_ms=4000)
    pair = Pair(config).establish()
    pair.delay = 1900 * MS
    pair.carry(*packets(8))
    pair.delay = 25 * MS
    pair.run_until(lambda: pair.now > 20_000 * MS)
    round_trip = 2 * (pair.delay + pair.frame_time)
    assert pair.ends[A].stats.sessions == 1
    assert lose_one(pair) <= config.dead_after_ns // 2 + config.ack_timer_max_ns + 2 * round_trip


def test_handshake_with_lost_frames_does_not_make_tail_losses_wait_as_long() -> None:
    """Its time contains the repetitions of HELLO: it counts until the first acknowledgement tells a round trip."""
    pair = Pair()
    pair.drop = lambda direction, frame: direction == B and pair.now < 5000 * MS
    pair.establish()
    session = pair.ends[B]._session
    assert session.handshake_rtt_ns > 4000 * MS
    pair.drop = keep_all
    pair.send(B, *packets(8))
    pair.run()
    # while that long sample counted, its bound was 3 · 4 s at least, and half of `dead_after` the limit
    started = pair.now
    lost: list[Frame] = []

    def drop(direction: str, frame: Frame) -> bool:
        if direction == B and not isinstance(frame, Ack) and len(lost) < 2:
            lost.append(frame)
            return True
        return False

    pair.drop = drop
    pair.send(B, b"lost")
    pair.run_until(lambda: len(pair.delivered[A]) == 9)
    assert pair.now - started < 1000 * MS


@pytest.mark.parametrize("most_ms", [50, 400])
def test_ack_timer_grows_up_to_its_largest_value_and_no_further(most_ms: int) -> None:
    pair = Pair(SlacpConfig(ack_timer_max_ms=most_ms)).establish()
    pair.run_until(lambda: pair.now > 10_000 * MS)
    times = [at for at, name, frame in pair.log if name == A and isinstance(frame, Ack)]
    assert times[-1] - times[-2] == most_ms * MS


def test_a_repeated_acknowledgement_tells_no_round_trip_time() -> None:
    """It has waited for the ACK timer: lone packets would teach that time, and their losses wait for it twice."""
    timer = 2000 * MS
    pair = Pair(SlacpConfig(ack_timer_ms=timer / MS, ack_timer_max_ms=timer / MS)).establish()
    for _ in range(20):
        pair.carry(b"lone")
    assert len(pair.delivered[B]) == 20
    round_trip = 2 * (pair.delay + pair.frame_time)
    # the first acknowledgement three round trips behind it tells: that long one sample, the handshake's, may take
    assert lose_one(pair) <= timer + 3 * round_trip + round_trip


@pytest.mark.parametrize("window", [1, 2, 3, 8192])
def test_every_window_works_and_none_waits_for_the_ack_timer(window: int) -> None:
    pair = Pair(SlacpConfig(window=window, ack_every=10_000)).establish()
    start, round_trip = pair.now, 2 * (pair.delay + pair.frame_time)
    pair.send(A, *packets(40))
    pair.run_until(lambda: len(pair.delivered[B]) == 40)
    assert pair.delivered[B] == packets(40)
    assert pair.now - start <= 40 * (round_trip + 2 * pair.frame_time)


def test_block_numbers_wrap() -> None:
    lost = {True}
    pair = Pair(SlacpConfig(block_frames=2, window=64)).establish()
    for end in pair.ends.values():
        end._arq_senders[0]._next_block = 0xFFFE
    pair.drop = lambda d, f: bool(lost) and isinstance(f, Data) and (not f.retransmission or f.index == 0)
    pair.carry(*packets(12))
    assert {f.block for _, _, f in pair.log if isinstance(f, Fec)} == {0xFFFE, 0xFFFF, 0, 1, 2, 3}
    assert pair.delivered[B] == packets(12)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_run() -> None:
    """Ten per cent lost; a leak of twenty octets a frame would show."""
    code, rng = Counting(), Random(1)
    a, b = (Slacp(SlacpConfig(window=256), code, rng, 0, first=0xFFFF_8000) for _ in range(2))
    packet, now = bytes(20), 0

    def cross(n: int) -> None:
        nonlocal now
        for _ in range(n):
            now += MS // 10
            if a.wants_packet(RELIABLE):
                a.handle_packet(packet, RELIABLE)
            for source, target in ((a, b), (b, a)):
                frame = source.poll_frame(now)
                if frame is not None and rng.random() > 0.1:
                    target.handle_frame(frame, now)
                if now >= source.next_deadline():
                    source.handle_deadline(now)
            while b.poll_packet() is not None:
                pass
            while a.poll_given_up() is not None:
                pass

    cross(10_000)
    before = footprint(a, b)
    cross(30_000)
    assert a.stats.packets > 25_000
    assert a._tx > 1 << 32
    # what is under way is allocated and freed all the time; it is bounded by the window
    assert footprint(a, b) - before < 512 * 1024


def test_an_acknowledgement_costs_what_is_new_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a long link each one lists hundreds of frames again."""
    settled, settle = [0], ArqSender._settle

    def counted(sender: ArqSender, seq: int) -> None:
        settled[0] += 1
        settle(sender, seq)

    monkeypatch.setattr(ArqSender, "_settle", counted)
    pair = Pair(delay=250 * MS, frame_time=MS, drop=lambda d, f: isinstance(f, Data) and f.tx % 10 == 3).establish()
    pair.carry(*packets(1500))
    assert len(pair.delivered[B]) > 1400
    assert settled[0] < 4 * 1500


@pytest.mark.parametrize("retransmissions", [0, 1])
def test_a_packet_is_given_up_as_often_as_it_is_lost_for_good(retransmissions: int) -> None:
    victim, others = b"again and again", packets(6)
    pair = Pair(
        SlacpConfig(retransmissions=retransmissions, redundancy=0),
        drop=lambda direction, frame: isinstance(frame, Data) and frame.payload == victim,
    ).establish()
    for count, other in enumerate(others, start=1):
        pair.carry(victim, other)
        assert pair.given_up[A] == [victim] * count
    assert pair.delivered[B] == others
    assert pair.given_up[B] == []
