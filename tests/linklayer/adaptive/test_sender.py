"""The sending side of slacp-adaptive, frame by frame."""

from common.sequence import MASK
from common.units import MS
from linklayer.adaptive.code import MAX_SPAN, Field
from linklayer.adaptive.frames import MAX_WINDOW, Ack, Coded, Data, Mark
from linklayer.adaptive.rounds import Packet
from linklayer.adaptive.sender import Sender

SESSION = 7


def sender(budget_ns: int = 0) -> Sender:
    return Sender(SESSION, Field(), round_trips=3, budget_ns=budget_ns, frame_ns=6 * MS, now=0)


def lossy_sender(budget_ms: int = 200) -> Sender:
    """One whose round trip is 50 ms, and whose channel loses half."""
    made = sender(budget_ms * MS)
    made.budget.handle_round_trip(50 * MS, 1500, 0)
    made.budget.handle_fate(50 * MS)
    for number in range(400):
        made._handle_fate(number * 7 % 16 < 8)
    return made


def drain(link: Sender, now: int) -> list[Data | Coded | Mark]:
    frames = []
    while (frame := link.poll_frame(now)) is not None:
        frames.append(frame)
    return frames


def test_the_window_is_bounded() -> None:
    link = sender()
    taken = 0
    while link.wants_packet(0) and taken <= MAX_WINDOW + 10:
        link.handle_packet(b"x", 0)
        drain(link, 0)
        taken += 1
    assert taken == MAX_WINDOW
    link.handle_ack(Ack(SESSION, 0, 0, 0, 0, 0), 50 * MS)
    assert link.wants_packet(0)


def test_an_acknowledgement_of_another_session_tells_nothing() -> None:
    link = sender()
    link.handle_packet(b"x", 0)
    drain(link, 0)
    link.handle_ack(Ack(SESSION + 1, 0, 0, 0, 0, 0), 50 * MS)
    assert (link.stale, link.acked_bytes, link.budget.round_trip_ns) == (1, 0, 0)
    link.handle_ack(Ack(SESSION, 0, 0, 0, 0, 0), 50 * MS)
    assert (link.stale, link.acked_bytes, link.budget.round_trip_ns) == (1, 1, 50 * MS)


def test_acknowledgements_of_what_was_never_sent_tell_nothing() -> None:
    link = sender()
    link.handle_packet(b"x", 0)
    drain(link, 0)
    for tx, top in ((90, 0), (0, 5), (MASK - 3, 0)):
        link.handle_ack(Ack(SESSION, 0, tx, 0, top, 0), 50 * MS)
    assert (link.stale, link.acked_bytes) == (3, 0)


def test_members_of_a_group_fit_in_one_combination() -> None:
    link = lossy_sender()
    link._frame_ns = MS // 10
    for seq in (100, 100 + MAX_SPAN // 2, 100 - MAX_SPAN // 2, 101, 131, 69):
        link._join(Packet(seq, b"x", 0, 110 * MS), False, 100 * MS)
    groups = {id(group): group for group in [*link._groups, *link._open.values()]}.values()
    spans = [[member.seq for member in group.members] for group in groups]
    assert sum(map(len, spans)) == 6
    assert all(max(span) - min(span) < MAX_SPAN for span in spans)


def test_a_last_round_is_not_judged_by_an_earlier_one() -> None:
    # two rounds
    link = lossy_sender(100)
    # a round trip of 0.4 s once: nothing is overdue for long
    link.budget.handle_round_trip(400 * MS, 1500, 0)
    link.handle_packet(b"x", 0)
    first = drain(link, 0)
    assert isinstance(first[0], Data)
    assert any(isinstance(frame, Coded) for frame in first)
    # its time ends before a word has come
    last = drain(link, link.next_deadline() or 0)
    assert isinstance(last[0], Data)
    # of the first round only a combination has come, which tells nothing new of the packet
    link.handle_ack(Ack(SESSION, 0, first[-1].tx, 0, MASK, 0), 72 * MS)
    assert not link.given_up
    link.handle_ack(Ack(SESSION, 1, last[0].tx, 0, 0, 0), 140 * MS)
    assert (link.residual_losses, link.acked_bytes) == (0, 1)


def test_a_last_round_that_is_lost_gives_the_packet_up() -> None:
    link = lossy_sender()
    link.handle_packet(b"x", 0)
    drain(link, 0)
    now = 0
    while (at := link.next_deadline()) is not None and at < 2000 * MS:
        assert at >= now
        now = at
        link.handle_deadline(now)
        drain(link, now)
        if link.given_up:
            break
    assert list(link.given_up) == [b"x"]
    assert link.residual_losses == 1
    assert link.resent >= 1
    # and the peer need not wait for it
    link.handle_packet(b"y", 0)
    assert drain(link, now)[0].base == 1


def test_a_packet_is_no_member_of_a_group_twice() -> None:
    """Its next round may begin while its group still takes members."""
    link = lossy_sender()
    link._frame_ns = MS // 10
    packet = Packet(5, b"x", 0, 110 * MS)
    groups = [link._join(packet, False, at * MS) for at in (100, 101)]
    assert groups[0] is not groups[1]
    assert [len(group.members) for group in groups if group is not None] == [1, 1]
