"""NewReno (RFC 6582): a partial acknowledgement means that the next segment is lost as well."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mypy_extensions import mypyc_attr

from hosts.tcp.recovery import Recovery, RecoveryPlugin
from hosts.tcp.recovery.fast_recovery import FastRecovery, FastRecoveryOptions, Repair
from hosts.tcp.recovery.reno import resend_first
from hosts.tcp.send_state import SendState


@mypyc_attr(allow_interpreted_subclasses=True)
@dataclass(frozen=True, kw_only=True)
class NewRenoOptions(FastRecoveryOptions):
    """NewReno's timer; also of the recoveries that are NewReno where the peer does not agree to theirs."""

    #: in fast recovery without SACK only the first partial ACK restarts the timer (RFC 6582 section 4); else every one
    impatient: bool = True


class NewRenoRepair(Repair):
    """The first segment, and the one at each partial acknowledgement."""

    def __init__(self, recovery: FastRecovery, options: NewRenoOptions) -> None:
        super().__init__(recovery)
        self._impatient = options.impatient
        #: whether a partial acknowledgement has come in this recovery
        self._partial = False

    def begin(self, dupacks: int) -> None:
        recovery, sender = self.recovery, self.sender
        recovery.recover = sender.max
        sender.growth.hold(recovery.window + dupacks * sender.smss)
        self._partial = False

    def handle_dupack(self) -> None:
        self.sender.growth.hold(self.sender.growth.cwnd + self.sender.smss)

    def handle_ack(self, acked: int, now: int) -> bool:
        recovery, sender = self.recovery, self.sender
        smss = sender.smss
        if sender.una >= recovery.recover:
            # section 3.2, step 3, the first of the two choices: no burst; a window that ELN has kept stays whole
            recovery.end(recovery.window if recovery.kept else min(recovery.window, max(sender.flight, smss) + smss))
            return True
        recovery.urgent = True
        sender.growth.hold(max(sender.growth.cwnd - acked + (smss if acked >= smss else 0), smss))
        restarts = not (self._partial and self._impatient)
        self._partial = True
        return restarts

    def poll(self) -> tuple[int, int] | None:
        return resend_first(self.recovery)


def make(sender: SendState, options: NewRenoOptions) -> Recovery:
    """Return NewReno for a sender."""
    return FastRecovery(sender, options, NewRenoRepair)


def unless_sack(make_with_sack: Callable[[SendState, Any], Recovery]) -> Callable[[SendState, Any], Recovery]:
    """Return a maker of recoveries that need SACK: NewReno for a sender whose peer does not agree to it."""
    return lambda sender, options: (make_with_sack if sender.sack else make)(sender, options)


RECOVERY = RecoveryPlugin(name="newreno", summary="NewReno (RFC 6582)", make=make, options=NewRenoOptions)
