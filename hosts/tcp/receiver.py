"""The receiving half of a connection: reassembly, acknowledgements, the window offered.

Read first: RFC 9293 sections 3.8.6 and 3.10.7.4, RFC 5681 section 4.2 (when to acknowledge), RFC 2018 section 4 (SACK
blocks), RFC 2883 (D-SACK), RFC 3168 section 6.1.3 (ECN-Echo); SLACP section 3 (DAASS).

Rules: an ACK is due at once for a segment out of order, for one that fills a gap, for a duplicate and for a FIN; for
`ack_every` full segments; otherwise within `delayed_ack_ns`. The right edge of the window never moves to the left, and
to the right only by a segment or half the buffer (silly window syndrome).

Left out: receive buffers that grow by themselves.
"""

from typing import Final

from common.sequence import MASK
from common.units import MS
from hosts.tcp.accecn import Echo, ace_flags
from hosts.tcp.bsd import after_ticks
from hosts.tcp.buffers import Reassembly
from hosts.tcp.config import TcpConfig
from hosts.tcp.lt.decoder import Decoder
from hosts.tcp.shared import Shared
from tcpip.segment import CE, CWR, ECE, FIN, SackBlock, Segment, Timestamps

#: RFC 2018 section 3: blocks that fit into 40 octets of options, and beside timestamps
_BLOCKS: Final = 4
_BLOCKS_WITH_TIMESTAMPS: Final = 3


class Receiver:
    """Octets received, and the acknowledgements that are due.

    `nxt` is the next octet expected. The connection calls `handle_data` for acceptable segments, `window`, `blocks` and
    `acknowledged` for every segment it sends, and `handle_deadline` at `ack_at`.
    """

    __slots__ = (
        "_ack_every",
        "_advertised",
        "_buffer",
        "_config",
        "_daass_until",
        "_dsack",
        "_duplicate",
        "_first",
        "_full_bytes",
        "_octets",
        "_pending_bytes",
        "_reassembly",
        "_shared",
        "accecn",
        "ack_at",
        "ack_due",
        "cause",
        "decoder",
        "ecn",
        "ecn_echo",
        "fin",
        "last_ack",
        "nxt",
        "read_up_to",
        "sack",
        "smart",
        "timestamps",
        "ts_recent",
        "window_shift",
    )

    def __init__(self, config: TcpConfig, shared: Shared | None) -> None:
        self._config = config
        # RFC 9768 section 3.1.1: with SACK it needs D-SACK
        self._dsack = config.acks.dsack or config.handshake.accecn
        self._shared = shared
        self._buffer = config.buffers.receive_buffer
        self._ack_every = config.acks.ack_every if config.acks.delayed_ack_ns else 1
        self._octets = bytearray()
        self._reassembly = Reassembly()
        #: of FEC segments, where they were agreed (LT-TCP)
        self.decoder: Decoder | None = None
        #: number of the peer's FIN, once it has come
        self.fin: int | None = None
        self.window_shift = 0
        #: whether ACKs say which segment has caused them (SMART), and the segment that has caused the one that is due
        self.smart = False
        self.cause: Segment | None = None
        #: octets that have come again, for the next acknowledgement to tell (RFC 2883)
        self._duplicate: tuple[int, int] | None = None
        #: agreed in the handshake
        self.sack = self.timestamps = self.ecn = False
        #: RFC 7323 section 4.3: the timestamp to be echoed
        self.ts_recent = 0
        #: counters of marks, where accurate ECN was agreed (RFC 9768)
        self.accecn: Echo | None = None
        #: RFC 3168: tell of a CE mark until CWR comes
        self.ecn_echo = False
        self.ack_due = False
        self.ack_at: int | None = None
        #: octets received since the last ACK, and the largest segment seen
        self._pending_bytes = 0
        self._full_bytes = 1
        # until the peer's first number is known
        self.open(0)

    def open(self, first: int) -> None:
        """Take the number of the peer's first octet of data."""
        config = self._config
        self.nxt = first
        #: the latest acknowledgement number (Last.ACK.sent)
        self.last_ack = first
        #: the first octet of data
        self._first = first
        #: everything below was read by the application
        self.read_up_to = first
        #: the octet behind the window that was last offered
        self._advertised = first
        #: DAASS ends when the data has come up to here
        self._daass_until = first + config.buffers.receive_buffer // 2 if config.acks.daass else first

    @property
    def irs(self) -> int:
        """The number of the peer's SYN."""
        return self._first - 1

    @property
    def bytes_received(self) -> int:
        """Payload octets received in order."""
        return self.nxt - self._first - (self.fin is not None and self.nxt > self.fin)

    @property
    def readable(self) -> int:
        """Octets received in order and not read yet."""
        nxt, fin = self.nxt, self.fin
        return nxt - self.read_up_to - (fin is not None and nxt > fin)

    def read(self, most: int) -> bytes:
        """Take up to `most` octets."""
        octets = bytes(self._octets[:most])
        del self._octets[:most]
        self._read(len(octets))
        return octets

    def discard(self, most: int | None = None) -> int:
        """Take everything, or up to `most` octets, unseen; return how many."""
        nxt, fin = self.nxt, self.fin
        count = nxt - self.read_up_to - (fin is not None and nxt > fin)
        if most is not None and most < count:
            count = most
        if count:
            if self._octets:
                del self._octets[:count]
            self._read(count)
        return count

    def _read(self, count: int) -> None:
        before = self._advertised - self.nxt
        self.read_up_to += count
        # a window that was nearly closed has opened, and no other segment would say so (RFC 9293 section 3.8.6.2.2)
        if 2 * before < self._buffer and self._free() - before >= min(self._buffer // 2, 2 * self._full_bytes):
            self.ack_due = True

    def offers(self, seq: int, end: int) -> bool:
        """Whether any of [seq, end) is within the window (RFC 9293 section 3.10.7.4).

        The next octet counts as within a window of zero, since its acknowledgement and its window do count.
        """
        nxt = self.nxt
        window_end = max(self._advertised, nxt)
        if end == seq:
            return nxt <= seq <= window_end
        return (seq < window_end or seq == nxt) and end > nxt

    def handle_data(self, segment: Segment, seq: int, now: int) -> None:
        """Take the data and the FIN of a segment that starts at `seq` and has at least one of them."""
        length = segment.length
        end = seq + length
        if self.smart and length:
            self.cause = segment
        if self.ecn:
            self._handle_ecn(segment)
        if segment.flags & FIN and self.fin is None:
            self.fin = end
        nxt = self.nxt
        if self._dsack and length:
            self.note_duplicate(seq, end)
        if seq <= nxt < end:
            if end <= self._advertised and segment.payload is None:
                self.nxt = end
            else:
                self._take(segment, seq, end)
            if length > self._full_bytes:
                self._full_bytes = length
            if self._reassembly.recent:
                self._fill()
                self.ack_due = True
            else:
                self._pending_bytes += length
                if self._pending_bytes >= self._ack_every * self._full_bytes or self.nxt <= self._daass_until:
                    self.ack_due = True
                elif self.ack_at is None:
                    self.ack_at = self._delayed(now)
        elif end > nxt and length:
            limit = max(self._advertised, nxt)
            kept = min(end, limit)
            payload = segment.payload
            if kept > seq:
                self._reassembly.add(seq, kept, None if payload is None else payload[: kept - seq])
            self.ack_due = True
        else:
            self.ack_due = True
        if self.decoder is not None and self.decoder.handle_data(self.nxt):
            self._fill()
            self.ack_due = True
        if self.nxt == self.fin:
            self.nxt += 1
            self.ack_due = True

    def handle_fec(self, segment: Segment, fec: tuple[int, int, int, int, int], decoder: Decoder) -> None:
        """Take a FEC segment, whose option has the numbers `fec`."""
        if self.ecn:
            self._handle_ecn(segment)
        nxt = self.nxt
        limit = max(self._advertised, nxt)
        if decoder.handle_fec(fec, segment.payload, segment.length, nxt, limit):
            self._fill()
            if self.nxt == self.fin:
                self.nxt += 1
        self.ack_due = True

    @property
    def ecn_flags(self) -> int:
        """The flags that tell of marks: ACE (RFC 9768) or ECE (RFC 3168)."""
        if self.accecn is not None:
            return ace_flags(self.accecn.ace)
        return ECE if self.ecn_echo else 0

    def _handle_ecn(self, segment: Segment) -> None:
        if self.accecn is not None:
            return
        if segment.flags & CWR:
            self.ecn_echo = False
        if segment.ecn == CE:
            self.ecn_echo = True

    def open_decoder(self) -> None:
        """Take FEC segments from now on: they were agreed."""
        self.decoder = Decoder(self._reassembly, self._buffer)

    def handle_marks(self, segment: Segment, counters: Echo) -> None:
        """Count the mark of an acceptable segment (RFC 9768 section 3.2)."""
        if counters.handle_packet(segment.ecn, segment.length, self.nxt > self.last_ack or segment.length > 0):
            self.ack_due = True

    def note_duplicate(self, seq: int, end: int) -> None:
        """Note for the next D-SACK which octets of a segment have come before (RFC 2883 section 4)."""
        if not (self._dsack and self.sack):
            return
        nxt = self.nxt
        if seq < nxt:
            if end > seq >= self._first:
                self._duplicate = seq, min(end, nxt)
        else:
            held = self._reassembly.overlap(seq, end)
            if held is not None:
                self._duplicate = held

    def _delayed(self, now: int) -> int:
        acks = self._config.acks
        delay_ns = acks.delayed_ack_ns
        return after_ticks(now, 1, delay_ns, self._config.timers.clock_phase_ns) if acks.ack_at_tick else now + delay_ns

    def _take(self, segment: Segment, seq: int, end: int) -> None:
        limit = max(self._advertised, self.nxt)
        if end > limit:
            end = limit
            self.ack_due = True
            if end <= self.nxt:
                return
        if segment.payload is not None:
            octets = segment.payload[self.nxt - seq : end - seq]
            self._octets += octets
            if self.decoder is not None:
                self.decoder.keep(octets)
        self.nxt = end

    def _fill(self) -> None:
        while (found := self._reassembly.take(self.nxt)) is not None:
            end, octets = found
            if octets is not None:
                self._octets += octets
                if self.decoder is not None:
                    self.decoder.keep(octets)
            self.nxt = end

    def handle_deadline(self, now: int) -> None:
        """The delayed ACK is due."""
        if self.ack_at is not None and now >= self.ack_at:
            self.ack_due = True

    # -- fields of the segments that leave -------------------------------------------------------------------

    def acknowledged(self) -> None:
        """A segment has told the peer of everything received."""
        self.ack_due = False
        self.ack_at = None
        self.cause = None
        self._duplicate = None
        self._pending_bytes = 0
        self.last_ack = self.nxt
        if self.accecn is not None:
            self.accecn.acknowledged()

    def _free(self) -> int:
        offered, shared = self._buffer, self._shared
        if shared is not None and shared.window_bytes is not None:
            offered = shared.offered(offered)
        free = offered - self.nxt + self.read_up_to
        return free if free > 0 else 0

    def stamps(self, now: int) -> Timestamps | None:
        """Return the timestamps to put into a segment (RFC 7323 section 3.2), None where they are not agreed."""
        return (now // MS & MASK, self.ts_recent) if self.timestamps else None

    def window(self) -> int:
        """Return the value of the 16-bit window field of a segment."""
        nxt = self.nxt
        edge = nxt + self._free()
        if edge > self._advertised:
            step = edge - self._advertised
            if step >= self._full_bytes or 2 * step >= self._buffer or self._advertised <= self._first:
                self._advertised = edge
        window = self._advertised - nxt
        if window < 0:
            window = 0
        shift = self.window_shift
        window >>= shift
        if window > 0xFFFF:
            window = 0xFFFF
        return window

    @property
    def has_gap(self) -> bool:
        """Whether octets that came out of order wait for those before them."""
        return bool(self._reassembly.recent)

    def blocks(self) -> tuple[SackBlock, ...]:
        """Return the SACK blocks to put into a segment."""
        recent = self._reassembly.recent
        if not (recent or self._duplicate) or not self.sack:
            return ()
        most = _BLOCKS_WITH_TIMESTAMPS if self.timestamps else _BLOCKS
        if self.accecn is not None and self.accecn.is_news:
            # section 3.2.3.3: two blocks at least
            most -= 1
        if self.decoder is not None:
            # its report needs the room of one
            most -= 1
        if self._duplicate is not None:
            # RFC 2883 section 4: in front, and the block that it is part of next
            start, end = self._duplicate
            around = [block for block in recent if block[0] <= start and end <= block[1]]
            recent = [self._duplicate, *around, *(block for block in recent if block not in around)]
        return tuple((start & MASK, end & MASK) for start, end in recent[:most])
