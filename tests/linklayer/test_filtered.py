"""A link with filters in front of it, with filters and a link of the test's own."""

from collections import deque
from typing import Any

from linklayer.filters.filter import Filter, FilterCounters
from linklayer.filters.filtered import Filtered
from linklayer.plain import Plain, PlainFrame

#: (who, what, packet)
Log = list[tuple[str, str, Any]]


class Marker(Filter):
    """Writes its name on every packet; repeats at its deadline what it has seen last."""

    def __init__(self, name: str, log: Log) -> None:
        super().__init__()
        self.name, self.log = name, log
        self.due: int | None = None
        self.last: tuple[Any, int] | None = None
        self.holds_back = False

    def handle_to_link(self, packet: Any, channel: int, now: int) -> None:
        self.log.append((self.name, "down", packet))
        self.last = (packet + self.name, channel)
        self._to_link.append(self.last)

    def handle_from_link(self, packet: Any, channel: int, now: int) -> None:
        self.log.append((self.name, "up", packet))
        if not self.holds_back:
            self._from_link.append((packet + self.name, channel))

    def handle_given_up(self, packet: Any, now: int) -> None:
        self.log.append((self.name, "given up", packet))

    def next_deadline(self) -> int | None:
        return self.due

    def handle_deadline(self, now: int) -> None:
        if self.due is not None and now >= self.due:
            self.due = None
            assert self.last is not None
            self.counters.retransmissions += 1
            self.counters.retransmitted_bytes += len(self.last[0])
            self._to_link.appendleft(self.last)


class Loser(Plain):
    """A link that knows what it has lost."""

    def __init__(self) -> None:
        super().__init__()
        self.lost: deque[Any] = deque()
        self.ended = False

    def poll_given_up(self) -> Any | None:
        return self.lost.popleft() if self.lost else None

    def end(self, now: int) -> None:
        self.ended = True
        self.handle_frame(PlainFrame("held"), now)


def made() -> tuple[Filtered, Marker, Marker, Loser, Log]:
    log: Log = []
    outer, inner, link = Marker("o", log), Marker("i", log), Loser()
    return Filtered(link, (outer, inner)), outer, inner, link, log


def frames(filtered: Filtered, now: int = 0) -> list[Any]:
    found = []
    while (frame := filtered.poll_frame(now)) is not None:
        found.append(frame.payload)
    return found


def test_packets_pass_the_outermost_filter_first_downwards_and_last_upwards() -> None:
    filtered, _, _, _, log = made()
    assert filtered.established
    filtered.handle_packet("p", 0)
    assert not filtered.wants_packet(0)
    assert frames(filtered) == ["poi"]
    assert filtered.wants_packet(0)
    filtered.handle_frame(PlainFrame("q"), 0)
    assert filtered.poll_packet() == ("qio", 0)
    assert filtered.poll_packet() is None
    assert [(who, what) for who, what, _ in log] == [("o", "down"), ("i", "down"), ("i", "up"), ("o", "up")]


def test_what_a_filter_sends_again_passes_those_below_it_and_goes_before_the_next_packet() -> None:
    filtered, outer, _, _, _ = made()
    filtered.handle_packet("p", 0)
    assert frames(filtered) == ["poi"]
    outer.due = 7
    assert filtered.next_deadline() == 7
    filtered.handle_deadline(6)
    assert frames(filtered) == []
    filtered.handle_deadline(7)
    assert not filtered.wants_packet(0)
    assert frames(filtered) == ["poi"]
    assert filtered.wants_packet(0)
    counters = filtered.counters()
    assert (counters.packets, counters.retransmissions) == (1, 1)
    # the outer filter counts what it has sent again, and the inner one had a letter to add
    assert counters.useful_bytes == 2 * len("poi") - len("po")


def test_what_a_filter_holds_back_goes_no_further() -> None:
    filtered, _, inner, _, log = made()
    inner.holds_back = True
    inner.counters.suppressed_dupacks = 4
    filtered.handle_frame(PlainFrame("q"), 0)
    assert filtered.poll_packet() is None
    assert [(who, what) for who, what, _ in log] == [("i", "up")]
    assert filtered.counters().suppressed_dupacks == 4
    assert filtered.filter_counters() == FilterCounters(suppressed_dupacks=4)


def test_all_filters_hear_what_the_link_has_given_up_and_so_does_the_station() -> None:
    filtered, _, _, link, log = made()
    link.lost.append("x")
    assert filtered.poll_frame(0) is None
    assert log == [("o", "given up", "x"), ("i", "given up", "x")]
    assert filtered.poll_given_up() == "x"
    assert filtered.poll_given_up() is None


def test_the_end_of_the_link_releases_what_it_held_through_the_filters() -> None:
    filtered, *_, link, _ = made()
    filtered.end(5)
    assert link.ended
    assert filtered.poll_packet() == ("heldio", 0)


def test_the_earliest_deadline_counts() -> None:
    filtered, outer, inner, _, _ = made()
    assert filtered.next_deadline() is None
    outer.due, inner.due = 9, 4
    assert filtered.next_deadline() == 4
