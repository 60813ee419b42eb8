"""Tail loss probes: after two round trips without an acknowledgement one segment asks for it.

Read first: RFC 8985 section 7.

Rules: one probe is outstanding at most. It is a new segment where the peer's window has room for one, otherwise the
last segment once more; the congestion window does not limit it. A probe that was sent again and repaired a loss shows
by an acknowledgement beyond it without D-SACK: then the window is reduced as for any loss.
"""

from typing import Final

from common.units import MS, SECOND
from hosts.tcp.send_state import SendState

#: section 7.2: how long a receiver may delay its ACK of a single segment, and the PTO without a round-trip time
MAX_ACK_DELAY_NS: Final = 200 * MS
_PTO_WITHOUT_RTT_NS: Final = 1 * SECOND
#: ours: timestamps count milliseconds, and the timers of a real host may be late by one
_LEAST_PTO_NS: Final = 10 * MS


class TailProbe:
    """The probe of one connection."""

    def __init__(self, sender: SendState) -> None:
        self._sender = sender
        #: the octet behind the highest one sent when the probe left (TLP.end_seq), -1: no probe is outstanding
        self._end = -1
        self._is_again = False

    @property
    def is_out(self) -> bool:
        """Whether a probe is outstanding."""
        return self._end >= 0

    def timeout_ns(self) -> int:
        """Return the PTO (TLP_calc_PTO; the retransmission timer bounds it).

        Choice: with less than two full segments outstanding the ACK may be delayed, where the RFC says "one segment".
        """
        sender = self._sender
        if sender.rto.srtt_ns is None:
            return _PTO_WITHOUT_RTT_NS
        delayed = sender.flight < 2 * sender.smss
        return max(2 * sender.rto.srtt_ns, _LEAST_PTO_NS) + (MAX_ACK_DELAY_NS if delayed else 0)

    def send(self, last: tuple[int, int] | None) -> tuple[int, int] | None:
        """Return the octets of the probe (TLP_send_probe), None: there is nothing to send.

        `last` are those of the highest segment that is outstanding.
        """
        sender = self._sender
        length = sender.new_segment()
        self._is_again = length <= 0
        found = last if self._is_again else (sender.max, sender.max + length)
        if found is not None:
            self._end = max(sender.max, found[1])
        return found

    def handle_arrival(self, ack: int, duplicate: tuple[int, int] | None, is_plain: bool) -> bool:
        """Take an acknowledgement (TLP_process_ack); return whether the probe has repaired a loss.

        `duplicate`: the octets of its D-SACK. `is_plain`: it is a duplicate ACK without SACK blocks.
        """
        if self._end < 0 or ack < self._end:
            return False
        repaired = False
        if self._is_again and not (duplicate is not None and duplicate[1] == self._end):
            if ack == self._end and not is_plain:
                return False
            repaired = ack > self._end
        self._end = -1
        return repaired

    def cancel(self) -> None:
        """Forget the probe: a recovery has begun."""
        self._end = -1
