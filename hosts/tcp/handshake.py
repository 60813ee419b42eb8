"""The handshake of one connection: its SYN, when to send that again, and the options both ends agree to.

Read first: RFC 9293 sections 3.5 and 3.7.1 (MSS).

| option | agreed when |
|---|---|
| window scale (RFC 7323 section 2) | both SYNs have it; a SYN's own window is never scaled |
| timestamps (RFC 7323 section 3) | both SYNs have them |
| SACK permitted (RFC 2018) | both SYNs have it; the recovery asks for it |
| SMART permitted (`tcpip/options.py`) | the peer's SYN has it; the recovery asks for it |
| LT permitted (`tcpip/options.py`) | both SYNs have it, and SACK was agreed |
| ECN (RFC 3168 section 6.1.1) | a SYN with ECE and CWR was answered with ECE |
| accurate ECN (RFC 9768 section 3.1) | a SYN with AE, CWR and ECE was answered by its own ECN field (table 2) |

The states stand in `connection.py`.
"""

from typing import Final

from common.sequence import MASK
from common.units import MS
from hosts.tcp.accecn import (
    HANDSHAKE_ACE,
    Echo,
    Feedback,
    ace_flags,
    ace_of,
    ecn_fed_back,
    mode_of_syn,
    mode_of_syn_ack,
)
from hosts.tcp.config import TcpConfig
from hosts.tcp.lt.protection import FEC_HEADER_BYTES
from hosts.tcp.options import MAX_UNSCALED_WINDOW, MAX_WINDOW_SCALE
from hosts.tcp.receiver import Receiver
from hosts.tcp.recovery import RECOVERIES
from hosts.tcp.sender import Sender
from tcpip.options import LT_PERMITTED, SMART_PERMITTED, permits_lt, permits_smart
from tcpip.segment import ACK, AE, CWR, ECE, NOT_ECT, SYN, Flow, Option, Segment, SynOptions

#: RFC 9293 section 3.7.1: the MSS of a peer whose SYN names none
_DEFAULT_MSS: Final = 536
#: timestamps on every segment, padded
_TIMESTAMP_BYTES: Final = 12
#: RFC 9768 section 3.1.4.1: SYNs, or SYN-ACKs, with accurate ECN; and the flags of ECN alone (RFC 3168)
_ACCECN_SYNS: Final = 2
_CLASSIC: Final = 0b011


class Handshake:
    """SYN or SYN-ACK of one end. Agreed options are set in its `sender` and `receiver`."""

    def __init__(self, config: TcpConfig, flow: Flow, iss: int, sender: Sender, receiver: Receiver) -> None:
        self._config = config
        self._flow = flow
        self._iss = iss
        self._sender = sender
        self._receiver = receiver
        self._asks_for = RECOVERIES[config.recovery.name].asks_for
        self._asks_for_fec = config.lt.proactive_fec or config.lt.reactive_fec
        #: whether both ends scale windows
        self._scales = False
        #: whether a SYN (or SYN-ACK) is to be sent now; SYNs sent, the time of the latest, and the time of the next
        self.due = False
        self.sent = 0
        self._sent_at = 0
        self.at: int | None = None
        #: the ECN field and the flags of ECN of the peer's SYN
        self._syn_ecn = NOT_ECT
        self._syn_ace = 0

    def take(self, segment: Segment) -> None:
        """Take the peer's SYN: its first number, and its options."""
        config, sender, receiver = self._config.handshake, self._sender, self._receiver
        options = segment.syn or SynOptions()
        receiver.open(segment.seq + 1)
        mss = min(config.mss, _DEFAULT_MSS if options.mss is None else options.mss)
        if config.timestamps and segment.timestamps is not None:
            sender.round_trips.timestamps = receiver.timestamps = True
            receiver.ts_recent = segment.timestamps[0]
            mss -= _TIMESTAMP_BYTES
        receiver.smart = self._asks_for == "smart" and permits_smart(segment)
        sender.sack = receiver.sack = self._asks_for == "sack" and options.sack_permitted
        if self._asks_for_fec and sender.sack and permits_lt(segment):
            receiver.open_decoder()
            mss -= FEC_HEADER_BYTES
        sender.smss = sender.full_smss = sender.unit = mss
        if config.window_scaling and options.window_scale is not None:
            self._scales = True
            sender.window_scale = min(options.window_scale, MAX_WINDOW_SCALE)
            receiver.window_shift = self._window_shift
        self._take_ecn(segment, bool(segment.flags & ACK))

    def _take_ecn(self, segment: Segment, is_answer: bool) -> None:
        """Agree to ECN by the flags of the peer's SYN or SYN-ACK."""
        config, sender, receiver = self._config.handshake, self._sender, self._receiver
        decide = mode_of_syn_ack if is_answer else mode_of_syn
        mode = decide(segment, config.accecn, config.ecn or config.accecn)
        sender.ecn = receiver.ecn = mode != "none"
        self._syn_ecn, self._syn_ace = segment.ecn, ace_of(segment)
        if mode != "accecn":
            return
        feedback, echo = Feedback(), Echo()
        sender.accecn, receiver.accecn = feedback, echo
        if is_answer:
            echo.handle_syn_ack(segment.ecn)
            feedback.check_option(segment)
            # our SYN was not ECN-capable: another echo shows that the field is mangled (RFC 9768 section 3.2.2.3)
            feedback.may_send_ect = ecn_fed_back(self._syn_ace) in (None, NOT_ECT)

    def take_again(self, segment: Segment) -> bool:
        """Take a SYN that comes once more before the handshake is complete; return whether it asks for the same kind of
        ECN (RFC 9768 section 3.1.5: else the connection is reset).
        """
        feedback = self._sender.accecn
        if segment.flags & ACK or segment.seq != self._receiver.irs & MASK:
            return True
        ace = ace_of(segment)
        if not ace:
            if feedback is not None:
                feedback.may_send_ect = False
        elif self._config.handshake.accecn and self._syn_ace and (ace == _CLASSIC) is not (self._syn_ace == _CLASSIC):
            return False
        self._syn_ecn = segment.ecn
        return True

    @property
    def _window_shift(self) -> int:
        shift = 0
        while self._config.buffers.receive_buffer >> shift > MAX_UNSCALED_WINDOW:
            shift += 1
        return shift

    def segment(self, answering: bool, now: int) -> Segment:
        """Return the SYN, or with `answering` the SYN-ACK, and start its timer."""
        config, receiver, sender = self._config.handshake, self._receiver, self._sender
        self.due = False
        if self.sent:
            sender.rto.back_off()
        self.sent += 1
        self._sent_at = now
        self.at = sender.rto.expiry(now)
        if answering:
            options = SynOptions(config.mss, receiver.window_shift if self._scales else None, sender.sack)
            flags = SYN | ACK | self._answer()
            stamps = receiver.stamps(now)
            number = receiver.nxt & MASK
            permits = receiver.smart
            permits_fec = receiver.decoder is not None
        else:
            shift = self._window_shift if config.window_scaling else None
            options = SynOptions(config.mss, shift, self._asks_for == "sack")
            flags = SYN | (ECE | CWR if config.ecn else 0)
            if config.accecn:
                # RFC 9768 section 3.1.4.1
                flags = SYN | (AE | CWR | ECE if self.sent <= _ACCECN_SYNS else 0)
            stamps = (now // MS & MASK, 0) if config.timestamps else None
            number = 0
            permits = self._asks_for == "smart"
            permits_fec = self._asks_for_fec
        agreed, receiver.window_shift = receiver.window_shift, 0
        window = receiver.window()
        receiver.window_shift = agreed
        extra: tuple[Option, ...] = (SMART_PERMITTED,) if permits else ()
        if permits_fec:
            extra += (LT_PERMITTED,)
        if answering and receiver.accecn is not None and self.sent == 1:
            extra += (receiver.accecn.first_option(),)
        return Segment(self._flow, self._iss & MASK, number, flags, window, timestamps=stamps, syn=options, extra=extra)

    def _answer(self) -> int:
        """Return the flags of ECN of the SYN-ACK (RFC 9768 sections 3.1.1 and 3.2.3.2.2)."""
        feedback = self._sender.accecn
        if feedback is None:
            return ECE if self._sender.ecn else 0
        if self.sent > _ACCECN_SYNS:
            # section 3.1.5: the client may not have heard that we have accurate ECN
            feedback.may_send_ect = False
            return 0
        return ace_flags(HANDSHAKE_ACE[self._syn_ecn])

    def complete(self, segment: Segment, seq: int, ssthresh: int | None, now: int) -> None:
        """Take the acknowledgement of the SYN, in a segment that starts at `seq`: the sender may begin."""
        sender = self._sender
        self.stop()
        if self.sent == 1:
            sender.rto.handle_acked(self._sent_at, now)
        sender.open(ssthresh, self.sent - 1, now, self._receiver.decoder is not None)
        if segment.flags & SYN:
            sender.take_first_window(segment.window, seq)
        else:
            sender.update_window(segment, seq, sender.una)

    def handle_deadline(self, now: int) -> bool:
        """Send the SYN again when its timer has expired; return whether all retries are used up."""
        if self.at is None or now < self.at:
            return False
        self.at = None
        self.due = self.sent <= self._config.timers.syn_retries
        return not self.due

    def stop(self) -> None:
        """Send no SYN any more."""
        self.due, self.at = False, None
