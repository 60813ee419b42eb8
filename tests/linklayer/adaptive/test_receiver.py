"""The receiving side of slacp-adaptive, frame by frame."""

import tracemalloc
from random import Random

import pytest

from common.sequence import MASK
from common.units import MS
from linklayer.adaptive.code import Field
from linklayer.adaptive.endpoint import Adaptive
from linklayer.adaptive.frames import MAX_BITS, MAX_WINDOW, Ack, Data, Mark
from linklayer.adaptive.receiver import AckLosses, Receiver


def data(seq: int, tx: int | None = None, *, base: int = 0, patience_ms: int = 180, heard: int = 0) -> Data:
    return Data(1, 0, seq if tx is None else tx, base, patience_ms, heard, seq, b"%d" % seq)


def after(*frames: Data | Mark) -> Receiver:
    receiver = Receiver(Field())
    for frame in frames:
        receiver.handle_frame(frame, 0)
    return receiver


def ack_of(receiver: Receiver) -> Ack:
    ack = receiver.poll_ack(0)
    assert ack is not None
    return ack


def test_an_acknowledgement_tells_what_has_come_and_nothing_else() -> None:
    receiver = after(data(2, 5), data(3, 6), data(6, 9))
    ack = ack_of(receiver)
    assert (ack.tx, ack.frames, ack.top, ack.packets) == (9, 0b1100, 6, 0b1100)
    assert receiver.poll_ack(0) is None


def test_before_the_first_packet_the_top_is_below_all_that_is_waited_for() -> None:
    ack = ack_of(after(Mark(1, 0, 7, 0, 180, 0)))
    assert (ack.tx, ack.frames, ack.top, ack.packets) == (7, 0, MASK - MAX_WINDOW, 0)


def test_a_number_too_far_above_the_base_is_refused() -> None:
    receiver = after(data(0), data(MAX_WINDOW - 1, 1), data(MAX_WINDOW, 2))
    assert receiver.refused == 1
    assert ack_of(receiver).top == MAX_WINDOW - 1


def test_a_far_jump_of_the_base_costs_no_memory() -> None:
    far = 2**31 - 10
    receiver = after(data(0))
    tracemalloc.start()
    try:
        receiver.handle_frame(Mark(1, 0, 1, far, 180, 0), 0)
        receiver.handle_frame(data(far + 1, 2, base=far), 0)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    ack = ack_of(receiver)
    assert (ack.top, ack.packets) == (far + 1, 0)
    assert receiver.abandoned == far - 1


def test_frames_that_come_again_or_from_too_far_back_are_duplicates() -> None:
    """An acknowledgement reaches no further back than `MAX_BITS`."""
    receiver = after(data(1, 1), data(3, 3), data(2, 2), data(3, 3), data(2, 2))
    assert receiver.duplicates == 2
    ack = ack_of(receiver)
    assert (ack.tx, ack.frames) == (3, 0b11)
    # it has been acknowledged
    receiver.handle_frame(data(2, 2), 0)
    assert (receiver.duplicates, receiver.poll_ack(0)) == (3, None)
    far = MAX_BITS + 10
    receiver.handle_frame(data(4, far), 0)
    receiver.handle_frame(data(5, far - MAX_BITS - 1), 0)
    assert receiver.duplicates == 4
    receiver.handle_frame(data(5, far - MAX_BITS), 0)
    assert receiver.duplicates == 4


@pytest.mark.parametrize("patience_ms", [0, 1, 180])
def test_holes_are_passed_over_when_the_patience_is_over(patience_ms: int) -> None:
    receiver = after(*(data(seq, patience_ms=patience_ms) for seq in (1, 3)))
    assert not receiver.packets
    times: list[int] = []
    while (at := receiver.next_deadline()) is not None:
        assert at > (times[-1] if times else 0)
        receiver.handle_deadline(at)
        times.append(at)
    assert [packet for packet, _ in receiver.packets] == [b"1", b"3"]
    assert times[0] == max(1, patience_ms) * MS


def test_a_deadline_that_is_handled_early_changes_nothing() -> None:
    receiver = after(data(1))
    receiver.handle_deadline(180 * MS - 1)
    assert not receiver.packets
    assert receiver.next_deadline() == 180 * MS


# one in twenty stays unheard: 0.5 ** 5, 0.2 ** 2, all of 0.98
@pytest.mark.parametrize(("heard", "repeats"), [(0, 0), (12, 0), (13, 1), (51, 1), (128, 4), (250, 8), (255, 8)])
def test_acknowledgements_are_repeated_as_the_peer_misses_them(heard: int, repeats: int) -> None:
    receiver = after(data(0, heard=heard))
    first = ack_of(receiver)
    counts = []
    while (at := receiver.next_deadline()) is not None:
        receiver.handle_deadline(at)
        again = ack_of(receiver)
        assert (again.tx, again.top) == (first.tx, first.top)
        counts.append(again.count)
    assert counts == list(range(1, repeats + 1))


def test_a_new_frame_takes_the_place_of_repetitions() -> None:
    receiver = after(data(0, heard=128))
    ack_of(receiver)
    receiver.handle_frame(data(1, heard=0), 0)
    assert ack_of(receiver).tx == 1
    assert receiver.next_deadline() is None


def test_an_acknowledgement_reaches_back_as_far_as_packets_are_missing() -> None:
    receiver = after(data(0), *(data(seq) for seq in range(2, 301)))
    ack = ack_of(receiver)
    assert ack.packets == (1 << 300) - 1 - (1 << 298)
    receiver.handle_frame(data(1, 301), 0)
    assert ack_of(receiver).packets == (1 << 64) - 1


def test_the_share_of_lost_acknowledgements_is_measured_by_their_numbers() -> None:
    losses = AckLosses()
    for count in range(0, 4000, 2):
        losses.handle(count % 256)
    assert losses.share == pytest.approx(0.5, abs=0.02)
    for count in range(4000, 6000):
        losses.handle(count % 256)
    assert losses.steps == 0


def test_an_end_tells_the_share_of_acknowledgements_that_it_misses() -> None:
    end = Adaptive(round_trips=3, budget_ns=0, frame_ns=6 * MS, code=Field(), rng=Random(1), now=0)
    for count in range(0, 1000, 2):
        end.handle_frame(Ack(9, count % 256, 0, 0, 0, 0), 0)
    end.handle_packet(b"x", 0)
    frame = end.poll_frame(0)
    assert isinstance(frame, Data)
    assert frame.heard == pytest.approx(127, abs=6)
    # of another session: no packet is concerned
    assert end.counters().refused == 500
