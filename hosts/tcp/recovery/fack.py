"""FACK: all that is missing below the highest octet that has arrived is lost, at once.

Read first: Mathis and Mahdavi, "Forward acknowledgement" (SIGCOMM 1996), sections 2 and 3; `sack.py`, whose other rules
hold here, too. Linux's SACK was this until reordering became common; SLOWLINK's hosts had it.

Beside RFC 6675: a recovery begins when more than three segments lie between the first missing octet and the highest
one that has arrived (snd.fack), also without three duplicates. In the network is what was sent beyond snd.fack, and
what was sent again. Left out: overdamping, rampdown (PRR's ancestors), and lost retransmissions.

Where the peer has not agreed to SACK this is NewReno.
"""

from typing_extensions import override

from hosts.tcp.recovery import RecoveryPlugin, newreno
from hosts.tcp.recovery.sack import Sack, SackOptions, SackRepair
from hosts.tcp.scoreboard import DUP_THRESH
from hosts.tcp.send_state import SendState


class FackRepair(SackRepair):
    """Holes first, lowest first, as long as cwnd has room for another segment."""

    @override
    def poll(self) -> tuple[int, int] | None:
        sender = self.sender
        una, end, smss, board = sender.una, sender.max, sender.smss, sender.board
        if self._first:
            self._first = False
            return self._resend(una, end)
        high_rxt, fack = self._high_rxt, max(board.high, una) if board else una
        # awnd of the paper: snd.nxt - snd.fack + retran_data
        in_flight = end - fack
        if high_rxt > una:
            in_flight += high_rxt - una - board.sacked_below(high_rxt)
        if sender.growth.cwnd - in_flight < smss:
            return None
        hole = board.hole(high_rxt, fack)
        if hole is not None:
            return self._resend(*hole)
        length = sender.new_segment()
        return self._counted(end, end + length) if length > 0 else None


class Fack(Sack):
    """SACK whose losses are found by the distance of snd.fack."""

    def __init__(self, sender: SendState, options: SackOptions) -> None:
        super().__init__(sender, options)
        self.repair = FackRepair(self, options)

    def _is_lost(self) -> bool:
        sender = self.sender
        board = sender.board
        return super()._is_lost() or (bool(board) and board.high - sender.una > DUP_THRESH * sender.smss)


RECOVERY = RecoveryPlugin(
    name="fack",
    summary="FACK: all below the highest octet that has arrived is lost",
    make=newreno.unless_sack(Fack),
    asks_for="sack",
    options=SackOptions,
)
