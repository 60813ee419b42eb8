"""The marker's knowledge of one flow: its data on the link or from it, and the ACKs of its receiver.

`eln.py` has the rules. `SentFlow` knows the copies of each octet on the link and which of them have arrived; `SeenFlow`
knows the holes in the data from the link. Both answer one question: why is the segment at the acknowledgement number
missing?
"""

from bisect import bisect_left, bisect_right
from collections import deque
from dataclasses import dataclass, replace
from typing import Final

from typing_extensions import override

from common.sequence import unwrap
from linklayer.filters.filter import Cause
from linklayer.filters.ranges import Ranges
from tcpip.segment import FIN, SYN, Segment

#: segments outstanding and open holes of one flow
MAX_SEGMENTS: Final = 4096
MAX_HOLES: Final = 1024
#: pieces below the right edge of a SACK block that are looked at: the newest are there, retransmissions apart
_LOOK_BACK: Final = 32
#: copies that may pass a segment which is only out of order (RFC 5681 section 3.2: three dupacks are a loss)
_REORDERING: Final = 3


def _end(segment: Segment, seq: int) -> int:
    """The number behind a segment from `seq`: SYN and FIN take one each."""
    return seq + segment.length + bool(segment.flags & SYN) + bool(segment.flags & FIN)


class Acks:
    """The acknowledgements of one flow's receiver."""

    def __init__(self, seq: int, known: bool) -> None:
        #: behind the highest number of the flow
        self.top = seq
        #: everything below is acknowledged
        self.ack = seq
        #: whether all outstanding data has been seen: after a SYN, or after the first ACK of data seen here
        self.known = known
        #: sequence number and window of the last ACK
        self.seq: int | None = None
        self.window = -1
        #: end of the data outstanding when the last hole was found
        self.recover = seq
        #: whether the last ACK is a dupack, by repetition or by SACK blocks; whether it shows a hole at all
        self.dupack = False
        self.evidence = False
        #: guess about the segment at `ack`
        self.guessed: Cause | None = None

    def outruns(self, segment: Segment) -> bool:
        """Whether data is missing before `segment` that may have passed before the marker was there."""
        return not self.known and unwrap(segment.seq, self.top) > self.top

    def handle_ack(self, segment: Segment) -> tuple[tuple[int, int], ...] | None:
        """Take an ACK without data; return the blocks of octets above it that have arrived.

        None: an old ACK, or one of numbers that were never seen.
        """
        number = unwrap(segment.ack, self.top)
        seq = segment.seq if self.seq is None else unwrap(segment.seq, self.seq)
        if number < self.ack or number > self.top or (self.seq is not None and seq < self.seq):
            return None
        above = []
        for left, right in segment.sack:
            first = unwrap(left, number)
            last = unwrap(right, first)
            if number < first < last <= self.top:
                above.append((first, last))
        repeated = number == self.ack and self.window == segment.window and self.seq is not None
        if number > self.ack:
            self.ack, self.guessed, self.known = number, None, True
        self.seq, self.window = seq, segment.window
        self.dupack = self.known and (bool(above) or (repeated and not segment.sack and number < self.top))
        self.evidence = self.dupack or (self.known and number < self.recover)
        if self.dupack and number >= self.recover:
            self.recover = self.top
        return tuple(above)


@dataclass(slots=True, eq=False)
class Piece:
    """Octets of a flow up to `end` that were always put on the link together."""

    end: int
    #: place in the link's order of the last copy, and of the first that may have arrived
    earliest: int
    last: int
    #: identity of the last copy's packet
    token: int
    #: its first copy did not come here: it was dropped before
    dropped: bool
    #: the link has given up the last copy
    given_up: bool = False
    #: a copy before the last was given up, and no ACK could say so
    untold: bool = False

    def split(self, at: int) -> "Piece":
        """Keep the octets below `at` and return the rest."""
        rest = replace(self)
        self.end = at
        return rest


class SentFlow(Acks):
    """One flow that this end puts on the link."""

    def __init__(self, seq: int, known: bool, reports: bool) -> None:
        super().__init__(seq, known)
        #: whether the link reports lost packets
        self._reports = reports
        #: the outstanding data, ascending
        self._starts: list[int] = []
        self._pieces: list[Piece] = []
        #: number of copies put on the link, and the place up to which no copy is under way any more
        self._order = 0
        self._arrived = 0
        #: the copies behind `_arrived`, oldest first: [first, behind the last)
        self._log: deque[tuple[int, int]] = deque()

    @property
    def entries(self) -> int:
        """Its share of the marker's memory."""
        return len(self._log) + len(self._pieces)

    @property
    def crowded(self) -> bool:
        """Whether more is outstanding than is kept."""
        return len(self._log) > MAX_SEGMENTS or len(self._pieces) > MAX_SEGMENTS

    def handle_data(self, segment: Segment, token: int) -> None:
        """Note a copy on its way."""
        seq = unwrap(segment.seq, self.top)
        end = _end(segment, seq)
        if seq == end and seq >= self.top:
            # an ACK, which takes no numbers; a keep-alive below `top` is acknowledged
            return
        self._order += 1
        self._log.append((seq, end))
        if end > self.top:
            self.top = end
        self._put(max(seq, self.ack), end, token)

    def _put(self, seq: int, end: int, token: int) -> None:
        starts, pieces, order = self._starts, self._pieces, self._order
        if seq >= end:
            return
        if not starts or seq >= pieces[-1].end:
            starts.append(seq)
            pieces.append(Piece(end, order, order, token, False))
            return
        self._cut(seq)
        self._cut(end)
        place = bisect_left(starts, seq)
        while seq < end:
            if place < len(starts) and starts[place] == seq:
                piece = pieces[place]
                if seq != self.ack:
                    piece.untold = piece.untold or piece.given_up
                elif self._lost(piece):
                    # that loss was marked; if this copy is lost, that is another loss
                    piece.earliest, piece.untold, self.guessed = order, False, "late"
                piece.last, piece.token, piece.given_up = order, token, False
            else:
                # in a gap: a retransmission, if a segment behind it has arrived or went long before it
                behind = pieces[place] if place < len(starts) else None
                until = end if behind is None else min(end, starts[place])
                dropped = behind is not None and (
                    behind.earliest <= self._arrived or order - behind.earliest > _REORDERING
                )
                piece = Piece(until, order, order, token, dropped)
                starts.insert(place, seq)
                pieces.insert(place, piece)
            seq = piece.end
            place += 1

    def _cut(self, at: int) -> None:
        """Let no piece lie across `at`."""
        place = bisect_right(self._starts, at) - 1
        if place >= 0 and self._starts[place] < at < self._pieces[place].end:
            rest = self._pieces[place].split(at)
            self._starts.insert(place + 1, at)
            self._pieces.insert(place + 1, rest)

    def handle_given_up(self, segment: Segment, token: int) -> None:
        """Note that the link has given up a copy; an earlier copy than the last changes nothing."""
        seq = unwrap(segment.seq, self.top)
        end = _end(segment, seq)
        for place in range(bisect_left(self._starts, seq), bisect_left(self._starts, end)):
            piece = self._pieces[place]
            piece.given_up = piece.given_up or piece.token == token

    @override
    def handle_ack(self, segment: Segment) -> tuple[tuple[int, int], ...] | None:
        """Note which copies have arrived."""
        before = self.ack
        above = super().handle_ack(segment)
        if above is None:
            return None
        arrived, number = self._arrived, self.ack
        starts, pieces = self._starts, self._pieces
        if number > before:
            self._cut(number)
            behind = bisect_left(starts, number)
            arrived = max((piece.earliest for piece in pieces[:behind]), default=arrived)
            del starts[:behind], pieces[:behind]
        for left, right in above:
            behind = bisect_left(starts, right)
            for piece in pieces[max(bisect_right(starts, left) - 1, behind - _LOOK_BACK, 0) : behind]:
                if piece.end > left:
                    arrived = max(arrived, piece.earliest)
        self._arrive(arrived)
        if self.dupack and not above:
            self._count()
        return above

    def _arrive(self, order: int) -> None:
        while self._arrived < order:
            self._arrived += 1
            self._log.popleft()

    def _count(self) -> None:
        """Take a dupack: one more copy has arrived, of another segment than the missing one."""
        for ahead, (seq, end) in enumerate(self._log, start=1):
            if not seq <= self.ack < end:
                self._arrive(self._arrived + ahead)
                return

    def _lost(self, piece: Piece) -> bool:
        return piece.given_up if self._reports else piece.last < self._arrived

    def cause(self) -> Cause | None:
        """Return why the segment at the acknowledgement number is missing; None: not known."""
        if self.ack >= self.top:
            return None
        place = bisect_right(self._starts, self.ack) - 1
        if place < 0 or self._pieces[place].end <= self.ack:
            return "congestion"
        piece = self._pieces[place]
        if self._lost(piece) or piece.untold or (not self._reports and piece.earliest < self._arrived):
            return "corruption"
        return "congestion" if piece.dropped else "late"


class SeenFlow(Acks):
    """One flow that comes from the link."""

    def __init__(self, seq: int, known: bool) -> None:
        super().__init__(seq, known)
        self._holes = Ranges(MAX_HOLES)

    def handle_data(self, segment: Segment) -> None:
        """Note octets that have come across."""
        seq = unwrap(segment.seq, self.top)
        end = _end(segment, seq)
        if seq > self.top:
            self._holes.add(self.top, seq)
        self._holes.remove(seq, end)
        self.top = max(self.top, end)

    @override
    def handle_ack(self, segment: Segment) -> tuple[tuple[int, int], ...] | None:
        """Take what is acknowledged; such octets are no hole, whichever way they came."""
        above = super().handle_ack(segment)
        self._holes.remove_below(self.ack)
        return above

    def cause(self) -> Cause | None:
        """Return why the segment at the acknowledgement number is missing; None: not known."""
        if self.ack >= self.top:
            return None
        return "corruption" if self.ack in self._holes else "congestion"
