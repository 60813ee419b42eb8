"""DDA and congestion coherence: which dupacks wait, how long, and what they guess. Times in ms.

Segment n has the octets from `start` + 1000 n on. `near` is the end of the link that has the filter.
"""

from collections.abc import Callable
from typing import Any

import pytest

from common.sequence import MASK
from common.units import MS
from linklayer.filters.coherence import CoherentReceiver, CoherentSender
from linklayer.filters.dupacks import MAX_FLOWS, MAX_HELD, Hold, HoldOptions
from linklayer.filters.filter import Cause
from tcpip.access import Access, Objects, Octets
from tcpip.segment import ACK, CE, ECE, ECT0, FIN, Flow, Segment
from tcpip.wire import emit
from tests.harness.base_station import by_access

DATA = Flow(0x0A000002, 80, 0x0A000001, 40_000)
SIZE = 1000
WAIT = 81


class Near:
    """A filter beside the receiver (data comes from the link) or beside the sender (data goes to the link)."""

    def __init__(
        self,
        kind: type[Hold] = Hold,
        access: Access | None = None,
        *,
        receiver: bool = True,
        start: int = 5000,
        first: int = 3,
        **options: Any,
    ) -> None:
        self.access = access or Objects()
        self.filter = kind(self.access, HoldOptions(wait_ms=WAIT, dupacks=first), **options)
        self.filter.name = "this"
        self.receiver, self.start, self.flow, self.now = receiver, start, DATA, 0

    def data(self, *numbers: int, ce: bool = False, length: int = SIZE) -> None:
        """Let segments of data pass."""
        for n in numbers:
            payload = bytes(length) if isinstance(self.access, Octets) else None
            seq = self.start + SIZE * n & MASK
            segment = Segment(self.flow, seq, 1, ACK, 500, length, payload, ecn=CE if ce else ECT0)
            self._put(segment, self.receiver)
            assert self.leaving() == [n]

    def ack(self, n: int, *, flags: int = ACK, window: int = 500, length: int = 0, sack: Any = ()) -> list[int]:
        """Let an ACK of all below segment n come; return the ACKs that leave."""
        payload = bytes(length) if length and isinstance(self.access, Octets) else None
        number = self.start + SIZE * n & MASK
        self._put(Segment(self.flow.reversed(), 1, number, flags, window, length, payload, sack), not self.receiver)
        return self.leaving()

    def hole(self, n: int) -> None:
        """Show a hole at segment n: the ACK that it is expected by, and data behind it."""
        self.data(*(each for each in range(n + 5) if each != n))
        assert self.ack(n) == [n]

    def _put(self, segment: Segment, from_link: bool) -> None:
        packet = emit(segment) if isinstance(self.access, Octets) else segment
        (self.filter.handle_from_link if from_link else self.filter.handle_to_link)(packet, 0, self.now * MS)

    def leaving(self) -> list[int]:
        """The segments that leave either way, by number; of ACKs, the number they ask for."""
        found = []
        for poll in (self.filter.poll_to_link, self.filter.poll_from_link):
            while (packet := poll()) is not None:
                segment = self.access.view(packet[0])
                assert segment is not None
                number = segment.seq if segment.flow == self.flow else segment.ack
                found.append((number - self.start & MASK) // SIZE)
        return found

    def wait(self, until: int) -> list[int]:
        """Let time pass; return the ACKs that leave."""
        self.now = until
        self.filter.handle_deadline(until * MS)
        return self.leaving()

    def guesses(self) -> list[tuple[int, Cause]]:
        found = []
        while (guess := self.filter.poll_guess()) is not None:
            assert (guess.flow, guess.by) == (self.flow, "this")
            found.append(((guess.seq - self.start & MASK) // SIZE, guess.cause))
        return found


by_side = pytest.mark.parametrize("receiver", [True, False], ids=["receiver", "sender"])
by_start = pytest.mark.parametrize("start", [5000, 2**32 - 6500, 2**31 - 6500], ids=["middle", "wrap", "sign"])


@by_side
@by_access
@by_start
def test_third_and_later_dupacks_wait_for_w_and_then_all_pass(receiver: bool, access: Access, start: int) -> None:
    near = Near(access=access, receiver=receiver, start=start)
    near.hole(7)
    assert [near.ack(7) for _ in range(5)] == [[7], [7], [], [], []]
    assert near.filter.next_deadline() == WAIT * MS
    assert near.wait(WAIT - 1) == []
    assert near.wait(WAIT) == [7, 7, 7]
    assert near.filter.next_deadline() is None
    assert near.ack(7) == [7]
    assert near.guesses() == [(7, "late")]
    assert near.filter.counters.suppressed_dupacks == 0


@by_side
@by_access
def test_new_ack_drops_the_dupacks_that_wait(receiver: bool, access: Access) -> None:
    near = Near(access=access, receiver=receiver)
    near.hole(7)
    for _ in range(5):
        near.ack(7)
    near.data(7)
    assert near.ack(12) == [12]
    assert near.filter.next_deadline() is None
    assert near.wait(10 * WAIT) == []
    assert near.filter.counters.suppressed_dupacks == 3


def test_each_hole_has_its_own_count_wait_and_guess() -> None:
    near = Near()
    near.data(0, 1, 3, 4, 6, 7, 8, 9)
    near.ack(2)
    assert [near.ack(2) for _ in range(3)] == [[2], [2], []]
    near.wait(40)
    near.data(2)
    # a partial new ACK
    assert near.ack(5) == [5]
    assert [near.ack(5) for _ in range(4)] == [[5], [5], [], []]
    assert near.wait(WAIT + 39) == []
    assert near.wait(WAIT + 40) == [5, 5]
    assert near.guesses() == [(2, "late"), (5, "late")]


@pytest.mark.parametrize(
    ("marked", "passes"), [(5, False), (6, True), (8, True), (9, True), (10, False)], ids=lambda value: str(value)
)
@by_access
def test_cc_holds_unless_a_neighbour_of_the_hole_is_marked(marked: int, passes: bool, access: Access) -> None:
    near = Near(CoherentReceiver, access, sending=False)
    for n in (0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11):
        near.data(n, ce=n == marked)
    near.ack(7)
    assert [near.ack(7) for _ in range(4)] == ([[7]] * 4 if passes else [[7], [7], [], []])
    assert near.guesses() == [(7, "congestion" if passes else "late")]


def test_cc_looks_at_marks_up_to_the_third_dupack_only() -> None:
    near = Near(CoherentReceiver, sending=False)
    near.data(*range(7), 9, 10, 11)
    near.ack(7)
    assert [near.ack(7) for _ in range(3)] == [[7], [7], []]
    # the link brings a marked neighbour later
    near.data(8, ce=True)
    assert near.ack(7) == []


def test_cc_that_holds_from_the_first_dupack_lets_go_when_a_neighbour_is_marked() -> None:
    near = Near(CoherentReceiver, sending=False, first=1)
    near.data(*range(7), 8)
    near.ack(7)
    assert near.ack(7) == []
    near.data(9, ce=True)
    assert near.ack(7) == [7, 7]
    near.data(10)
    assert near.ack(7) == [7]
    assert near.guesses() == [(7, "congestion")]


@pytest.mark.parametrize("echo", [None, 0, 1, 2, 3])
@by_access
def test_cc_sender_holds_unless_an_ack_around_echoes(echo: int | None, access: Access) -> None:
    near = Near(CoherentSender, access, receiver=False, receiving=False)
    near.data(*range(12))
    flags = [ACK | ECE if number == echo else ACK for number in range(4)]
    # the new ACK, then three dupacks
    left = [near.ack(7, flags=each) for each in flags]
    assert left == [[7], [7], [7], [7] if echo in (0, 1, 2) else []]


def test_cc_holds_nothing_for_data_that_goes_to_the_link() -> None:
    near = Near(CoherentReceiver, receiver=False, sending=False)
    near.data(*range(12))
    assert [near.ack(7) for _ in range(6)] == [[7]] * 6


def test_the_first_dupack_that_waits_is_an_option() -> None:
    near = Near(first=1)
    near.hole(7)
    assert [near.ack(7) for _ in range(3)] == [[], [], []]
    assert near.wait(WAIT) == [7, 7, 7]


@pytest.mark.parametrize(
    "fields",
    [
        lambda n: {"length": 10},
        lambda n: {"window": 400 + n},
        lambda n: {"window": 0},
        lambda n: {"flags": ACK | FIN},
    ],
    ids=["data", "window update", "closed window", "FIN"],
)
def test_other_packets_are_neither_held_nor_counted(fields: Callable[[int], dict[str, Any]]) -> None:
    near = Near()
    near.hole(7)
    assert [near.ack(7, **fields(n)) for n in range(5)] == [[7]] * 5
    assert near.filter.next_deadline() is None


def test_repeated_acks_with_nothing_outstanding_pass() -> None:
    near = Near()
    near.data(*range(7))
    # as the answers to keep-alives
    assert [near.ack(7) for _ in range(6)] == [[7]] * 6


def test_sack_blocks_make_a_dupack_whatever_the_window() -> None:
    near = Near()
    near.hole(7)
    block = (near.start + 8 * SIZE, near.start + 9 * SIZE)
    assert [near.ack(7, window=500 + n, sack=(block,)) for n in range(3)] == [[7], [7], []]


def test_a_flow_that_would_hold_too_much_stops_waiting() -> None:
    near = Near()
    near.hole(7)
    left = [near.ack(7) for _ in range(MAX_HELD + 3)]
    assert left[2:-1] == [[]] * MAX_HELD
    assert left[-1] == [7] * (MAX_HELD + 1)
    assert near.filter.next_deadline() is None


def test_the_flow_unused_for_longest_is_forgotten() -> None:
    near = Near()
    near.hole(7)
    for _ in range(3):
        near.ack(7)
    for port in range(MAX_FLOWS):
        near.filter.handle_from_link(Segment(Flow(1, port, 2, 3), 1, 1, ACK, 500, 100), 0, 0)
        near.filter.poll_from_link()
    assert len(near.filter._flows) == MAX_FLOWS
    assert near.wait(WAIT) == []
    assert near.ack(7) == [7]


def test_acks_below_a_forged_one_are_believed_after_a_while() -> None:
    near = Near()
    near.hole(7)
    near.ack(11)
    assert [near.ack(7) for _ in range(34)][-4:] == [[7]] * 4
    assert near.ack(7) == []
