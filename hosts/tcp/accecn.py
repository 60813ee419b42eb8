"""Accurate ECN: counters of marks in place of one echo per window (RFC 9768).

Read first: RFC 9768 sections 3.1 (handshake), 3.2.2 (the ACE field), 3.2.3 (the options), appendix A, whose names are
used here. Section numbers are RFC 9768's (those of draft-ietf-tcpm-accurate-ecn-34).

Rules: a receiver counts packets with CE (`cep`) and octets of payload with CE, ECT(0) and ECT(1) (`ceb`, `e0b`,
`e1b`). ACE, three bits in the place of AE, CWR and ECE, is `cep` modulo 8 on each segment without SYN. The option has
the octets, modulo 2^24. A sender follows with counters of its own; where ACE may have wrapped it takes the safest case,
unless the option says how many octets were marked.

Choices: options go on pure ACKs alone, where data has no room for them; the first ones on the SYN-ACK and its ACK. With
an option an ACK has a SACK block less where the header is full (section 3.2.3.3). Handshakes fall back as section 3.1.4
recommends: the third SYN asks for no ECN, the second SYN-ACK has no option, the third no ECN. SYNs are not ECN-capable,
so that any other echo of their ECN field shows that it is mangled: then no more data is sent as ECN-capable.

Limits: the packets of an ACK are its octets over the MSS (appendix A.2.1), for a sender keeps no list of its segments.
Where these are smaller, ACE may wrap unnoticed behind lost ACKs. Appendix A.2.1 has it as safe down to segments of 5 %
of a full one, while 5 % are marked at most. With options there are as many packets as their octets fill at least.

Left out: LT-TCP's FEC segments, whose marks are not counted (`TcpConfig` refuses both together); tests for continuous
marks (section 3.2.2.3) and for options that are dropped on their way (3.2.3.2.2) beyond the handshake; caches of failed
attempts.
"""

from typing import Final

from tcpip.segment import AE, CE, CWR, ECE, ECT0, ECT1, NOT_ECT, Option, Segment

#: section 3.2.3: kinds of the option by its order of fields
ACCECN0: Final = 172
ACCECN1: Final = 174
#: section 3.2.1
FIRST_CEP: Final = 5
FIRST_ECT: Final = 1
_DIV_ACE: Final = 8
_DIV_OPTION: Final = 1 << 24
#: appendix A.2.2
_SAFETY_FACTOR: Final = 2
#: section 3.2.2.5.1: marks that make an ACK due, with unacknowledged data and without
_MARKS: Final = 2
_MARKS_WITHOUT_DATA: Final = 3

#: tables 2 and 3: the ECN field of a SYN or SYN-ACK, in the three flags of its answer
HANDSHAKE_ACE: Final = {NOT_ECT: 0b010, ECT1: 0b011, ECT0: 0b100, CE: 0b110}
_ECN_OF: Final = {ace: ecn for ecn, ace in HANDSHAKE_ACE.items()}


def ace_of(segment: Segment) -> int:
    """Return the three flags of a segment as a number: AE, CWR, ECE."""
    flags = segment.flags
    return (4 if flags & AE else 0) | (2 if flags & CWR else 0) | (1 if flags & ECE else 0)


def ace_flags(ace: int) -> int:
    """Return a number of three bits as flags."""
    return (AE if ace & 4 else 0) | (CWR if ace & 2 else 0) | (ECE if ace & 1 else 0)


def mode_of_syn(segment: Segment, accecn: bool, ecn: bool) -> str:
    """Return what a server agrees to by a SYN: `accecn`, `ecn` or `none` (table 2; section 3.1.3 for other flags)."""
    ace = ace_of(segment)
    if accecn and ace not in (0b000, 0b011):
        return "accecn"
    return "ecn" if ecn and ace & 0b011 == 0b011 else "none"


def mode_of_syn_ack(segment: Segment, accecn: bool, ecn: bool) -> str:
    """Return the mode of a client that has asked for `accecn` or `ecn`, by the SYN-ACK (table 2)."""
    ace = ace_of(segment)
    if accecn and ace in (0b010, 0b011, 0b100, 0b101, 0b110):
        return "accecn"
    if accecn:
        return "ecn" if ace == 0b001 else "none"
    return "ecn" if ecn and ace & 0b011 == 0b001 else "none"


def ecn_fed_back(ace: int) -> int | None:
    """Return the ECN field that the flags of a handshake tell of; None: they tell of none."""
    return _ECN_OF.get(ace)


class Echo:
    """A receiver's counters: r.cep, r.ceb, r.e0b, r.e1b."""

    def __init__(self) -> None:
        self.cep = FIRST_CEP
        self.ceb = 0
        self.e0b = self.e1b = FIRST_ECT
        #: whether the ECN field of the peer's SYN-ACK is to be fed back by the next pure ACK (section 3.2.2.1), and it
        self.handshake_ace: int | None = None
        #: whether the latest packet had CE, and packets with CE since the last ACK
        self._was_marked = False
        self._marks = 0
        #: whether a SYN-ACK had CE
        self._syn_ack_marked = False
        #: whether an octet counter has changed since the last option, and that of CE
        self.is_news = self.is_ce_news = False

    @property
    def ace(self) -> int:
        """The ACE field."""
        return self.cep % _DIV_ACE

    def handle_syn_ack(self, ecn: int) -> None:
        """Take the ECN field of a SYN-ACK (sections 3.2.2.1 and 3.2.2.2): CE counts once."""
        self.handshake_ace = HANDSHAKE_ACE[ecn]
        if ecn == CE and not self._syn_ack_marked:
            self._syn_ack_marked = True
            self.cep += 1

    def handle_packet(self, ecn: int, octets: int, has_unacked: bool) -> bool:
        """Take an acceptable packet without SYN; return whether it makes an ACK due at once (section 3.2.2.5.1)."""
        if octets and ecn != NOT_ECT:
            self.is_news = True
            if ecn == CE:
                self.ceb += octets
                self.is_ce_news = True
            elif ecn == ECT0:
                self.e0b += octets
            else:
                self.e1b += octets
        was_marked, self._was_marked = self._was_marked, ecn == CE
        if ecn != CE:
            return False
        self.cep += 1
        self._marks += 1
        return (octets > 0 and not was_marked) or self._marks >= (_MARKS if has_unacked else _MARKS_WITHOUT_DATA)

    def acknowledged(self) -> None:
        """A segment has told the peer of all marks."""
        self._marks = 0

    def option(self) -> Option:
        """Return the option with each counter that has ever changed, in the order that is shorter (section 3.2.3.3)."""
        e0b, ceb, e1b = (counter % _DIV_OPTION for counter in (self.e0b, self.ceb, self.e1b))
        has_0, has_1 = self.e0b != FIRST_ECT, self.e1b != FIRST_ECT
        if has_0 and has_1:
            return _option(ACCECN0, (e0b, ceb, e1b))
        kind, first = (ACCECN1, e1b) if has_1 else (ACCECN0, e0b)
        return _option(kind, (first, ceb) if self.ceb else (first,))

    def first_option(self) -> Option:
        """Return the option of the SYN-ACK and of its ACK, with all fields: their values are not 0 (3.2.3.2.4)."""
        return _option(ACCECN0, (self.e0b % _DIV_OPTION, self.ceb % _DIV_OPTION, self.e1b % _DIV_OPTION))

    def told(self) -> None:
        """An option has left."""
        self.is_news = self.is_ce_news = False


def _option(kind: int, fields: tuple[int, ...]) -> Option:
    return Option(kind, b"".join(field.to_bytes(3, "big") for field in fields))


def counters_of(segment: Segment) -> tuple[int | None, int | None, int | None] | None:
    """Return the fields ECEB, EE0B and EE1B of a segment's option, None where one is left out; None: no option.

    Of an option of another length the whole fields that fit count (section 3.2.3).
    """
    for option in segment.extra:
        if option.kind in (ACCECN0, ACCECN1):
            first, ceb, last = _field(option.data, 0), _field(option.data, 3), _field(option.data, 6)
            return (ceb, first, last) if option.kind == ACCECN0 else (ceb, last, first)
    return None


def _field(data: bytes, at: int) -> int | None:
    return int.from_bytes(data[at : at + 3], "big") if len(data) >= at + 3 else None


class Feedback:
    """A sender's counters: s.cep, s.ceb, s.e0b, s.e1b, as its peer's ACKs tell of them."""

    def __init__(self) -> None:
        self.cep = FIRST_CEP
        self.ceb = 0
        self.e0b = self.e1b = FIRST_ECT
        #: packets with CE since the latest option, and their octets, which are an estimate
        self._packets = self._estimate = 0
        #: data may be ECN-capable, and marks count (sections 3.1.5, 3.2.2.1 note 1, 3.2.2.3)
        self.may_send_ect = True
        self.heeds = True
        #: options are believed (section 3.2.3.2.4)
        self._believes = True
        #: the next segment has the flags of a handshake
        self._is_first_ack = False
        #: TSval of the latest segment, to find those that others have superseded; -1: none
        self._latest_stamp = -1

    def handle_first_ack(self, ace: int) -> None:
        """Take the flags of the pure ACK of a SYN-ACK, before its acknowledgement (table 4)."""
        self._is_first_ack = True
        if not ace:
            self.may_send_ect = self.heeds = False
        elif ace == HANDSHAKE_ACE[CE]:
            self.cep = FIRST_CEP + 1
        if ecn_fed_back(ace) not in (None, NOT_ECT):
            self.may_send_ect = False

    def check_option(self, segment: Segment) -> None:
        """Look at the option of a SYN-ACK: an initial value of 0 was mangled."""
        found = counters_of(segment)
        if found is not None and 0 in found[1:]:
            self._believes = False

    def is_superseded(self, segment: Segment, newly_acked: int) -> bool:
        """Whether another segment has told more (appendix A.1): it acknowledges nothing new, in octets or in time."""
        stamp = -1 if segment.timestamps is None else segment.timestamps[0]
        is_newer = stamp >= 0 and (self._latest_stamp < 0 or 0 < (stamp - self._latest_stamp) % (1 << 32) < 1 << 31)
        if is_newer:
            self._latest_stamp = stamp
        is_first, self._is_first_ack = self._is_first_ack, False
        return is_first or (not newly_acked and not is_newer)

    def handle_ack(self, segment: Segment, newly_acked: int, mss: int) -> tuple[int, int]:
        """Take a segment that is not superseded and acknowledges `newly_acked` octets more, selectively, too.

        Returns how many packets and how many octets with CE it tells of. Without an option the octets are an estimate,
        and the next option tells of what is beyond the estimates since the one before. An estimate that was too high is
        not taken off later marks: these are congestion of another time.
        """
        delta = (ace_of(segment) - self.cep) % _DIV_ACE
        packets = -(-newly_acked // mss)
        safer = delta if delta > packets else packets - (packets - delta) % _DIV_ACE
        counters = counters_of(segment) if self._believes else None
        if counters is None:
            octets = min(safer * mss, newly_acked)
            self.cep += safer
            self._packets += safer
            self._estimate += octets
            return safer, octets
        marked = self._take_octets(*counters)
        octets = max(marked - self._estimate, 0)
        told = self._packets
        if safer > delta and marked <= mss * (told + delta) and octets * _SAFETY_FACTOR < mss * safer:
            # appendix A.2.2: so many packets would have been too small
            safer = delta
        missing = -(-marked // mss) - told - safer
        if missing > 0:
            # section 3.2.3.2.5: so few would have been too large. ACE has wrapped although little was acknowledged, as
            # where one loss hides behind another
            safer += -(-missing // _DIV_ACE) * _DIV_ACE
        self.cep += safer
        self._packets = self._estimate = 0
        return safer, octets

    def _take_octets(self, ceb: int | None, e0b: int | None, e1b: int | None) -> int:
        """Take the fields of an option; return how many octets more had CE."""
        before = self.ceb
        if ceb is not None:
            self.ceb += (ceb - self.ceb) % _DIV_OPTION
        if e0b is not None:
            self.e0b += (e0b - self.e0b) % _DIV_OPTION
        if e1b is not None:
            self.e1b += (e1b - self.e1b) % _DIV_OPTION
        return self.ceb - before
