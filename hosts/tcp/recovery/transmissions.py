"""The segments that a sender has sent and that have not arrived: when each was last sent, and which of them are lost.

Read first: RFC 8985 section 5.2 (per-segment variables).

Rules: numbers are unwrapped, octets are [start, end). A segment is in flight or lost; sent again it is in flight once
more. It is forgotten once it is acknowledged, cumulatively or selectively, so that each question costs a binary search
or a look at the oldest transmissions. Memory is that of the window.
"""

from bisect import bisect_left, bisect_right, insort

from hosts.tcp.scoreboard import Scoreboard


class PacketState:
    """P: the state of a connection when a segment was sent, for delivery rate samples (`hosts/tcp/delivery.py`)."""

    __slots__ = ("delivered", "delivered_time", "first_send_time", "is_app_limited", "lost", "tx_in_flight")

    def __init__(
        self, delivered: int, lost: int, delivered_time: int, first_send_time: int, is_app_limited: bool
    ) -> None:
        #: octets delivered and lost before (C.delivered, C.lost)
        self.delivered = delivered
        self.lost = lost
        self.delivered_time = delivered_time
        self.first_send_time = first_send_time
        self.is_app_limited = is_app_limited
        #: octets in flight, those of the segment among them
        self.tx_in_flight = 0


class Transmission:
    """One segment: its octets, its latest transmission (ns), whether that was not the first one, and its fate."""

    __slots__ = ("again", "end", "lost", "packet", "sent_at", "start")

    def __init__(self, start: int, end: int, sent_at: int, again: bool, lost: bool) -> None:
        self.start = start
        self.end = end
        self.sent_at = sent_at
        self.again = again
        #: lost, and not sent again since
        self.lost = lost
        #: where delivery rates are sampled
        self.packet: PacketState | None = None


class Transmissions:
    """The outstanding segments of one connection."""

    def __init__(self) -> None:
        #: by their octets, lowest first
        self._starts: list[int] = []
        self._segments: list[Transmission] = []
        #: those in flight by their ends, in the order of their latest transmissions
        self._flying: dict[int, Transmission] = {}
        #: octets in flight, and octets lost that are still to be sent again
        self.in_flight = 0
        self.lost = 0
        #: ends of the segments that were selectively acknowledged
        self._arrived_ends: list[int] = []

    @property
    def arrived_segments(self) -> int:
        """Segments that were selectively acknowledged and wait for those before them (RACK.segs_sacked)."""
        return len(self._arrived_ends)

    def handle_sent(self, start: int, end: int, again: bool, now: int) -> Transmission:
        """Take the transmission of [start, end); return it."""
        segments = self._segments
        if again and segments and start < segments[-1].end:
            at = bisect_left(self._starts, start)
            if at < len(segments) and self._starts[at] == start and segments[at].end == end:
                known = segments[at]
                self._uncount(known)
                known.sent_at, known.again, known.lost = now, True, False
                self._count(known)
                return known
            self._cut_out(start, end)
        segment = Transmission(start, end, now, again, False)
        self._insert(segment)
        return segment

    def advance(self, ack: int, arrived: list[Transmission]) -> int:
        """Take a cumulative acknowledgement: move its transmissions to `arrived`; return the octets it covers."""
        segments, ends = self._segments, self._arrived_ends
        if ends and ends[0] <= ack:
            del ends[: bisect_right(ends, ack)]
        count = octets = 0
        for segment in segments:
            if segment.start >= ack:
                break
            if segment.end > ack:
                cut = ack - segment.start
                segment.start = self._starts[count] = ack
                octets += cut
                if segment.lost:
                    self.lost -= cut
                else:
                    self.in_flight -= cut
                break
            self._uncount(segment)
            count += 1
            octets += segment.end - segment.start
            arrived.append(segment)
        if count:
            del segments[:count]
            del self._starts[:count]
        return octets

    def handle_block(self, start: int, end: int, arrived: list[Transmission]) -> int:
        """Take a SACK block: append the segments within it to `arrived`; return how many octets they have."""
        segments = self._segments
        first = last = bisect_left(self._starts, start)
        octets = 0
        while last < len(segments) and segments[last].end <= end:
            segment = segments[last]
            self._uncount(segment)
            octets += segment.end - segment.start
            arrived.append(segment)
            insort(self._arrived_ends, segment.end)
            last += 1
        if last > first:
            del segments[first:last]
            del self._starts[first:last]
        return octets

    def sent_before(self, sent_at: int, end: int) -> list[Transmission]:
        """Return the segments in flight that were sent before a segment that ends at `end` was sent at `sent_at`.

        Of segments sent at one time, the lower one was sent first (RACK_sent_after).
        """
        found: list[Transmission] = []
        for segment in self._flying.values():
            if segment.sent_at > sent_at:
                break
            if segment.sent_at < sent_at or segment.end < end:
                found.append(segment)
        return found

    @property
    def last(self) -> Transmission | None:
        """The highest outstanding segment, or None."""
        return self._segments[-1] if self._segments else None

    def flying(self) -> list[Transmission]:
        """Return the segments in flight, in the order of their latest transmissions."""
        return list(self._flying.values())

    def flying_within(self, start: int, end: int) -> list[Transmission]:
        """Return the segments in flight that have any of [start, end), lowest first."""
        found: list[Transmission] = []
        at = max(bisect_right(self._starts, start) - 1, 0)
        while at < len(self._segments) and self._starts[at] < end:
            segment = self._segments[at]
            if segment.end > start and not segment.lost:
                found.append(segment)
            at += 1
        return found

    def mark_lost(self, segment: Transmission) -> None:
        """Count a segment in flight as lost."""
        self._uncount(segment)
        segment.lost = True
        self._count(segment)

    def restore(self) -> None:
        """Count all lost segments as in flight: they were not lost."""
        for segment in self._segments:
            if segment.lost:
                self._uncount(segment)
                segment.lost = False
                self._count(segment)
        self._sort()

    def first_lost(self) -> Transmission | None:
        """Return the lowest lost segment, or None."""
        if self.lost:
            for segment in self._segments:
                if segment.lost:
                    return segment
        return None

    def find_missing(self, una: int, end: int, smss: int, board: Scoreboard, now: int) -> None:
        """Count as lost, in segments of `smss`, the octets of [una, end) that are neither marked nor known here.

        Such octets are left when the receiver has reneged, and by probes of a zero window.
        """
        if not board:
            self._arrived_ends.clear()
        known = Scoreboard()
        for segment in self._segments:
            known.add(segment.start, segment.end)
        for left, right in board.ranges:
            known.add(left, right)
        seq = una
        while (hole := known.hole(seq, end)) is not None:
            start, seq = hole
            while start < seq:
                stop = min(start + smss, seq)
                self._insert(Transmission(start, stop, now, True, True))
                start = stop

    def _insert(self, segment: Transmission) -> None:
        starts = self._starts
        if not starts or segment.start > starts[-1]:
            starts.append(segment.start)
            self._segments.append(segment)
        else:
            at = bisect_left(starts, segment.start)
            starts.insert(at, segment.start)
            self._segments.insert(at, segment)
        self._count(segment)

    def _cut_out(self, start: int, end: int) -> None:
        """Forget [start, end); segments that reach beyond it keep the rest."""
        at = max(bisect_right(self._starts, start) - 1, 0)
        rest: list[Transmission] = []
        while at < len(self._segments) and self._starts[at] < end:
            segment = self._segments[at]
            if segment.end <= start:
                at += 1
                continue
            self._uncount(segment)
            del self._segments[at]
            del self._starts[at]
            for left, right in ((segment.start, start), (end, segment.end)):
                if left < right and left >= segment.start and right <= segment.end:
                    rest.append(Transmission(left, right, segment.sent_at, segment.again, segment.lost))
                    rest[-1].packet = segment.packet
        for segment in rest:
            self._insert(segment)
        if rest:
            self._sort()

    def _sort(self) -> None:
        flying = list(self._flying.values())
        flying.sort(key=_time)
        self._flying = {segment.end: segment for segment in flying}

    def _count(self, segment: Transmission) -> None:
        if segment.lost:
            self.lost += segment.end - segment.start
        else:
            self.in_flight += segment.end - segment.start
            self._flying[segment.end] = segment

    def _uncount(self, segment: Transmission) -> None:
        if segment.lost:
            self.lost -= segment.end - segment.start
        else:
            self.in_flight -= segment.end - segment.start
            del self._flying[segment.end]


def _time(segment: Transmission) -> tuple[int, int]:
    return segment.sent_at, segment.end
