"""SLACP's rules, one by one, on a pair of endpoints in virtual time."""

from collections import deque
from random import Random
from typing import Any, TypeVar

import pytest

from linklayer.classify import FAST, RELIABLE
from linklayer.slacp import ChannelOptions, ReedSolomon, Slacp, SlacpConfig
from linklayer.slacp.frames import Ack, Data, Fec, Frame, Sync
from linklayer.slacp.receiver import ArqReceiver, FastReceiver
from linklayer.slacp.stats import SlacpCounters
from linklayer.slacp.wire import emit, parse
from tests.harness.octets import changed
from tests.harness.slacp_pair import MS, A, B, Drop, Pair, keep_all, packets


def drop_transmissions(*tx: int) -> Drop:
    """Drop a's frames with these transmission numbers."""
    return lambda direction, frame: direction == A and getattr(frame, "tx", None) in tx


def carried(n: int, config: SlacpConfig | None = None, drop: Drop = keep_all, **options: Any) -> Pair:
    """A pair that has done all it can for n packets from a to b."""
    pair = Pair(config, drop=drop, **options).establish()
    pair.carry(*packets(n))
    return pair


F = TypeVar("F", Data, Fec, Sync, Ack)


def sent_by(pair: Pair, name: str, kind: type[F]) -> list[F]:
    return [frame for _, sender, frame in pair.log if sender == name and isinstance(frame, kind)]


def next_frame(end: Slacp, now: int, kind: type[F]) -> F:
    """The next frame of `kind`, behind whatever else is due."""
    while True:
        frame = end.poll_frame(now)
        assert frame is not None
        if isinstance(frame, kind):
            return frame


def test_a_lost_frame_is_retransmitted_before_new_ones() -> None:
    pair = carried(40, drop=drop_transmissions(3))
    assert pair.delivered[B] == packets(40)
    order = [(frame.seq, frame.retransmission) for frame in sent_by(pair, A, Data)]
    place = order.index((3, True))
    sent_at, again_at = (at for at, name, frame in pair.log if name == A and getattr(frame, "seq", None) == 3)
    # the next frame shows it, the acknowledgement tells; then it is at most one frame until the radio is free
    assert (
        0 <= again_at - sent_at - (2 * pair.frame_time + pair.delay + pair.frame_time + pair.delay) <= pair.frame_time
    )
    assert order[place + 1 :] == [(seq, False) for seq in range(place, 40)]


def test_one_missing_frame_makes_an_acknowledgement_due_at_once() -> None:
    pair = Pair(SlacpConfig(ack_every=1000)).establish()
    b = pair.ends[B]
    frames = _data(b, packets(3))
    while b.poll_frame(pair.now) is not None:
        pass
    b.handle_frame(frames[0], pair.now)
    assert b.poll_frame(pair.now) is None
    b.handle_frame(frames[2], pair.now)
    ack = b.poll_frame(pair.now)
    assert isinstance(ack, Ack)
    assert (ack.cum, ack.received, ack.repeat) == (1, 0b10, False)


def test_redundancy_repairs_retransmissions_that_are_lost_again() -> None:
    seen: list[int] = []

    def drop(direction: str, frame: Frame) -> bool:
        if not isinstance(frame, Data):
            return False
        if frame.retransmission:
            seen.append(frame.seq)
            return frame.seq in (6, 7)
        return 5 <= frame.seq < 9

    pair = carried(30, SlacpConfig(block_timer_ms=1), drop)
    assert seen == [5, 6, 7, 8]
    assert pair.delivered[B] == packets(30)
    assert pair.ends[B].stats.fec_repairs == 2
    assert pair.ends[A].stats.residual_losses == 0


def test_a_full_block_is_closed_at_once_and_others_by_the_threshold_timer() -> None:
    def drop(direction: str, frame: Frame) -> bool:
        return isinstance(frame, Data) and not frame.retransmission and 3 <= frame.seq < 9

    config = SlacpConfig(block_frames=4, block_timer_ms=200, ack_every=1000)
    pair = carried(300, config, drop, delay=300 * MS)
    repairs = [(at, frame) for at, name, frame in pair.log if name == A and isinstance(frame, Data | Fec)]
    again = [at for at, frame in repairs if isinstance(frame, Data) and frame.retransmission]
    redundancy = [(at, frame.block) for at, frame in repairs if isinstance(frame, Fec)]
    assert [block for _, block in redundancy] == [0, 0, 0, 0, 1, 1]
    # the full block's redundancy waits only for the retransmissions in front of it
    assert redundancy[0][0] - again[-1] == pair.frame_time
    assert redundancy[-1][0] - again[4] >= 200 * MS


@pytest.mark.parametrize(("redundancy", "members", "redundant"), [(1, 3, 3), (0.5, 1, 1), (0.5, 2, 1), (0.5, 5, 3)])
def test_retransmissions_alone_are_protected_and_their_redundancy_is_rounded_up(
    redundancy: float, members: int, redundant: int
) -> None:
    config = SlacpConfig(redundancy=redundancy, block_timer_ms=1)
    pair = carried(30, config, drop_transmissions(*range(5, 5 + members)))
    assert all((frame.block is not None) == frame.retransmission for frame in sent_by(pair, A, Data))
    fec = [(frame.actual, frame.index) for frame in sent_by(pair, A, Fec)]
    assert fec == [(members, members + index) for index in range(redundant)]
    assert pair.delivered[B] == packets(30)


def test_what_is_acknowledged_before_its_block_closes_gets_no_redundancy() -> None:
    pair = carried(60, SlacpConfig(block_timer_ms=500), drop_transmissions(5))
    assert pair.delivered[B] == packets(60)
    assert not sent_by(pair, A, Fec)


@pytest.mark.parametrize("limit", [0, 1, 2, 3])
def test_a_frame_is_retransmitted_at_most_as_often_as_allowed(limit: int) -> None:
    config = SlacpConfig(retransmissions=limit, redundancy=0)
    pair = carried(30, config, lambda direction, frame: isinstance(frame, Data) and frame.seq == 5)
    assert sum(frame.seq == 5 for frame in sent_by(pair, A, Data)) == 1 + limit
    assert pair.given_up[A] == [packets(30)[5]]
    assert pair.delivered[B] == [packet for seq, packet in enumerate(packets(30)) if seq != 5]
    assert pair.ends[B].stats.abandoned == 1


def test_a_lost_last_frame_shows_at_once_by_the_sync_behind_it() -> None:
    pair = Pair(drop=drop_transmissions(19)).establish()
    pair.send(A, *packets(20))
    pair.run_until(lambda: len(pair.delivered[B]) == 20)
    assert pair.delivered[B] == packets(20)
    last, again = (at for at, name, frame in pair.log if name == A and getattr(frame, "seq", None) == 19)
    # the sync shows it, the acknowledgement tells; then it is at most one frame until the radio is free
    assert 0 <= again - last - (3 * pair.frame_time + 2 * pair.delay) <= pair.frame_time


def test_a_new_frame_sets_the_ack_timer_back_to_its_shortest() -> None:
    pair = Pair().establish()
    pair.run_until(lambda: pair.now > 10_000 * MS)
    [frame] = _data(pair.ends[B], packets(1))
    for wait in (pair.config.ack_timer_ns, 2 * pair.config.ack_timer_ns):
        pair.ends[B].handle_frame(frame, pair.now)
        assert pair.ends[B].next_deadline() == pair.now + pair.config.ack_timer_ns
        pair.now += wait
        pair.ends[B].handle_deadline(pair.now)


def test_the_handshake_measures_the_round_trip_so_that_a_lost_first_packet_need_not_wait() -> None:
    pair = Pair(drop=drop_transmissions(0, 1)).establish()
    start = pair.now
    pair.send(A, *packets(1))
    pair.run_until(lambda: bool(pair.delivered[B]))
    # packet and guard are lost: at most one repeat of a backed-off ACK is too early, the next one tells
    assert pair.now - start < 2 * pair.config.ack_timer_max_ns


@pytest.mark.parametrize("lost_syncs", [0, 3])
def test_a_given_up_frame_at_the_very_end_does_not_hold_back_the_rest(lost_syncs: int) -> None:
    """Nothing else is there to carry the news, so a sync frame is, and it is repeated."""
    lost: list[Frame] = []

    def drop(direction: str, frame: Frame) -> bool:
        if isinstance(frame, Sync) and len(lost) < lost_syncs:
            lost.append(frame)
            return True
        return isinstance(frame, Data) and frame.seq == 3

    pair = carried(6, SlacpConfig(redundancy=0), drop)
    assert pair.delivered[B] == [packet for seq, packet in enumerate(packets(6)) if seq != 3]
    assert len(lost) == lost_syncs < len(sent_by(pair, A, Sync))


def test_what_is_held_behind_a_given_up_frame_is_delivered_when_the_sender_says_so() -> None:
    pair = Pair().establish()
    b = pair.ends[B]
    frames = _data(b, packets(4))[1:]
    for frame in frames:
        b.handle_frame(frame, pair.now)
    assert b.poll_packet() is None
    # the acknowledgement of 1 to 3 has not reached the sender: 1 is the oldest it may still send
    b.handle_frame(Sync(frames[0].tag, 0, 4, 1), pair.now)
    assert _polled(b) == packets(4)[1:]


def test_an_acknowledgement_of_what_was_never_sent_settles_nothing() -> None:
    pair = Pair(drop=lambda direction, frame: isinstance(frame, Ack)).establish()
    pair.send(A, *packets(2))
    pair.run_until(lambda: len(pair.delivered[B]) == 2)
    a, tag = pair.ends[A], pair.ends[B]._session.tx_tag
    for cum, received in ((3, 0), (1, 0b11), (2, 0b10)):
        a.handle_frame(Ack(tag, 0, 1, cum, received, repeat=False), pair.now)
    assert (a.stats.strays, a.stats.acked) == (3, 0)


def test_a_frame_behind_the_window_is_refused() -> None:
    window = 8
    pair = Pair(SlacpConfig(window=window)).establish()
    b = pair.ends[B]
    frames = _data(b, packets(window + 1))
    for frame in reversed(frames):
        b.handle_frame(frame, pair.now)
    assert b.stats.refused == 1
    assert _polled(b) == packets(window)


def _data(end: Slacp, packets: list[bytes]) -> list[Data]:
    """Frames that `end` may get in its first session; the sender's oldest number is 0."""
    return [Data(end._session.rx_tag, 0, seq, seq, seq, packet) for seq, packet in enumerate(packets)]


def _polled(end: Slacp) -> list[bytes]:
    got = []
    while (delivery := end.poll_packet()) is not None:
        assert isinstance(delivery[0], bytes)
        got.append(delivery[0])
    return got


def test_a_receiver_deaf_for_more_than_a_window_catches_up() -> None:
    deaf = [False]
    pair = Pair(SlacpConfig(window=16, dead_after_ms=10**6), drop=lambda d, f: deaf[0] and d == A).establish()
    deaf[0] = True
    pair.send(A, *packets(60))
    pair.run_until(lambda: len(pair.given_up[A]) == 60)
    deaf[0] = False
    pair.send(A, b"after the tunnel")
    pair.run_until(lambda: bool(pair.delivered[B]))
    assert pair.delivered[B] == [b"after the tunnel"]
    assert pair.given_up[A] == packets(60)


def test_a_full_window_waits_in_the_ip_queue_and_goes_on() -> None:
    deaf = [True]
    pair = Pair(SlacpConfig(window=8), drop=lambda d, f: deaf[0] and isinstance(f, Ack)).establish()
    pair.send(A, *packets(30))
    pair.run_until(lambda: len(pair.delivered[B]) == 8)
    assert not pair.ends[A].wants_packet(0)
    deaf[0] = False
    pair.run()
    assert pair.delivered[B] == packets(30)


@pytest.mark.parametrize("channel", [RELIABLE, FAST])
def test_only_one_unsent_packet_is_accepted(channel: int) -> None:
    pair = Pair().establish()
    end = pair.ends[A]
    end.handle_packet(b"one", channel)
    assert not end.wants_packet(channel)
    with pytest.raises(RuntimeError):
        end.handle_packet(b"two", channel)
    pair.run()
    assert pair.delivered[B] == [b"one"]


def test_immediate_delivery_does_not_wait_for_a_gap() -> None:
    config = SlacpConfig(channels=(ChannelOptions(in_order=False),))
    pair = carried(30, config, drop_transmissions(3))
    assert sorted(pair.delivered[B]) == packets(30)
    assert pair.delivered[B][3] == packets(30)[4]


def test_a_channel_without_arq_neither_repeats_nor_waits() -> None:
    pair = Pair(drop=drop_transmissions(3, 4)).establish()
    pair.carry(*packets(20), channel=FAST)
    assert pair.delivered[B] == [packet for seq, packet in enumerate(packets(20)) if seq not in (3, 4)]
    assert len(sent_by(pair, A, Data)) == 20
    # what was sent once is useful, and 5 packets of another channel when they are acknowledged
    pair.carry(*packets(5))
    counters = pair.ends[A].counters()
    assert (counters.packets, counters.useful_bytes, counters.residual_losses) == (25, 25 * 20, 0)
    assert (pair.ends[B].counters().delivered, pair.ends[B].counters().delivered_bytes) == (23, 23 * 20)


@pytest.mark.parametrize("in_order", [False, True])
def test_a_fast_channel_remembers_a_window_of_numbers(in_order: bool) -> None:
    stats, delivered = SlacpCounters(), deque[tuple[Any, int]]()
    config = SlacpConfig(window=8, channels=(ChannelOptions(arq=False, in_order=in_order),))
    receiver = FastReceiver(0, 100, config, stats, delivered)
    for seq in (100, 107, 107, 100, 101, 114, 107, 106, 130, 123, 122, 138, 131):
        receiver.handle_data(Data(1, 0, 0, seq, 0, b"%d" % seq))
    # 101, 123 and 131 come after later ones; 106 and 122 lie a window back
    expected = [100, 107, 114, 130, 138] if in_order else [100, 107, 101, 114, 130, 123, 138, 131]
    assert [int(packet) for packet, _ in delivered] == expected
    assert (stats.delivered, stats.refused) == (len(expected), 8 - len(expected))
    # of the numbers 100 to 138
    assert (stats.duplicates, stats.abandoned) == (5, 39 - len(expected))


@pytest.mark.parametrize(("window", "ack_every", "frames"), [(1024, 4, 4), (8, 4, 4), (6, 4, 3), (4, 4, 2), (1, 4, 1)])
def test_acknowledgement_is_due_after_half_a_window_at_the_latest(window: int, ack_every: int, frames: int) -> None:
    pair = Pair(SlacpConfig(window=window, ack_every=ack_every)).establish()
    end, sent = pair.ends[B], 0
    while not isinstance(end.poll_frame(pair.now), Ack):
        end.handle_frame(_data(end, packets(8))[sent], pair.now)
        sent += 1
    assert sent == frames


@pytest.mark.parametrize(("back", "cum"), [(0, 109), (1, 107), (8, 100), (9, 100)])
def test_data_tells_the_senders_oldest_number(back: int, cum: int) -> None:
    delivered = deque[tuple[Any, int]]()
    receiver = ArqReceiver(0, 100, SlacpConfig(), ReedSolomon(), SlacpCounters(), delivered)
    receiver.handle_data(Data(1, 0, 0, 108, back, b"p"))
    # in order: all older ones are given up, or it waits
    assert (receiver.cum, len(delivered)) == (cum, int(cum > 108))


@pytest.mark.parametrize(("others", "repaired"), [(255, [b"p"]), (256, [])])
def test_blocks_of_two_windows_are_remembered(others: int, repaired: list[bytes]) -> None:
    config, code, delivered = SlacpConfig(window=1024, block_frames=8), ReedSolomon(), deque[tuple[Any, int]]()
    receiver = ArqReceiver(0, 0, config, code, SlacpCounters(), delivered)
    [shard] = code.encode([(0, b"p"), (1, b"q")], 1)
    for block in range(others + 1):
        receiver.handle_fec(Fec(1, 0, 2, 0, block, 2, 2, shard))
    receiver.handle_data(Data(1, 0, 3, 1, 1, b"q", True, 0, 1))
    assert [packet for packet, _ in delivered][:1] == repaired


def test_channels_are_numbered_apart_and_a_fast_packet_overtakes() -> None:
    pair = Pair(drop=drop_transmissions(1)).establish()
    pair.send(A, *packets(20))
    pair.carry(b"urgent", channel=FAST)
    assert set(pair.delivered[B]) == {*packets(20), b"urgent"}
    # the backlog offers both channels' heads; the reliable channel stalls on the gap, the fast one does not
    assert pair.delivered[B].index(b"urgent") <= 2


def test_a_damaged_frame_is_reported_at_once_and_never_delivered() -> None:
    pair = Pair().establish()
    end = pair.ends[A]
    end.handle_packet(b"payload", 0)
    frame = next_frame(end, pair.now, Data)
    pair.ends[B].handle_frame(parse(changed(emit(frame), 22)), pair.now)
    end.handle_frame(next_frame(pair.ends[B], pair.now, Ack), pair.now)
    again = next_frame(end, pair.now, Data)
    assert again.retransmission
    assert pair.ends[B].poll_packet() is None


# -- sessions ------------------------------------------------------------------------------------------------


def test_a_restarted_peer_gets_a_new_session_and_no_old_frames() -> None:
    pair = Pair().establish()
    pair.send(A, *packets(20))
    pair.run_until(lambda: len(pair.delivered[B]) == 5)
    before = pair.ends[A].stats.sessions
    pair.restart(B)
    pair.delivered[B].clear()
    pair.run_until(lambda: pair.ends[A].stats.sessions > before and pair.ends[B].established)
    lost = set(pair.given_up[A])
    assert lost
    pair.carry(b"fresh")
    assert b"fresh" in pair.delivered[B]
    # what flew during the restart was of the old session: refused, reported lost, delivered to nobody
    assert not lost & set(pair.delivered[B])
    assert pair.ends[B].stats.refused > 0
    assert set(pair.delivered[B]) - {b"fresh"} <= set(packets(20)[5:])


@pytest.mark.parametrize("deaf", [{B}, {A, B}], ids=["one way", "both ways"])
def test_a_dead_peer_is_noticed_and_its_packets_are_reported_until_it_is_back(deaf: set[str]) -> None:
    gone = [False]
    config = SlacpConfig(dead_after_ms=1000, ack_timer_max_ms=300)
    pair = Pair(config, drop=lambda direction, frame: gone[0] and (B if direction == A else A) in deaf).establish()
    gone[0] = True
    pair.send(A, *packets(3))
    pair.run_until(lambda: not pair.ends[A].established)
    pair.step()
    assert pair.given_up[A] == packets(3)
    gone[0] = False
    pair.send(A, b"back")
    pair.run_until(lambda: b"back" in pair.delivered[B])


def test_an_idle_link_says_little() -> None:
    pair = Pair().establish()
    pair.run_until(lambda: pair.now > 20_000 * MS)
    start = len(pair.log)
    pair.run_until(lambda: pair.now > 120_000 * MS)
    assert len(pair.log) - start <= 2 * 100_000 / 500 + 2


@pytest.mark.parametrize(
    ("option", "value"),
    [("retransmissions", -1), ("block_frames", 0), ("block_frames", 300), ("redundancy", -0.5), ("window", 0)],
)
def test_options_out_of_range_are_refused_by_name(option: str, value: float) -> None:
    with pytest.raises(ValueError, match=option):
        SlacpConfig(**{option: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"block_frames": 100, "redundancy": 1.6}, r"redundancy is 1\.6: must be 255 frames a block at most"),
        ({"dead_after_ms": 1000}, r"dead_after_ms is 1000: must be more than twice ack_timer_max_ms"),
        ({"channels": (ChannelOptions(),) * 17}, r"channels is \(.*\): must be 1 to 16"),
    ],
)
def test_options_that_do_not_go_together_are_one_line(options: dict[str, Any], line: str) -> None:
    with pytest.raises(ValueError, match=f"^{line}$"):
        SlacpConfig(**options)


def test_frames_of_a_channel_that_is_not_there_are_refused() -> None:
    pair = Pair().establish()
    b = pair.ends[B]
    tag = b._session.rx_tag
    frames: list[Frame] = [
        Data(tag, 2, 0, 0, 0, b"packet"),
        Sync(tag, 15, 1, 0),
        # nor are there acknowledgements on the fast channel
        Ack(tag, FAST, 0, 0, 0, False),
    ]
    for refused, frame in enumerate(frames, start=1):
        b.handle_frame(frame, pair.now)
        assert b.stats.refused == refused
    assert _polled(b) == []
    # and the session goes on
    pair.carry(*packets(5))
    assert pair.delivered[B] == packets(5)


def test_a_sync_of_the_fast_channel_tells_of_its_transmission_and_nothing_else() -> None:
    pair = Pair().establish()
    b = pair.ends[B]
    tag = b._session.rx_tag
    b.handle_frame(Sync(tag, FAST, 0, 100), pair.now)
    b.handle_frame(Data(tag, FAST, 1, 0, 0, b"packet"), pair.now)
    assert (_polled(b), b.stats.refused) == ([b"packet"], 0)
    # of the transmissions 0 to 3 the third has not come
    b.handle_frame(Data(tag, RELIABLE, 3, 0, 0, b"other"), pair.now)
    assert next_frame(b, pair.now, Ack).tx_high == 3


def test_every_channel_repeats_its_acknowledgement_when_the_timer_expires() -> None:
    pair = Pair(SlacpConfig(channels=(ChannelOptions(), ChannelOptions()))).establish()
    end = pair.ends[B]
    end.handle_deadline(end._ack_at)
    acks = [next_frame(end, end._ack_at, Ack) for _ in range(2)]
    assert [(ack.channel, ack.repeat) for ack in acks] == [(0, True), (1, True)]
    # an acknowledgement that a frame makes due is none of these
    tag = end._session.rx_tag
    end.handle_frame(Data(tag, 0, 1, 0, 0, b"packet"), end._ack_at)
    assert not next_frame(end, end._ack_at, Ack).repeat


def test_redundancy_of_another_block_size_is_refused() -> None:
    pair = Pair().establish()
    b = pair.ends[B]
    tag = b._session.rx_tag
    members = [(seq, packet) for seq, packet in enumerate(packets(2))]
    [shard, _] = ReedSolomon().encode(members, 2)
    b.handle_frame(Fec(tag, 0, 0, 0, 7, 2, 2, shard), pair.now)
    b.handle_frame(Fec(tag, 0, 1, 0, 7, 3, 3, shard), pair.now)
    assert b.stats.refused == 1
    b.handle_frame(Data(tag, 0, 2, 0, 0, packets(2)[0], True, 7, 0), pair.now)
    assert _polled(b) == packets(2)


def test_without_order_a_sync_passes_over_a_hole_and_delivers_nothing_twice() -> None:
    pair = Pair(SlacpConfig(in_order=False)).establish()
    b = pair.ends[B]
    frames = _data(b, packets(5))
    for frame in frames[1:4]:
        b.handle_frame(frame, pair.now)
    assert _polled(b) == packets(5)[1:4]
    b.handle_frame(Sync(frames[0].tag, 0, 5, 3), pair.now)
    b.handle_frame(frames[0], pair.now)
    b.handle_frame(frames[4], pair.now)
    assert _polled(b) == packets(5)[4:]
    assert (b.stats.abandoned, b.stats.duplicates) == (1, 1)


def test_an_acknowledgement_that_was_overtaken_changes_nothing() -> None:
    pair = Pair(drop=lambda direction, frame: isinstance(frame, Ack)).establish()
    pair.send(A, *packets(6))
    pair.run_until(lambda: len(pair.delivered[B]) == 6)
    a, tag = pair.ends[A], pair.ends[B]._session.tx_tag
    for tx_high, cum, received, acked in ((3, 3, 0b1, 4), (1, 2, 0, 4), (1, 1, 0b1, 4), (5, 3, 0b110, 6)):
        a.handle_frame(Ack(tag, 0, tx_high, cum, received, repeat=False), pair.now)
        assert a.stats.acked == acked
    assert (a.stats.strays, a.stats.refused) == (0, 0)


def test_redundancy_follows_the_losses_where_a_residual_loss_is_asked_for() -> None:

    def redundancy(config: SlacpConfig, period: int) -> float:
        """Redundant frames per retransmission where 16 frames of each `period` are lost: two blocks."""

        def drop(direction: str, frame: Frame) -> bool:
            return direction == A and isinstance(frame, Data) and not frame.retransmission and frame.seq % period < 16

        pair = carried(640, config, drop)
        again = sum(frame.retransmission for frame in sent_by(pair, A, Data))
        assert again == 16 * 640 // period
        return len(sent_by(pair, A, Fec)) / again

    fixed = SlacpConfig(redundancy=0.1)
    asked = SlacpConfig(redundancy=0.1, residual_loss=1e-3)
    much = SlacpConfig(redundancy=3, residual_loss=1e-3)
    assert 0.1 < redundancy(fixed, 320) < 0.2
    assert 0.1 < redundancy(fixed, 32) < 0.2
    # at a loss of 5 % and of half
    assert redundancy(fixed, 320) < redundancy(asked, 320) < 0.75 * redundancy(asked, 32)
    # `redundancy` is the least
    assert redundancy(much, 320) > redundancy(asked, 320)


def test_an_early_deadline_is_a_no_op() -> None:
    end = Slacp(SlacpConfig(), ReedSolomon(), Random(1), 0)
    assert end.poll_frame(0) is not None
    deadline = end.next_deadline()
    end.handle_deadline(deadline - 1)
    assert end.poll_frame(deadline - 1) is None
    assert end.next_deadline() == deadline
    end.handle_deadline(deadline)
    assert end.poll_frame(deadline) is not None


def test_a_late_deadline_repeats_the_acknowledgement() -> None:
    pair = Pair().establish()
    end = pair.ends[B]
    end.handle_frame(_data(end, packets(1))[0], pair.now)
    late = end.next_deadline() + 7 * MS
    end.handle_deadline(late)
    assert next_frame(end, late, Ack).cum == 1
    assert end.next_deadline() > late


@pytest.mark.parametrize("in_order", [True, False])
def test_a_frame_that_arrives_twice_behind_a_gap_is_delivered_once(in_order: bool) -> None:
    pair = Pair(SlacpConfig(channels=(ChannelOptions(in_order=in_order),))).establish()
    frames = _data(pair.ends[B], packets(3))
    for frame in (frames[1], frames[1], frames[2], frames[1], frames[0], frames[0]):
        pair.ends[B].handle_frame(frame, pair.now)
    assert sorted(_polled(pair.ends[B])) == packets(3)
    assert pair.ends[B].stats.duplicates == 3
