"""The sending half of LT-TCP: the windows are cut into blocks, and FEC segments protect them.

Read first: LT-TCP section III.A.1; docs/lt-tcp.md; `sizing.py` for f(E) and g(E), `ledger.py`, `blocks.py`.

Order of calls: `poll` before the sender is asked for a segment, `handle_sent` for each segment that it gives,
`handle_ack` for each ACK, before loss recovery sees it, `handle_timeout` when the retransmission timer has expired.

Rules
- A block is a window's new data. Its P proactive segments follow its last data segment at once, and count against the
  congestion window until they have left the network.
- Holes of a block are not lost before its proactive segments have had their chance: `SendState.repairable` is the
  first octet that may not be called lost yet.
- Every duplicate ACK that shows an arrival permits R reactive segments for the first incomplete block, and all of them
  together as many as its missing symbols need. Once these have left the network the count begins anew, so that a lost
  repair is repaired within a round trip.
- A timeout permits reactive segments, too, a small window's at most.
- Segments get smaller when the window does: `smss` changes where a block begins, and after a timeout.

Left out: FEC for the FIN, and for what a probe of a closed window carries.
"""

from typing import Final

from hosts.tcp.lt import sizing
from hosts.tcp.lt.blocks import SYMBOLS, Block, encode
from hosts.tcp.lt.estimator import ErasureEstimator
from hosts.tcp.lt.ledger import Ledger
from hosts.tcp.options import LtOptions
from hosts.tcp.send_state import INFINITE, SendState
from tcpip.options import report_of
from tcpip.segment import Segment

#: the FEC option in the header, padded, which no data segment has: segments are smaller by it
FEC_HEADER_BYTES: Final = 16


class SentBlock(Block):
    """A block under way, on the sender's side."""

    def __init__(self, start: int, width: int, planned: int, octets: bytearray | None) -> None:
        super().__init__(start, start, width)
        #: data segments that it shall have; it is open until then
        self.planned = planned
        self.open = True
        #: its data; None where only sizes count
        self.octets = octets
        #: FEC segments sent
        self.redundant = 0
        #: ordinals: of the last proactive segment, and of the last reactive one
        self.judged_at = 0
        self.repaired_at = 0
        #: reactive segments that may be sent before those sent have left the network; how often that was set
        self.budget = 0
        self.rounds = 0


class Shard:
    """A FEC segment to be sent: symbol `index` behind those of `block`."""

    def __init__(self, block: SentBlock, index: int, payload: bytes | None, serial: int) -> None:
        self.block = block
        self.index = index
        self.payload = payload
        self.serial = serial


class Protection:
    """LT-TCP's part of one sender; `agreed`: the peer understands FEC segments."""

    def __init__(self, sender: SendState, options: LtOptions, agreed: bool) -> None:
        self._sender = sender
        self._fec = agreed
        self._proactive = agreed and options.proactive_fec
        self._reactive = agreed and options.reactive_fec
        self._adaptive = options.adaptive_mss
        self._confidence = options.fec_confidence
        self._most = options.most_redundancy
        self._full_units = options.grow_by_full_segments
        self._waits, self._room = options.wait_for_fec, options.room_for_received
        self._counts, self._again = options.count_repairs, options.repair_again
        self._by_report = options.count_by_report
        self._granularity = options.window_segments
        self._full_mss = sender.smss
        self._min_mss = min(options.min_mss, sender.smss)
        self.estimate = ErasureEstimator(options.forget_losses)
        self._ledger = Ledger()
        #: blocks with octets that are not acknowledged, oldest first; the last may be open
        self._blocks: list[SentBlock] = []
        self._open: SentBlock | None = None
        #: data segments of the next block
        self._planned = 1
        #: proactive segments to be sent for the last block, and reactive ones for the first
        self._due = 0
        self._reactive_due = 0
        #: symbols that the first incomplete block needs, as reported; 0: not known
        self._need = 0
        #: the estimator's present window: it began with this much left and arrived, and ends when this much has left
        self._round_left = self._round_arrived = 0
        self._round_ends = 1

    # -- segments to send ------------------------------------------------------------------------------------

    def poll(self) -> Shard | None:
        """Return the next FEC segment, or None; then the sender may send data, of `smss` as it is now."""
        sender = self._sender
        opened = self._open
        if opened is None:
            if not self._due:
                self._plan()
        elif sender.max >= sender.buffer.end or self._is_stuck(opened):
            self._close(opened)
        if not self._fec:
            return None
        if self._room and not sender.recovery.active:
            # received segments do not fill the window, as in recovery
            sender.limited = sender.board.sacked
        if self._due:
            self._due -= 1
            sender.counters.proactive_sent += 1
            block = self._blocks[-1]
            shard = self._shard(block, block.width)
            if self._due:
                block.judged_at = INFINITE
            else:
                block.judged_at = self._ledger.sent
                self._judge()
            return shard
        if self._reactive_due:
            self._reactive_due -= 1
            block = self._blocks[0]
            if block.redundant + block.members < SYMBOLS:
                sender.counters.reactive_sent += 1
                # the paper's are not part of the window
                shard = self._shard(block, block.width if self._counts else 0)
                block.repaired_at = self._ledger.sent
                return shard
        return None

    def _plan(self) -> None:
        """Choose the segments of the next block: LT-TCP's figure 1(a)."""
        sender, rate = self._sender, self.estimate.rate
        window = sender.growth.cwnd
        if self._adaptive:
            segments = self._granularity
            if self._proactive:
                segments += sizing.least(rate)
            smss = window // segments
            self._cut(max(self._min_mss, min(smss, self._full_mss)))
        segments = max(1, window // sender.smss)
        self._planned = (
            sizing.split(segments, rate, self._confidence, self._most)
            if self._proactive
            else min(segments, sizing.MOST_SEGMENTS)
        )

    def _cut(self, smss: int) -> None:
        """Have segments of `smss` octets from now on."""
        sender = self._sender
        sender.smss = smss
        if not self._full_units:
            sender.unit = smss

    def _is_stuck(self, block: SentBlock) -> bool:
        """Whether holes of the open block keep the window from completing it."""
        sender = self._sender
        if not sender.board or sender.una < block.start:
            return False
        out = sender.max - sender.una + sender.fec_octets
        if self._room:
            out -= sender.board.sacked
        return out + sender.smss > sender.growth.cwnd

    def _close(self, block: SentBlock) -> None:
        block.open = False
        self._open = None
        block.members = (block.end - block.start + block.width - 1) // block.width
        if self._proactive:
            self._due = sizing.proactive(block.members, self.estimate.rate, self._confidence, self._most)
            block.judged_at = INFINITE if self._due else 0
        self._judge()

    def _shard(self, block: SentBlock, filled: int) -> Shard:
        """Return the next redundant segment of a block, which takes `filled` octets of the window."""
        index = block.redundant
        block.redundant += 1
        octets = block.octets
        payload = None if octets is None else encode(bytes(octets), block, index)
        self._sender.counters.fec_bytes_sent += block.width
        ordinal = self._ledger.handle_fec(filled)
        self._sender.fec_octets = self._ledger.fec_octets
        return Shard(block, index, payload, ordinal & 0xFFFF)

    def handle_sent(self, seq: int, end: int, known: int) -> None:
        """Take a segment [seq, end) that is sent, FIN apart; octets from `known` on are sent for the first time."""
        ledger = self._ledger
        if end <= known:
            ledger.handle_sent_again()
            blocks = self._blocks
            if blocks and blocks[0].start <= seq < blocks[0].end and blocks[0].repaired_at < INFINITE:
                blocks[0].repaired_at = ledger.sent
            return
        ledger.handle_data(end)
        seq = max(seq, known)
        block, sender = self._open, self._sender
        if block is not None and block.end != seq:
            self._close(block)
            self._due = block.judged_at = 0
            block = None
        data = sender.buffer.take(seq, end - seq)
        if block is None:
            block = SentBlock(seq, sender.smss, self._planned, None if data is None else bytearray())
            if self._proactive and sizing.least(self.estimate.rate):
                block.judged_at = INFINITE
            self._open = block
            self._blocks.append(block)
        if data is not None and block.octets is not None:
            block.octets += data
        block.end = end
        if end - seq < block.width or end - block.start >= block.planned * block.width:
            self._close(block)

    # -- acknowledgements ------------------------------------------------------------------------------------

    def handle_ack(self, segment: Segment, ack: int, fresh: int) -> None:
        """Take an ACK up to `ack`, with `fresh` octets in its SACK blocks that were not known to have arrived."""
        sender, ledger = self._sender, self._ledger
        board = sender.board
        arrived = fresh > 0
        report = report_of(segment) if segment.extra else None
        if report is not None:
            # other ACKs, with data, do not say how many segments have come
            ledger.handle_ack(max(ack, board.high) if board else ack)
            count, serial, self._need = report
            if ledger.handle_report(count, serial):
                arrived = True
            sender.fec_octets = ledger.fec_octets
            if ledger.left >= self._round_ends:
                self.estimate.handle_window(ledger.left - self._round_left, ledger.arrived - self._round_arrived)
                self._round_left, self._round_arrived = ledger.left, ledger.arrived
                self._round_ends = max(ledger.sent, ledger.left + 1)
        blocks = self._blocks
        if ack > sender.una:
            while blocks and blocks[0].end <= ack:
                if blocks[0].open:
                    self._open = None
                blocks.pop(0)
                self._reactive_due = 0
            if not blocks:
                self._due = 0
        if self._proactive:
            self._judge()
        if self._reactive and ack == sender.una and blocks and (arrived if self._counts else fresh > 0):
            self._react(blocks[0], ack)

    def _judge(self) -> None:
        """Find the first block whose proactive segments have not had their chance."""
        left, first = self._ledger.left, INFINITE
        if self._proactive and self._waits and self._sender.max < self._sender.end:
            for block in self._blocks:
                if block.judged_at > left:
                    first = block.start
                    break
        self._sender.repairable = first

    def _react(self, block: SentBlock, una: int) -> None:
        """A duplicate: permit reactive segments for the first block."""
        left = self._ledger.left
        if block.open or una < block.start or (self._waits and block.judged_at > left):
            return
        rate = self.estimate.rate
        if not self._counts:
            self._reactive_due += sizing.per_dupack(rate)
            return
        if not self._reactive_due and block.repaired_at <= left:
            if block.rounds and not self._again:
                return
            missing = self._missing(block, una)
            need = min((self._need if self._by_report else 0) or missing, block.members)
            if not need:
                return
            block.budget = sizing.repairs(need, rate)
            if not block.rounds and self._sender.recovery.active:
                # all holes are under way, as retransmissions
                block.budget = max(0, block.budget - missing)
            block.rounds += 1
            block.repaired_at = INFINITE if block.budget else self._ledger.sent
        permitted = min(sizing.per_dupack(rate), block.budget)
        block.budget -= permitted
        self._reactive_due += permitted

    def _missing(self, block: SentBlock, una: int) -> int:
        """Return how many symbols of a block are holes, as far as SACK says."""
        board = self._sender.board
        if not board:
            return 0
        end = min(block.end, board.high)
        missing = end - una - board.sacked_below(end)
        return (missing + block.width - 1) // block.width

    def handle_timeout(self) -> int:
        """Begin with the smallest segments and the least window; return that, octets."""
        opened, sender = self._open, self._sender
        if opened is not None:
            self._close(opened)
        self._due = self._reactive_due = 0
        for block in self._blocks:
            block.judged_at = block.repaired_at = 0
        if self._blocks and self._reactive and self._counts and self._again:
            # a retransmission by the timer may be lost, too
            block = self._blocks[0]
            block.rounds = 1
            start = max(block.start, sender.una)
            held = sender.board.sacked_below(block.end) - sender.board.sacked_below(start)
            missing = (block.end - start - held + block.width - 1) // block.width
            self._reactive_due = min(sizing.repairs(missing, self.estimate.rate), self._granularity)
        self._judge()
        if not self._adaptive:
            return sender.smss
        self._cut(self._min_mss)
        return self._granularity * self._min_mss
