"""Reno (RFC 5681 section 3.2): the first segment is sent again, and any new acknowledgement ends the recovery."""

from dataclasses import dataclass

from typing_extensions import override

from hosts.tcp.recovery import RecoveryPlugin
from hosts.tcp.recovery.fast_recovery import FastRecovery, FastRecoveryOptions, Repair


@dataclass(frozen=True, kw_only=True)
class RenoOptions(FastRecoveryOptions):
    """Reno's end of a fast recovery."""

    #: the ACK that ends it opens the window, too (4.4BSD)
    grow_after_recovery: bool = False


class RenoRepair(Repair):
    """The oldest segment, once; the window is inflated by each duplicate."""

    def __init__(self, recovery: FastRecovery, options: RenoOptions) -> None:
        super().__init__(recovery)
        self._grows_after = options.grow_after_recovery

    @override
    def begin(self, dupacks: int) -> None:
        """Steps 2 and 3."""
        recovery, sender = self.recovery, self.sender
        if not recovery.kept:
            recovery.recover = sender.max
        sender.growth.hold(recovery.window + dupacks * sender.smss)

    @override
    def handle_dupack(self) -> None:
        """Step 4."""
        self.sender.growth.hold(self.sender.growth.cwnd + self.sender.smss)

    def handle_reduction(self) -> None:
        self.recovery.recover = self.sender.max

    @override
    def handle_ack(self, acked: int, now: int) -> bool:
        """Step 6."""
        self.recovery.end(self.recovery.window)
        if self._grows_after:
            self.sender.growth.handle_ack(acked, now)
        return True

    def poll(self) -> tuple[int, int] | None:
        return resend_first(self.recovery)


def resend_first(recovery: FastRecovery) -> tuple[int, int]:
    """Return the oldest segment, to be sent now and not again until `urgent`."""
    sender = recovery.sender
    recovery.urgent = False
    if recovery.kept:
        recovery.holes.send_again(sender.una)
    return sender.una, min(sender.una + sender.smss, sender.max)


RECOVERY = RecoveryPlugin(
    name="reno",
    summary="Reno (RFC 5681)",
    make=lambda sender, options: FastRecovery(sender, options, RenoRepair),
    options=RenoOptions,
)
