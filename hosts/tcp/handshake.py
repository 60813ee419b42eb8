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

The states stand in `connection.py`.
"""

from typing import Final

from common.sequence import MASK
from common.units import MS
from hosts.tcp.config import TcpConfig
from hosts.tcp.lt.protection import FEC_HEADER_BYTES
from hosts.tcp.options import MAX_UNSCALED_WINDOW, MAX_WINDOW_SCALE
from hosts.tcp.receiver import Receiver
from hosts.tcp.recovery import RECOVERIES
from hosts.tcp.sender import Sender
from tcpip.options import LT_PERMITTED, SMART_PERMITTED, permits_lt, permits_smart
from tcpip.segment import ACK, CWR, ECE, SYN, Flow, Option, Segment, SynOptions

#: RFC 9293 section 3.7.1: the MSS of a peer whose SYN names none
_DEFAULT_MSS: Final = 536
#: timestamps on every segment, padded
_TIMESTAMP_BYTES: Final = 12


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
        asked = segment.flags & (ECE | CWR)
        sender.ecn = receiver.ecn = config.ecn and asked == (ECE if segment.flags & ACK else ECE | CWR)

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
            flags = SYN | ACK | (ECE if sender.ecn else 0)
            stamps = receiver.stamps(now)
            number = receiver.nxt & MASK
            permits = receiver.smart
            permits_fec = receiver.decoder is not None
        else:
            shift = self._window_shift if config.window_scaling else None
            options = SynOptions(config.mss, shift, self._asks_for == "sack")
            flags = SYN | (ECE | CWR if config.ecn else 0)
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
        return Segment(self._flow, self._iss & MASK, number, flags, window, timestamps=stamps, syn=options, extra=extra)

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
