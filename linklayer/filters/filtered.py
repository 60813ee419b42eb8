"""A link with packet filters in front of it: a link again, for the same stations.

        IP side  -- filters[0] -- filters[1] -- ... -- link

Rules kept
- While there are filters there is flow control, with any link. Packets wait in the IP queue: retransmissions of a
  filter overtake them, and no filter has seen a packet that the queue drops.
- The filters see a packet in the next `poll_frame`, which has the time; both stations poll at once.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from linklayer.filters.filter import Filter, FilterCounters, Guess
from linklayer.link import Beliefs, Link, LinkCounters


class Filtered(Link):
    """One end of a link, behind its filters, the outermost (nearest to IP) first."""

    def __init__(self, link: Link, filters: Sequence[Filter]) -> None:
        self.link = link
        self.filters = tuple(filters)
        self.flow_control = link.flow_control or bool(filters)
        #: counters of filters that are gone
        self._done_before = FilterCounters()
        #: packets that no filter has seen yet
        self._fresh: deque[tuple[Any, int]] = deque()
        #: packets that have passed all filters, for the link and for IP
        self._to_link: deque[tuple[Any, int]] = deque()
        self._from_link: deque[tuple[Any, int]] = deque()
        self._given_up: deque[Any] = deque()

    def refit(self, filters: Sequence[Filter]) -> None:
        """Continue with other filters; some may stay. Packets under way are not lost."""
        self._done_before = sum((each.counters for each in self.filters if each not in filters), self._done_before)
        self.filters = tuple(filters)
        self.flow_control = self.link.flow_control or bool(filters)

    @property
    def established(self) -> bool:
        return self.link.established

    def wants_packet(self, channel: int) -> bool:
        return not self._fresh and not self._to_link and self.link.wants_packet(channel)

    def handle_packet(self, packet: Any, channel: int) -> None:
        self._fresh.append((packet, channel))

    def poll_frame(self, now: int) -> Any | None:
        if self.filters:
            while self._fresh:
                self.filters[0].handle_to_link(*self._fresh.popleft(), now)
            self._sink(now)
        else:
            self._to_link.extend(self._fresh)
            self._fresh.clear()
        while self._to_link and self.link.wants_packet(self._to_link[0][1]):
            self.link.handle_packet(*self._to_link.popleft())
        frame = self.link.poll_frame(now)
        self._note_given_up(now)
        return frame

    def handle_frame(self, frame: Any, now: int) -> None:
        self.link.handle_frame(frame, now)
        self._rise(now)

    def poll_packet(self) -> tuple[Any, int] | None:
        return self._from_link.popleft() if self._from_link else None

    def poll_given_up(self) -> Any | None:
        return self._given_up.popleft() if self._given_up else None

    def poll_guess(self) -> Guess | None:
        """Return the next guess of any filter, or None."""
        for each in self.filters:
            guess = each.poll_guess()
            if guess is not None:
                return guess
        return None

    def next_deadline(self) -> int | None:
        deadlines = (self.link.next_deadline(), *(each.next_deadline() for each in self.filters))
        return min((at for at in deadlines if at is not None), default=None)

    def handle_deadline(self, now: int) -> None:
        self.link.handle_deadline(now)
        for each in self.filters:
            each.handle_deadline(now)
        self._rise(now)
        if self.filters:
            self._sink(now)

    def end(self, now: int) -> None:
        """Give up packets under way and release those held; packets still for the link are lost, as on the air."""
        self.link.end(now)
        self._rise(now)

    def counters(self) -> LinkCounters:
        """Return the counters so far; retransmissions of filters count as the link's."""
        counters = self.link.counters()
        done = self.filter_counters()
        return replace(
            counters,
            packets=counters.packets - done.retransmissions,
            retransmissions=counters.retransmissions + done.retransmissions,
            useful_bytes=counters.useful_bytes - done.retransmitted_bytes,
            eln_marks=done.eln_marks,
            suppressed_dupacks=done.suppressed_dupacks,
        )

    def beliefs(self) -> Beliefs | None:
        return self.link.beliefs()

    def frame_cost(self, loss: float) -> float:
        return self.link.frame_cost(loss)

    def filter_counters(self) -> FilterCounters:
        """Return the counters of all filters, of those that are gone, too."""
        return sum((each.counters for each in self.filters), self._done_before)

    def _rise(self, now: int) -> None:
        """Let packets for IP pass the filters, innermost first."""
        self._note_given_up(now)
        if not self.filters:
            while (delivery := self.link.poll_packet()) is not None:
                self._from_link.append(delivery)
            return
        innermost, *others = reversed(self.filters)
        while (delivery := self.link.poll_packet()) is not None:
            innermost.handle_from_link(*delivery, now)
        below = innermost
        for above in others:
            while (found := below.poll_from_link()) is not None:
                above.handle_from_link(*found, now)
            below = above
        while (found := below.poll_from_link()) is not None:
            self._from_link.append(found)

    def _sink(self, now: int) -> None:
        """Let packets for the link pass the filters, outermost first."""
        above, *others = self.filters
        for below in others:
            while (found := above.poll_to_link()) is not None:
                below.handle_to_link(*found, now)
            above = below
        while (found := above.poll_to_link()) is not None:
            self._to_link.append(found)

    def _note_given_up(self, now: int) -> None:
        while (packet := self.link.poll_given_up()) is not None:
            self._given_up.append(packet)
            for each in self.filters:
                each.handle_given_up(packet, now)
