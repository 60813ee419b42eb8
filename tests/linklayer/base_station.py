"""A base station's filter with both of its sides in the test's hands; packets are octets or objects."""

from typing import Any

from common.sequence import MASK
from linklayer.filters.filter import Guess
from linklayer.filters.snoop import Limits, Snoop
from tcpip.access import Access, Objects, Octets
from tcpip.segment import ACK, ECT0, Flow, Segment
from tcpip.wire import emit

MS = 1_000_000
#: from the fixed host to the mobile one
DATA = Flow(0x0A000002, 80, 0x0A000001, 40_000)
SIZE = 1000
ACCESSES: tuple[Access, ...] = (Objects(), Octets())


class Base:
    """The filter of one scheme. Numbers in the test count from `first`; time stands still unless it is moved."""

    def __init__(
        self,
        access: Access,
        scheme: str = "snoop",
        *,
        first: int = 0,
        limits: Limits | None = None,
        flow: Flow = DATA,
    ) -> None:
        self.access = access
        self.first, self.flow = first, flow
        self.now = 0
        self.suppresses, self.selective = scheme.startswith("snoop"), scheme.endswith("smart")
        self.limits = limits or Limits()
        self.restart()

    def restart(self) -> None:
        """The station forgets everything."""
        self.filter = Snoop(self.access, suppresses=self.suppresses, selective=self.selective, limits=self.limits)

    def packet(self, segment: Segment) -> Any:
        """The segment as it crosses."""
        if isinstance(self.access, Objects):
            return segment
        if segment.length and segment.payload is None:
            segment.payload = bytes(segment.length)
        return emit(segment)

    def data(self, at: int, size: int = SIZE, flags: int = ACK, **fields: Any) -> Any:
        """A segment of the fixed host's."""
        return self.packet(Segment(self.flow, at + self.first & MASK, 1, flags, 500, size, ecn=ECT0, **fields))

    def ack(self, at: int, *, sack: tuple[tuple[int, int], ...] = (), window: int = 500, **fields: Any) -> Any:
        """A segment of the mobile host's."""
        blocks = tuple((left + self.first & MASK, right + self.first & MASK) for left, right in sack)
        flags = fields.pop("flags", ACK)
        return self.packet(
            Segment(self.flow.reversed(), 1, at + self.first & MASK, flags, window, sack=blocks, **fields)
        )

    def down(self, packet: Any) -> list[Any]:
        """Let a packet of the fixed host's come; return what goes on the link."""
        self.filter.handle_to_link(packet, 0, self.now)
        return self.sent()

    def up(self, packet: Any) -> tuple[list[Any], list[Any]]:
        """Let a packet of the mobile host's come; return what passes, and what goes on the link."""
        self.filter.handle_from_link(packet, 0, self.now)
        return self.passed(), self.sent()

    def sent(self) -> list[Any]:
        found = []
        while (delivery := self.filter.poll_to_link()) is not None:
            found.append(delivery[0])
        return found

    def passed(self) -> list[Any]:
        found = []
        while (delivery := self.filter.poll_from_link()) is not None:
            found.append(delivery[0])
        return found

    def guesses(self) -> list[tuple[int, str]]:
        """What is believed of which segment, since the last time."""
        found: list[Guess] = []
        while (guess := self.filter.poll_guess()) is not None:
            found.append(guess)
        return [((guess.seq - self.first) & MASK, guess.cause) for guess in found]

    def window(self, *starts: int) -> list[Any]:
        """Let segments of SIZE octets pass; return them."""
        packets = [self.data(at) for at in starts]
        for packet in packets:
            assert self.down(packet) == [packet]
        return packets

    def wait(self, ns: int) -> list[Any]:
        """Let time pass, deadlines included; return what goes on the link."""
        end, found = self.now + ns, []
        while (at := self.filter.next_deadline()) is not None and at <= end:
            self.now = max(self.now, at)
            self.filter.handle_deadline(self.now)
            found += self.sent()
            after = self.filter.next_deadline()
            assert after is None or after > self.now, "a deadline that does not go away would spin"
        self.now = end
        return found

    def measure(self, rtt_ns: int = 20 * MS) -> None:
        """Have one segment acknowledged after `rtt_ns`: everything after starts at SIZE."""
        self.window(0)
        self.wait(rtt_ns)
        assert len(self.up(self.ack(SIZE))[0]) == 1
