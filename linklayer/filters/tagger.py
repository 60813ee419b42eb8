"""The mobile end's part of SMART, for receivers that know nothing of it: ACKs get the option that names their cause.

Read first: COMPARISON section 2.1 (SMART); tcpip/options.py. The base end uses the option and takes it away again
(`snoop.py`), or its userspace TCP does (split-smart).

Rules kept
- The cause of an ACK is taken to be the latest data segment handed to the host. A later one that has arrived since does
  no harm: it has arrived.
- An ACK that has a SMART option keeps it; one whose header is full goes without.
- Pure ACKs alone are changed: no SYN, FIN or RST, and no data.
"""

from collections import deque
from typing import Any, Final

from linklayer.filters.filter import FilterCounters, Guess
from tcpip.access import Access
from tcpip.options import smart_of, smart_option
from tcpip.segment import ACK, FIN, RST, SYN, Flow

#: flows remembered; the least recently used goes
MAX_FLOWS: Final = 1024


class Tagger:
    """The mobile end's filter."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self.counters = FilterCounters()
        #: number and length of the latest data segment handed to the host; the least recently used flow first
        self._latest: dict[Flow, tuple[int, int]] = {}
        self._to_link: deque[tuple[Any, int]] = deque()
        self._from_link: deque[tuple[Any, int]] = deque()

    def handle_to_link(self, packet: Any, channel: int, now: int) -> None:
        """Take a packet of the host's: a pure ACK gets the option."""
        segment = self._access.view(packet)
        if segment is not None and segment.flags & (SYN | FIN | RST | ACK) == ACK and not segment.length:
            latest = self._latest.get(segment.flow.reversed())
            if latest is not None and smart_of(segment) is None:
                tagged = self._access.with_option(packet, smart_option(*latest))
                if tagged is not None:
                    packet = tagged
        self._to_link.append((packet, channel))

    def handle_from_link(self, packet: Any, channel: int, now: int) -> None:
        """Take a packet for the host: it passes, and data is remembered."""
        segment = self._access.view(packet)
        if segment is not None:
            if segment.flags & (SYN | RST):
                self._latest.pop(segment.flow, None)
            elif segment.length:
                self._latest.pop(segment.flow, None)
                self._latest[segment.flow] = (segment.seq, segment.length)
                if len(self._latest) > MAX_FLOWS:
                    del self._latest[next(iter(self._latest))]
        self._from_link.append((packet, channel))

    def handle_given_up(self, packet: Any, now: int) -> None:
        """Do nothing."""

    def poll_to_link(self) -> tuple[Any, int] | None:
        """Return the next packet for the link, or None."""
        return self._to_link.popleft() if self._to_link else None

    def poll_from_link(self) -> tuple[Any, int] | None:
        """Return the next packet for the IP side, or None."""
        return self._from_link.popleft() if self._from_link else None

    def poll_guess(self) -> Guess | None:
        """Return None: it guesses nothing."""
        return None

    def next_deadline(self) -> int | None:
        """Return None: there are no timers."""
        return None

    def handle_deadline(self, now: int) -> None:
        """Do nothing."""
