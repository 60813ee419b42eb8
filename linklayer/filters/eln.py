"""The ELN marker: dupacks for segments that the air took get the option that says so.

Read first: COMPARISON sections 2.3 and 5.2; Balakrishnan and Katz, "Explicit loss notification and wireless web
performance" (1998), for data from the mobile host; RFC 2018; `tcpip/options.py`.

It stands next to the link, behind the IP queue and all other filters, so it sees every copy that is put on the link,
in the link's order, and none that a queue has dropped. What it knows is one of these:

| of data | where | a segment is lost to corruption when |
|---|---|---|
| for the link (`forwarded`) | a link without reports | its last copy was put on the link before one that has arrived |
| for the link (`given up`) | a link with reports | the link has given up its last copy |
| from the link (`holes`) | the base station | a later segment has come across and it has not |

Rules kept
- `forwarded` needs a link that keeps the order. What has arrived is known from SACK blocks, from cumulative ACKs, and
  from the number of dupacks, each of which another copy has caused, later than the one before. SMART is no proof: a
  station that adds it knows what it has handed to the host, not what the host has answered. So a segment that came
  out of order is no loss, a copy sent again is lost only when a later one has arrived, and every dupack of a lost
  segment is marked, the first included, until a new copy is on its way. A segment behind the first hole of several may
  be sent again before an ACK could say that it is lost: all ACKs at it are marked then.
- Only ACKs without data are marked, where there is evidence of a hole: a dupack, a SACK block above the acknowledgement
  number, or an ACK that covers a part of what was outstanding when the last hole was found.
- One guess per hole, and one more whenever its segment is lost again: corruption with the first mark; with the first
  dupack congestion, where no copy was put on the link or none before the hole had shown or three others had passed
  (`holes`: where it has come across), and late, where all copies may still be under way.
- A flow that is met midway counts from its first segment on or, where numbers are missing before anything of it is
  acknowledged, from the segment behind them; so does one of which more is outstanding than is kept.

Left out: IPv6 and fragments (`Access` has no view of them), and segments with data, which an option may make longer
than the MTU.
"""

from bisect import bisect_left, bisect_right
from collections import OrderedDict, deque
from typing import Any, Final

from common.sequence import MASK, unwrap
from linklayer.filters.filter import Cause, FilterCounters, Guess
from linklayer.filters.ranges import Ranges
from tcpip.access import Access
from tcpip.options import ELN
from tcpip.segment import ACK, FIN, RST, SYN, Flow, Segment

#: what it calls itself when it guesses
NAME: Final = "eln"
#: flows of each direction; segments outstanding of one flow and, two entries each, of all flows; open holes per flow;
#: and guesses that wait to be fetched
MAX_FLOWS: Final = 128
MAX_SEGMENTS: Final = 4096
MAX_ENTRIES: Final = 65_536
MAX_HOLES: Final = 1024
MAX_GUESSES: Final = 4096
#: how many pieces below the right edge of a SACK block are looked at: the newest are there, but for what was sent again
_LOOK_BACK: Final = 32
#: how many copies may pass a segment that is only out of order (RFC 5681 section 3.2: three dupacks are a loss)
_REORDERING: Final = 3


def _end(segment: Segment, seq: int) -> int:
    """The number behind a segment from `seq`: SYN and FIN take one each."""
    return seq + segment.length + bool(segment.flags & SYN) + bool(segment.flags & FIN)


class _Acks:
    """What the receiver of one flow has acknowledged."""

    __slots__ = ("ack", "dupack", "evidence", "guessed", "known", "recover", "seq", "top", "window")

    def __init__(self, seq: int, known: bool) -> None:
        #: behind the highest number of the flow
        self.top = seq
        #: all below is acknowledged, or was before we came
        self.ack = seq
        #: whether all that is outstanding has been seen: from the first SYN, or the first ACK of what was seen
        self.known = known
        #: of the last ACK: its sequence number and its window
        self.seq: int | None = None
        self.window = -1
        #: what was outstanding when the last hole was found ends here
        self.recover = seq
        #: whether the last ACK is a dupack, by repetition or by news of octets above it; or shows a hole at all
        self.dupack = False
        self.evidence = False
        #: what was guessed of the segment at `ack`
        self.guessed: Cause | None = None

    def outruns(self, segment: Segment) -> bool:
        """Whether data is missing before `segment` and may have passed before we came."""
        return not self.known and unwrap(segment.seq, self.top) > self.top

    def handle_ack(self, segment: Segment) -> tuple[tuple[int, int], ...] | None:
        """Take an ACK without data; return the octets above it that have come, as it says.

        None: an old one, or of numbers that were never seen.
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


class _Piece:
    """Octets of a flow up to `end` that were always put on the link together."""

    __slots__ = ("dropped", "earliest", "end", "given_up", "last", "token", "untold")

    def __init__(self, end: int, earliest: int, last: int, token: int, dropped: bool) -> None:
        self.end = end
        #: it was sent before, and did not come here
        self.dropped = dropped
        #: place in the link's order of the last copy, and of the first that may have arrived
        self.earliest = earliest
        self.last = last
        #: which packet the last copy is, and whether the link has given it up
        self.token = token
        self.given_up = False
        #: a copy before the last was given up, and no ACK could say so
        self.untold = False

    def split(self, at: int) -> "_Piece":
        """Keep what is below `at` and return the rest."""
        rest = _Piece(self.end, self.earliest, self.last, self.token, self.dropped)
        rest.given_up, rest.untold = self.given_up, self.untold
        self.end = at
        return rest


class _Sent(_Acks):
    """One flow that this end puts on the link."""

    __slots__ = ("_arrived", "_log", "_order", "_pieces", "_reports", "_starts")

    def __init__(self, seq: int, known: bool, reports: bool) -> None:
        super().__init__(seq, known)
        #: the link says what it has lost
        self._reports = reports
        #: what is outstanding, ascending
        self._starts: list[int] = []
        self._pieces: list[_Piece] = []
        #: how many copies were put on the link, and a place up to which none is under way any more
        self._order = 0
        self._arrived = 0
        #: the copies behind `_arrived`, oldest first: [first, behind the last)
        self._log: deque[tuple[int, int]] = deque()

    @property
    def entries(self) -> int:
        """What it takes of the marker's memory."""
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
            # an ACK, which nobody acknowledges; a probe below would be
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
            pieces.append(_Piece(end, order, order, token, False))
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
                    # what became of it was told; should this copy be lost it is another loss
                    piece.earliest, piece.untold, self.guessed = order, False, "late"
                piece.last, piece.token, piece.given_up = order, token, False
            else:
                # in a gap: it was sent again where what is behind it has come, which showed, or went well before it
                behind = pieces[place] if place < len(starts) else None
                until = end if behind is None else min(end, starts[place])
                dropped = behind is not None and (
                    behind.earliest <= self._arrived or order - behind.earliest > _REORDERING
                )
                piece = _Piece(until, order, order, token, dropped)
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

    def handle_ack(self, segment: Segment) -> tuple[tuple[int, int], ...] | None:
        """See _Acks; notes what has arrived."""
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
        """A dupack: one more copy has arrived, and none of the segment that is missing."""
        for ahead, (seq, end) in enumerate(self._log, start=1):
            if not seq <= self.ack < end:
                self._arrive(self._arrived + ahead)
                return

    def _lost(self, piece: _Piece) -> bool:
        """Whether the last copy is."""
        return piece.given_up if self._reports else piece.last < self._arrived

    def cause(self) -> Cause | None:
        """Return why the segment at the acknowledgement number has not come; None: not known."""
        if self.ack >= self.top:
            return None
        place = bisect_right(self._starts, self.ack) - 1
        if place < 0 or self._pieces[place].end <= self.ack:
            return "congestion"
        piece = self._pieces[place]
        if self._lost(piece) or piece.untold or (not self._reports and piece.earliest < self._arrived):
            return "corruption"
        return "congestion" if piece.dropped else "late"


class _Seen(_Acks):
    """One flow that comes from the link."""

    __slots__ = ("_holes",)

    def __init__(self, seq: int, known: bool) -> None:
        super().__init__(seq, known)
        self._holes = Ranges(MAX_HOLES)

    def handle_data(self, segment: Segment) -> None:
        """Note what has come across."""
        seq = unwrap(segment.seq, self.top)
        end = _end(segment, seq)
        if seq > self.top:
            self._holes.add(self.top, seq)
        self._holes.remove(seq, end)
        self.top = max(self.top, end)

    def handle_ack(self, segment: Segment) -> tuple[tuple[int, int], ...] | None:
        """See _Acks; what is acknowledged is no hole, whichever way it came."""
        above = super().handle_ack(segment)
        self._holes.remove_below(self.ack)
        return above

    def cause(self) -> Cause | None:
        """Return why the segment at the acknowledgement number has not come; None: not known."""
        if self.ack >= self.top:
            return None
        return "corruption" if self.ack in self._holes else "congestion"


class Marker:
    """Marks ACKs of what it knows to be lost on the air.

    `sent`: of the data this end puts on the link; `reports`: by the link's word alone. `holes`: of the data that comes
    from the link, by what is missing.
    """

    def __init__(self, access: Access, *, sent: bool = True, reports: bool = False, holes: bool = False) -> None:
        self._access = access
        self._look_at_sent, self._look_at_holes = sent, holes
        self._reports = reports
        #: by the direction of the data, the longest unused first
        self._sent: OrderedDict[Flow, _Sent] = OrderedDict()
        self._seen: OrderedDict[Flow, _Seen] = OrderedDict()
        #: entries of all flows in `_sent`
        self._entries = 0
        self._to_link: deque[tuple[Any, int]] = deque()
        self._from_link: deque[tuple[Any, int]] = deque()
        self._guesses: deque[Guess] = deque(maxlen=MAX_GUESSES)
        self.counters = FilterCounters()

    def handle_to_link(self, packet: Any, channel: int, now: int) -> None:
        """See Filter."""
        segment = self._access.view(packet)
        if segment is not None:
            if self._look_at_sent:
                self._note_sent(segment, id(packet))
            seen = self._seen.get(segment.flow.reversed()) if _is_ack(segment) else None
            if seen is not None and seen.handle_ack(segment) is not None and seen.evidence:
                packet = self._judge(packet, segment, seen, seen.cause(), now)
        self._to_link.append((packet, channel))

    def handle_from_link(self, packet: Any, channel: int, now: int) -> None:
        """See Filter."""
        segment = self._access.view(packet)
        if segment is not None:
            if self._look_at_holes:
                self._note_seen(segment)
            sent = self._sent.get(segment.flow.reversed()) if _is_ack(segment) else None
            if sent is not None:
                entries = sent.entries
                found = sent.handle_ack(segment)
                self._entries += sent.entries - entries
                if found is not None and sent.evidence:
                    packet = self._judge(packet, segment, sent, sent.cause(), now)
        self._from_link.append((packet, channel))

    def handle_given_up(self, packet: Any, now: int) -> None:
        """See Filter."""
        segment = self._access.view(packet)
        if segment is not None and (sent := self._sent.get(segment.flow)):
            sent.handle_given_up(segment, id(packet))

    def poll_to_link(self) -> tuple[Any, int] | None:
        """See Filter."""
        return self._to_link.popleft() if self._to_link else None

    def poll_from_link(self) -> tuple[Any, int] | None:
        """See Filter."""
        return self._from_link.popleft() if self._from_link else None

    def poll_guess(self) -> Guess | None:
        """See Filter."""
        return self._guesses.popleft() if self._guesses else None

    def next_deadline(self) -> int | None:
        """Return None: there are no timers."""
        return None

    def handle_deadline(self, now: int) -> None:
        """Do nothing."""

    def _note_sent(self, segment: Segment, token: int) -> None:
        flow = segment.flow
        sent = self._sent.get(flow)
        takes_numbers = _takes_numbers(segment)
        afresh = segment.flags & SYN or (sent is not None and takes_numbers and sent.outruns(segment))
        if sent is not None and (segment.flags & RST or sent.crowded or afresh):
            del self._sent[flow]
            self._entries -= sent.entries
            sent = None
        if sent is None:
            if not takes_numbers:
                return
            sent = self._sent[flow] = _Sent(segment.seq, bool(segment.flags & SYN), self._reports)
        self._sent.move_to_end(flow)
        entries = sent.entries
        sent.handle_data(segment, token)
        self._entries += sent.entries - entries
        while len(self._sent) > MAX_FLOWS or (self._entries > MAX_ENTRIES and len(self._sent) > 1):
            _, unused = self._sent.popitem(last=False)
            self._entries -= unused.entries

    def _note_seen(self, segment: Segment) -> None:
        flow = segment.flow
        seen = self._seen.get(flow)
        if seen is not None and segment.flags & RST:
            del self._seen[flow]
            return
        if not _takes_numbers(segment):
            return
        if seen is None or segment.flags & SYN or seen.outruns(segment):
            seen = self._seen[flow] = _Seen(segment.seq, bool(segment.flags & SYN))
            if len(self._seen) > MAX_FLOWS:
                self._seen.popitem(last=False)
        self._seen.move_to_end(flow)
        seen.handle_data(segment)

    def _judge(self, packet: Any, segment: Segment, flow: _Acks, cause: Cause | None, now: int) -> Any:
        """Note the guess, once; return the packet, marked where the air has taken the segment."""
        if cause is None:
            return packet
        if (flow.guessed is None and flow.dupack) or (cause == "corruption" and flow.guessed != cause):
            flow.guessed = cause
            self._guesses.append(Guess(now, segment.flow.reversed(), segment.ack & MASK, cause, NAME))
        if cause != "corruption":
            return packet
        marked = self._access.with_option(packet, ELN)
        if marked is None or marked is packet:
            return packet
        self.counters.eln_marks += 1
        return marked


def _takes_numbers(segment: Segment) -> bool:
    return bool(segment.length or segment.flags & (SYN | FIN)) and not segment.flags & RST


def _is_ack(segment: Segment) -> bool:
    return segment.flags & (ACK | SYN | FIN | RST) == ACK and not segment.length
