"""Link ARQ; times in ms."""

import zlib
from pathlib import Path
from typing import Any

import pytest

from common.units import MS
from linklayer.arq.frames import ACK_BITS, Ack, Data, Frame, describe, emit, parse
from linklayer.arq.receiver import MAX_WINDOW, Receiver
from linklayer.link import FrameError
from tests.harness.arq_pair import Pair, arq, loses_data

#: data frames that are lost; whether packets keep their order; what is given; when frames leave, and packets come
HISTORIES = {
    "nothing is lost": ([], False, [b"a"], [(0, 0)], [(1, b"a")]),
    "a lost frame goes again": ([0], False, [b"a"], [(0, 0), (40, 0)], [(41, b"a")]),
    "the others do not wait": (
        [0], False, [b"a", b"b", b"c"], [(0, 0), (0, 1), (0, 2), (40, 0)], [(1, b"b"), (1, b"c"), (41, b"a")],
    ),
    "in order they wait": (
        [0], True, [b"a", b"b", b"c"], [(0, 0), (0, 1), (0, 2), (40, 0)], [(41, b"a"), (41, b"b"), (41, b"c")],
    ),
    "but no longer than its copies may take": (
        [0, 2, 3], True, [b"a", b"b"], [(0, 0), (0, 1), (40, 0), (80, 0)], [(121, b"b")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("lost", "in_order", "packets", "left", "came"), HISTORIES.values(), ids=HISTORIES)
def test_history(lost: list[int], in_order: bool, packets: list[bytes], left: Any, came: Any) -> None:
    pair = Pair(loses_data(*lost), in_order=in_order)
    pair.give(*packets)
    pair.run(500)
    assert (pair.data_times(), pair.got[1]) == (left, came)


def test_acknowledgement_goes_first_then_retransmission_then_new_packet() -> None:
    one, other = arq(1), arq(2)
    one.handle_packet(b"a", 0)
    one.poll_frame(0)
    other.handle_packet(b"x", 0)
    frame = other.poll_frame(0)
    assert frame is not None
    one.handle_deadline(40 * MS)
    one.handle_packet(b"b", 0)
    one.handle_frame(frame, 40 * MS)
    frames = [one.poll_frame(40 * MS) for _ in range(4)]
    assert isinstance(frames[0], Ack)
    assert [frame.payload for frame in frames[1:3] if isinstance(frame, Data)] == [b"a", b"b"]
    assert frames[3] is None


def test_later_acknowledgement_makes_up_for_a_lost_one() -> None:
    pair = Pair(lambda end, number, frame: end == 1 and number == 0)
    pair.give(b"a")
    pair.run(30)
    pair.give(b"b")
    pair.run(500)
    assert pair.data_times() == [(0, 0), (30, 1)]


def test_duplicate_is_not_delivered_and_is_acknowledged_again() -> None:
    pair = Pair(lambda end, number, frame: end == 1 and number == 0)
    pair.give(b"a")
    pair.run(500)
    assert pair.data_times() == [(0, 0), (40, 0)]
    assert pair.got[1] == [(1, b"a")]
    assert pair.ends[1].counters().duplicates == 1
    assert pair.ends[0].counters().residual_losses == 0


@pytest.mark.parametrize("retries", [0, 1, 2, 5])
def test_packet_is_given_up_after_its_retries_and_one_more_wait(retries: int) -> None:
    pair = Pair(lambda end, number, frame: True, retries=retries)
    pair.give(b"a")
    pair.run(40 * (retries + 1) - 1)
    assert pair.data_times() == [(40 * copy, 0) for copy in range(retries + 1)]
    assert pair.ends[0].poll_given_up() is None
    pair.run(1000)
    assert pair.ends[0].poll_given_up() == b"a"
    counters = pair.ends[0].counters()
    assert (counters.packets, counters.retransmissions, counters.residual_losses) == (1, retries, 1)


def test_window_limits_the_packets_under_way() -> None:
    pair = Pair(loses_data(0), window=3)
    pair.give(b"a", b"b", b"c")
    pair.run(20)
    # b and c have come, and the oldest is still under way
    assert not pair.ends[0].wants_packet(0)
    with pytest.raises(RuntimeError):
        pair.ends[0].handle_packet(b"d", 0)
    pair.run(50)
    assert pair.ends[0].wants_packet(0)


def test_in_order_hole_that_the_sender_left_behind_is_passed() -> None:
    pair = Pair(loses_data(0, 1, 3), in_order=True)
    pair.give(b"a")
    pair.run(50)
    pair.give(b"b")
    # a is given up at 120, and the next packet says so
    pair.run(130)
    pair.give(b"c")
    pair.run(135)
    assert pair.data_times() == [(0, 0), (40, 0), (50, 1), (80, 0), (130, 2)]
    assert pair.got[1] == [(131, b"b"), (131, b"c")]
    assert pair.ends[0].poll_given_up() == b"a"


def test_end_made_anew_is_understood() -> None:
    pair = Pair()
    pair.give(b"a", b"b")
    pair.run(10)
    pair.ends[0] = arq(7)
    pair.give(b"c")
    pair.run(20)
    assert [packet for _, packet in pair.got[1]] == [b"a", b"b", b"c"]
    assert pair.ends[1].counters().sessions == 2
    assert pair.data_times()[-1] == (10, 0)


def test_end_gives_up_what_is_under_way_and_delivers_what_waits() -> None:
    pair = Pair(loses_data(0), in_order=True)
    pair.give(b"a", b"b")
    pair.run(10)
    for link in pair.ends:
        link.end(pair.now)
    pair.settle()
    assert pair.got[1] == [(10, b"b")]
    assert pair.ends[0].poll_given_up() == b"a"
    assert pair.ends[0].poll_given_up() is None
    assert all(link.next_deadline() is None for link in pair.ends)


def test_hostile_numbers_hold_a_bounded_number_of_packets_in_order() -> None:
    receiver = Receiver(in_order=True, patience_ns=MS)
    held = 0
    for seq in range(1, 3 * MAX_WINDOW):
        receiver.handle_data(Data(1, 0, seq, 0, b"x"), 0)
        held = seq - receiver.refused - len(receiver.packets)
    assert held == MAX_WINDOW - 1
    receiver.handle_deadline(MS)
    assert len(receiver.packets) == MAX_WINDOW - 1


@pytest.mark.parametrize(("apart", "acks"), [(ACK_BITS, [(ACK_BITS, 1 << 63)]), (ACK_BITS + 1, [(65, 0), (0, 0)])])
def test_acknowledgement_tells_of_the_64_numbers_before_it(apart: int, acks: list[tuple[int, int]]) -> None:
    receiver = Receiver(in_order=False, patience_ns=MS)
    for seq in (0, apart):
        receiver.handle_data(Data(1, 0, seq, 0, b"x"), 0)
    told = iter(receiver.poll_ack, None)
    assert [(ack.seq, ack.before) for ack in told if ack is not None] == acks


def test_frames_and_acknowledgements_that_cannot_be_are_counted_together() -> None:
    link = arq(1)
    link.handle_packet(b"p", 0)
    sent = link.poll_frame(0)
    assert isinstance(sent, Data)
    for seq in (0, MAX_WINDOW, MAX_WINDOW + 1, MAX_WINDOW + 2):
        link.handle_frame(Data(1, 0, seq, 0, b"x"), 0)
    # of other sessions, and of a packet that was not sent
    for session, seq in ((sent.session - 1, 0), (sent.session + 1, 0), (sent.session, 1)):
        link.handle_frame(Ack(session, seq, 0), 0)
    counters = link.counters()
    assert (counters.refused, counters.delivered, counters.sessions, counters.useful_bytes) == (6, 1, 1, 0)
    link.handle_frame(Ack(sent.session, 0, 0), 0)
    assert (link.counters().refused, link.counters().useful_bytes) == (6, 1)


@pytest.mark.parametrize("octets", [bytes(10), bytes(40), b"\xaf" + bytes(30)])
def test_other_octets_are_a_frame_error(octets: bytes) -> None:
    with pytest.raises(FrameError):
        parse(octets)


def test_every_kind_but_those_of_the_document_is_unknown() -> None:
    unknown = []
    for kind in range(256):
        body = bytes([kind]) + bytes(30)
        try:
            parse(body + zlib.crc32(body).to_bytes(4, "big"))
        except FrameError as error:
            unknown += [kind] if "unknown kind" in str(error) else []
    assert unknown == [kind for kind in range(256) if kind not in (0xA0, 0xA1, 0xAF, 0xB0, 0xB1)]


@pytest.mark.parametrize("frame", [Data(0x2A17, 0, 17, 15, b"ping"), Ack(0x2A17, 17, 0b101)])
def test_the_documents_examples(frame: Frame) -> None:
    document = (Path(__file__).parents[2] / "docs/arq.md").read_text()
    octets = emit(frame)
    assert f"{describe(octets).words}: {octets.hex(' ')}" in document
    assert parse(octets) == frame
