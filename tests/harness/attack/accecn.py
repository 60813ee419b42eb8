"""Accurate ECN and Prague under attack."""

from random import Random

from typing_extensions import override

from common.units import SECOND
from hosts.tcp.accecn import ACCECN0, ACCECN1, FIRST_CEP, Echo, Feedback, ace_flags, ace_of, counters_of
from hosts.tcp.connection import Connection
from hosts.tcp.growth.prague import Prague
from hosts.tcp.profiles import USER_PROFILES
from tcpip.segment import (
    AE,
    CE,
    CWR,
    ECE,
    MAX_OPTION_BYTES,
    NOT_ECT,
    Option,
    Segment,
    option_bytes,
)  # fmt: skip
from tcpip.wire import SegmentError
from tcpip.wire import emit as emit_segment
from tcpip.wire import parse as parse_segment
from tests.harness.attack.door import require
from tests.harness.attack.tcp import TcpDoor
from tests.harness.checked import footprint
from tests.harness.octets import with_checksums
from tests.hosts.tcp.pair import Drop


class AccEcnDoor(TcpDoor):
    """Accurate ECN and Prague: any ACE and ECN field, options of kinds 172 and 174 of any length, counters that jump.

    Of a fifth of the packets an octet of TCP's header is another. The way of the data marks a tenth beside what it
    loses. Counters without a connection get the same segments, with acknowledgements of any size.
    """

    CONFIG = USER_PROFILES["prague"].config.but(receive_buffer=1 << 18, send_buffer=1 << 18, data_retries=40)
    FORGED_NS = SECOND
    #: octets that both ends may hold: four buffers, and their bookkeeping
    MOST_HELD = 2 << 20

    #: CE that has passed the way of the present flow's data: packets, octets
    _truth = 0, 0

    def __init__(self, blind: bool, seed: int) -> None:
        super().__init__(blind, seed)
        self._feedback, self._echo = Feedback(), Echo()

    @override
    def _drop(self) -> Drop:
        chance = Random(self._seed)
        self._truth = 0, 0

        def drop(segment: Segment) -> bool:
            if segment.length and chance.random() < 0.2:
                return True
            if segment.ecn != NOT_ECT and chance.random() < 0.1:
                segment.ecn = CE
                self._truth = self._truth[0] + 1, self._truth[1] + segment.length
            return False

        return drop

    @override
    def _options(self, rng: Random, model: Segment) -> tuple[Option, ...]:
        kind = rng.random()
        if kind < 0.1:
            return ()
        if kind < 0.2 and model.extra:
            return model.extra
        counters = rng.choice((0, 1, 0xFF_FFFF, rng.getrandbits(24))).to_bytes(3) + rng.randbytes(6)
        data: tuple[bytes, ...] = (counters[: rng.choice((9, 9, 6, 6, 3, 0, rng.randrange(10)))],)
        if kind > 0.9:
            # as long as there is room beside timestamps and a SACK block; or two
            data = (rng.randbytes(rng.randrange(17)),) if kind < 0.95 else (rng.randbytes(6), rng.randbytes(3))
        return tuple(Option(rng.choice((ACCECN0, ACCECN1)), each) for each in data)

    @override
    def _segment(self, rng: Random, sender: int) -> Segment:
        segment = super()._segment(rng, sender)
        segment.flags = segment.flags & ~(AE | CWR | ECE) | ace_flags(rng.randrange(8))
        return segment

    @override
    def _hand_over(self, rng: Random, victim: Connection, hostile: Segment) -> None:
        self._count(rng, hostile)
        if rng.random() < 0.2:
            octets = bytearray(emit_segment(hostile))
            # of the header of TCP behind its numbers, options and their lengths included
            at = rng.randrange(12, min(60, len(octets) - 20))
            # a SYN without ACK needs no number (RFC 9293 section 3.5, simultaneous open)
            if not (self._blind and at == 13):
                octets[20 + at] = rng.getrandbits(8)
            try:
                hostile = parse_segment(with_checksums(bytes(octets)))
            except SegmentError:
                return
        echo = victim._receiver.accecn
        before = 0 if echo is None else echo.cep
        victim.handle_segment(hostile, self._pair.now)
        require(echo is None or echo.cep - before <= 1, "a segment counts as more than one packet")

    def _count(self, rng: Random, segment: Segment) -> None:
        """Hand a segment over to counters of its own."""
        feedback, mss = self._feedback, rng.choice((52, 536, 1448, 65_483))
        newly = rng.choice((0, 1, mss, 8 * mss, rng.getrandbits(20), rng.getrandbits(31)))
        before, believes = (feedback.cep, feedback.ceb), feedback._believes
        packets, octets = feedback.handle_ack(segment, newly, mss)
        told = counters_of(segment) if believes else None
        require(feedback.cep % 8 == ace_of(segment), "s.cep is not ACE modulo 8")
        require(told is None or told[0] is None or feedback.ceb % (1 << 24) == told[0], "s.ceb is not ECEB modulo 2^24")
        risen = feedback.ceb - before[1]
        require(0 <= risen < 1 << 24, f"s.ceb rises by {risen}")
        most = max(-(-newly // mss), -(-risen // mss)) + 7
        require(0 <= packets == feedback.cep - before[0] <= most, f"{packets} packets of {most} at most")
        require(0 <= octets <= max(newly, risen), f"{octets} octets of {max(newly, risen)} at most")
        self._echo.handle_packet(segment.ecn, segment.length, rng.random() < 0.5)
        require(len(self._echo.option().data) <= 9, "an option of more than three fields")
        if rng.random() < 0.01:
            feedback.check_option(segment)
            feedback.handle_first_ack(ace_of(segment))
            self._feedback = Feedback()

    @override
    def _check_sent(self, segment: Segment) -> None:
        size = option_bytes(segment.sack, segment.timestamps, segment.syn, segment.extra)
        require(size <= MAX_OPTION_BYTES, f"options of {size} octets")

    @override
    def _look(self) -> None:
        if self._blind:
            # what the attacker sends is not acceptable, and counts as nothing
            truth, echo = self._truth, self._pair.server._receiver.accecn
            assert echo is not None
            require((echo.cep - FIRST_CEP, echo.ceb) == truth, f"{echo.cep}, {echo.ceb}: {truth} came with CE")
        super()._look()

    @override
    def check(self) -> None:
        held = footprint(self._pair.ends)
        require(held <= self.MOST_HELD, f"{held} octets are held")
        for end in self._pair.ends:
            growth, feedback = end._sender.growth, end._sender.accecn
            assert isinstance(growth, Prague)
            require(growth.alpha == -1 or 0 <= growth.alpha <= 1, f"an average of {growth.alpha}")
            require(not end.connected or growth.cwnd >= end.smss, f"a window of {growth.cwnd}")
            require(growth.pacing_rate_bps is None or growth.pacing_rate_bps > 0, "a rate of 0")
            if feedback is not None:
                require(feedback.cep >= FIRST_CEP and feedback.ceb >= 0, "a counter that has fallen")
