"""Both ends of slacp-adaptive over a medium that loses what it likes; times in ms."""

from collections.abc import Sized
from random import Random
from statistics import median
from typing import Any, cast

import pytest

from common.units import MS
from linklayer.adaptive.frames import MAX_WINDOW, Ack, Coded, Data, Frame, Mark
from tests.harness.adaptive_pair import AdaptivePair, SizedPacket, bernoulli
from tests.harness.checked import footprint

#: numbers wrap soon after the start
NEAR_WRAP = 2**32 - 50


def numbered(count: int, nbytes: int = 1500, start: int = 0) -> list[bytes]:
    return [number.to_bytes(4, "big") + bytes(nbytes - 4) for number in range(start, start + count)]


def numbers(packets: list[tuple[int, Sized]]) -> list[int]:
    return [int.from_bytes(cast(bytes, packet)[:4], "big") for _, packet in packets]


def number_of(frame: Data) -> int:
    return int.from_bytes(cast(bytes, frame.payload)[:4], "big")


def delays_ms(pair: AdaptivePair, end: int = 0) -> list[float]:
    """How long each packet took that was delivered."""
    at = {cast(bytes, packet)[:4]: now for now, packet in pair.taken[end]}
    return [(now - at[cast(bytes, packet)[:4]]) / MS for now, packet in pair.got[1 - end]]


def check(pair: AdaptivePair, end: int = 0, *, acks_come: bool = True) -> None:
    """What holds in the end: each packet came once, in order, or was given up, and all are counted."""
    taken, got = numbers(pair.taken[end]), numbers(pair.got[1 - end])
    given_up = [int.from_bytes(cast(bytes, packet)[:4], "big") for packet in pair.given_up[end]]
    assert got == sorted(set(got))
    assert sorted(set(got) | set(given_up)) == taken
    assert len(set(given_up)) == len(given_up)
    if acks_come:
        assert not set(got) & set(given_up)
    sender, receiver = (pair.ends[number].counters() for number in (end, 1 - end))
    assert (sender.packets, sender.residual_losses) == (len(taken), len(given_up))
    assert (receiver.delivered, receiver.abandoned) == (len(got), len(taken) - len(got))
    assert sender.useful_bytes == sum(len(packet) for _, packet in pair.taken[end]) - 1500 * len(given_up)
    assert receiver.delivered_bytes == sum(len(packet) for _, packet in pair.got[1 - end])


def send(pair: AdaptivePair, count: int, *, until_ms: float, rest_ms: float = 5000) -> AdaptivePair:
    """Send bulk from end 0 until then, and let it end."""
    pair.backlog[0] += numbered(count)
    pair.run(until_ms)
    pair.backlog[0].clear()
    return pair.run(until_ms + rest_ms)


# -- bulk ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("per", [0, 0.01, 0.1, 0.3, 0.5])
@pytest.mark.parametrize("first", [0, NEAR_WRAP])
def test_every_packet_comes_once_and_in_order_or_is_given_up(per: float, first: int) -> None:
    pair = send(AdaptivePair(bernoulli(per, 3), first=first), 10_000, until_ms=8000)
    check(pair, acks_come=per < 0.1)
    # 1316 frames' time
    assert len(pair.got[1]) > 1316 * 0.6 * (1 - per)
    assert len(pair.taken[0]) - len(pair.got[1]) <= 0.02 * len(pair.taken[0])


@pytest.mark.parametrize("delay_ms", [505, 1400])
def test_a_round_trip_beyond_the_first_wait_is_learned(delay_ms: float) -> None:
    # RFC 6298's first second is over before any acknowledgement comes
    pair = send(AdaptivePair(delay_ms=delay_ms), 2000, until_ms=12_000, rest_ms=20_000)
    check(pair)
    sent = [number_of(frame) for _, frame in pair.sent[0] if isinstance(frame, Data)]
    # what went in the first round trip, once more
    assert len(sent) - len(set(sent)) <= 2 * delay_ms / 6
    behind = [number for number in sent if number >= 1000]
    assert len(behind) == len(set(behind)) > 500


def test_both_directions_at_once() -> None:
    pair = AdaptivePair(bernoulli(0.2, 5))
    for end in (0, 1):
        pair.backlog[end] += numbered(800)
    pair.run(20_000)
    for end in (0, 1):
        assert len(pair.taken[end]) == 800
        check(pair, end)


@pytest.mark.parametrize("lost", range(6))
def test_a_frame_lost_at_the_start_is_repaired(lost: int) -> None:
    """Also the first of a session, of which the receiver has never seen a number before."""
    count = [0]

    def loses(end: int, now: int, frame: Frame) -> bool:
        if end == 0 and isinstance(frame, Data):
            count[0] += 1
            return count[0] == lost + 1
        return False

    pair = send(AdaptivePair(loses), 5, until_ms=5000)
    check(pair)
    assert len(pair.got[1]) == 5


def test_the_loss_of_the_last_frame_is_repaired() -> None:
    pair = AdaptivePair()
    pair.backlog[0] += numbered(40)
    pair.run(1000)
    lost = [False]

    def loses(end: int, now: int, frame: Frame) -> bool:
        last = end == 0 and isinstance(frame, Data) and not lost[0]
        lost[0] |= last
        return last

    pair._loses = loses
    pair.backlog[0] += numbered(1, start=40)
    pair.run(6000)
    check(pair)
    assert lost[0]
    assert len(pair.got[1]) == 41


# -- hard weather ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("per", "back"), [(0.3, 0.0), (0.0, 0.5), (0.02, 0.3)])
def test_asymmetric_loss(per: float, back: float) -> None:
    pair = send(AdaptivePair(bernoulli(per, 4, back)), 10_000, until_ms=8000)
    check(pair, acks_come=not back)
    assert len(pair.got[1]) > 1316 * 0.7 * (1 - per)
    believed = pair.ends[0].sender.loss
    # its direction's, whatever becomes of acknowledgements
    assert abs(believed.loss - per) <= 4 * believed.doubt


@pytest.mark.parametrize("lost_ways", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("octets", [True, False])
def test_an_outage_of_two_seconds_ends_without_harm(lost_ways: tuple[int, ...], octets: bool) -> None:
    """Of one direction or both: what came is counted, and the link is as fast again a second later."""

    def loses(end: int, now: int, frame: Frame) -> bool:
        return end in lost_ways and 2000 * MS <= now < 4000 * MS

    pair = AdaptivePair(loses, octets=octets)
    pair.source[0] = pair.source[1] = None if octets else lambda: SizedPacket(0)
    if octets:
        pair.backlog[0] += numbered(20_000)
        pair.backlog[1] += numbered(20_000)
    pair.run(5000)
    before = len(pair.got[1])
    pair.run(6000)
    assert len(pair.got[1]) - before > 0.9 * 2_000_000 / 8 / 1540
    pair.source[0] = pair.source[1] = None
    pair.backlog[0].clear()
    pair.backlog[1].clear()
    pair.run(12_000)
    for end in (0, 1) if octets else ():
        check(pair, end, acks_come=False)


def test_a_sudden_change_of_loss_is_followed() -> None:
    rng = Random(8)

    def loses(end: int, now: int, frame: Frame) -> bool:
        return rng.random() < (0.01 if now < 4000 * MS else 0.3)

    pair = AdaptivePair(loses)
    pair.backlog[0] += numbered(20_000)
    pair.run(4000)
    assert pair.ends[0].sender.loss.loss < 0.03
    # the frames of a second, and their acknowledgements
    pair.run(5000)
    assert 0.2 < pair.ends[0].sender.loss.loss < 0.42
    pair.run(9000)
    pair.backlog[0].clear()
    pair.run(15_000)
    check(pair, acks_come=False)


@pytest.mark.parametrize("restarted", [0, 1])
def test_an_end_that_is_made_anew(restarted: int) -> None:
    """What was under way may be lost; all that is sent afterwards arrives, each once."""
    pair = AdaptivePair(bernoulli(0.1, 6))
    for end in (0, 1):
        pair.backlog[end] += numbered(10_000)
    pair.run(2000)
    pair.ends[restarted] = pair.make_end()
    pair.run(2500)
    # numbers of packets that are taken from now on
    fresh = [len(taken) for taken in pair.taken]
    pair.run(6000)
    for backlog in pair.backlog:
        backlog.clear()
    pair.run(12_000)
    for end in (0, 1):
        got = numbers(pair.got[1 - end])
        assert len(got) == len(set(got))
        after = [number for number in got if number >= fresh[end]]
        assert after == sorted(after)
        assert len(after) >= 0.99 * (len(pair.taken[end]) - fresh[end]) > 200
    assert [end.counters().sessions for end in pair.ends][1 - restarted] == 2


def test_each_direction_has_its_own_budget() -> None:
    """The peer's patience is the sender's, whatever its own budget."""
    pair = AdaptivePair(bernoulli(0.2, 9), round_trips=2)
    pair.ends[1] = pair.make_end(round_trips=6)
    for end in (0, 1):
        pair.backlog[end] += numbered(3000)
    pair.run(8000)
    for end in (0, 1):
        pair.backlog[end].clear()
    pair.run(14_000)
    for end, round_trips in ((0, 2), (1, 6)):
        check(pair, end, acks_come=False)
        told = [frame.patience_ms for at, frame in pair.sent[end] if at > 2000 * MS and not isinstance(frame, Ack)]
        shortest = pair.ends[end].sender.budget.round_trip_ns / MS
        assert abs(median(told) - (round_trips + 1) * shortest) <= 4 * (round_trips + 1)
    # packets of the shorter budget are delivered within it, and half a round trip of a frame's own time
    late = [sorted(delays_ms(pair, end)) for end in (0, 1)]
    assert late[0][len(late[0]) * 99 // 100] < 2 * 75 + 40
    assert late[1][len(late[1]) * 99 // 100] > 2 * 75 + 40


# -- sparse and fast traffic -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("per", [0.0, 0.2])
def test_sparse_traffic_is_never_held_up_by_a_group(per: float) -> None:
    """A packet every 500 ms: each frame of it goes at once or when a fate is known, so most take one way."""
    pair = AdaptivePair(bernoulli(per, 11), delay_ms=25)
    for number in range(200):
        pair.run(500 * number)
        pair.backlog[0] += numbered(1, 1500, number)
    pair.run(110_000)
    check(pair, acks_come=not per)
    taken = sorted(delays_ms(pair))
    way = 25 + 1520 * 8 / 2000
    assert median(taken) == pytest.approx(way, abs=0.2)
    if not per:
        # the first went behind a mark
        assert taken[-1] == pytest.approx(way, abs=0.2)
    # no more than the budget, which counts from the queue
    assert taken[-1] <= 3 * 2 * way + 2 * 6.2


def test_a_waiting_packet_does_not_keep_another_channel_out() -> None:
    link = AdaptivePair(octets=False).ends[0]
    link.handle_packet(SizedPacket(1), 0)
    assert not link.wants_packet(0)
    assert link.wants_packet(1)
    link.handle_packet(SizedPacket(2, 64), 1)
    assert not link.wants_packet(1)
    with pytest.raises(RuntimeError, match="did not want"):
        link.handle_packet(SizedPacket(3), 1)
    frames = [cast(Data, link.poll_frame(0)) for _ in range(2)]
    assert [frame.channel for frame in frames] == [0, 1]
    assert link.wants_packet(0)


def test_a_fast_packet_does_not_wait_behind_a_hole() -> None:
    """Beside a bulk at 30 % loss: what comes by its own first frame takes no longer than without loss."""
    pair = AdaptivePair(bernoulli(0.3, 12))
    fast = {bytes(packet) for packet in numbered(40, 80, 50_000)}
    pair.channel_of = lambda packet: int(bytes(cast(bytes, packet)) in fast)
    pair.backlog[0] += numbered(20_000)
    pair.run(1000)
    for number, packet in enumerate(sorted(fast)):
        pair.backlog[0].appendleft(packet)
        pair.run(1100 + 100 * number)
    pair.backlog[0].clear()
    pair.run(12_000)
    at = {cast(bytes, packet)[:4]: now for now, packet in pair.taken[0]}
    delays = [(now - at[packet[:4]]) / MS for now, packet in pair.got[1] if packet in fast]
    assert len(delays) >= 39
    # two frames in the transmitter, repairs before it, its own, and the way
    assert median(delays) < 25 + 5 * 6.2
    reliable = [number for number in numbers(pair.got[1]) if number < 50_000]
    assert reliable == sorted(set(reliable))


# -- bounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_peer_that_never_answers_bounds_the_window_and_the_memory() -> None:
    pair = AdaptivePair(lambda end, now, frame: True, octets=False, rate_bps=100_000_000)
    pair.keep_frames = False
    pair.source[0] = lambda: SizedPacket(0)
    for second in range(1, 7):
        pair.run(1000 * second)
        pair.taken[0].clear()
        pair.given_up[0].clear()
        sender = pair.ends[0].sender
        assert sender._next - sender._lowest() <= MAX_WINDOW
        assert len(sender._under_way) + len(sender._again) + len(sender._dues) < 4 * MAX_WINDOW
    assert footprint(pair.ends[0]) < 32 << 20
    counters = pair.ends[0].counters()
    assert counters.packets - counters.residual_losses == len(sender._held)


def test_without_acknowledgements_packets_are_delivered_and_counted_as_missing() -> None:
    pair = AdaptivePair(lambda end, now, frame: end == 1)
    pair.backlog[0] += numbered(300)
    pair.run(20_000)
    check(pair, acks_come=False)
    assert len(pair.got[1]) == 300
    assert len(pair.given_up[0]) == 300


def test_the_end_of_a_link_gives_up_and_counts_what_is_under_way() -> None:
    pair = AdaptivePair()
    pair.backlog[0] += numbered(100)
    pair.run(300)
    under_way = len(pair.taken[0]) - len(pair.got[1])
    pair.ends[0].end(pair.now)
    assert under_way > 3
    counters = pair.ends[0].counters()
    assert counters.session_losses == counters.residual_losses >= under_way
    assert counters.useful_bytes + 1500 * counters.residual_losses == 1500 * len(pair.taken[0])


# -- octets and sizes ------------------------------------------------------------------------------------------------


#: of any frame, but for the payload; compiled classes do not tell them
FIELDS = (
    "session", "channel", "tx", "base", "patience_ms", "heard", "seq", "first", "members", "index",
    "count", "frames", "top", "packets",
)  # fmt: skip


def story(pair: AdaptivePair, end: int) -> list[tuple[Any, ...]]:
    """When which frames left, payloads by their sizes."""
    return [
        (
            at,
            type(frame).__name__,
            *(getattr(frame, name, None) for name in FIELDS),
            len(frame.payload),
        )
        for at, frame in pair.sent[end]
    ]


@pytest.mark.parametrize("per", [0.2, 0.4])
def test_octets_and_sizes_give_the_same_frames_at_the_same_times(per: float) -> None:
    pairs = [AdaptivePair(bernoulli(per, 14), octets=octets) for octets in (True, False)]
    for pair in pairs:
        sizes = Random(15)
        for number in range(500):
            nbytes = sizes.choice((40, 600, 1500))
            pair.backlog[0].append(bytes(nbytes) if pair is pairs[0] else SizedPacket(number, nbytes))
            pair.backlog[1].append(bytes(nbytes) if pair is pairs[0] else SizedPacket(number, nbytes))
        pair.run(12_000)
    for end in (0, 1):
        assert story(pairs[0], end) == story(pairs[1], end)
        assert [(at, len(packet)) for at, packet in pairs[0].got[end]] == [
            (at, len(packet)) for at, packet in pairs[1].got[end]
        ]
    kinds = {type(frame) for _, frame in pairs[0].sent[0]}
    assert kinds == {Data, Coded, Ack} | ({Mark} & kinds)


def test_the_base_of_the_first_frame_that_comes_acknowledges_nothing() -> None:
    """All frames of the first packet are lost, in its only round, and a mark behind them comes."""

    def loses(end: int, now: int, frame: Frame) -> bool:
        return end == 0 and not isinstance(frame, Ack | Mark)

    pair = AdaptivePair(loses, round_trips=1)
    pair.backlog[0] += numbered(1)
    pair.run(20_000)
    assert (len(pair.got[1]), len(pair.given_up[0])) == (0, 1)
    assert pair.ends[0].counters().useful_bytes == 0
