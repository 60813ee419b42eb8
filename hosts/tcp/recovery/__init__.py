"""Loss recovery: how a sender finds lost segments and repairs them. Each recovery is a file, which declares a
`RECOVERY`; `TcpConfig.recovery` has its name and its options. Options that all have are in `LossOptions`.

Read first: RFC 5681 section 3.2.

The sender calls its recovery, and the recovery reads and changes the state of the sender:

| when | the sender calls |
|---|---|
| a duplicate ACK has come (RFC 5681 section 2, or RFC 6675's where SACK was agreed) | `handle_dupack` |
| an ACK of new data has come | `handle_ack`; then ECN's echo is looked at |
| an ACK says that a segment was lost by corruption | `handle_eln`, before the two above |
| an ECN-Echo has come, and the recovery has kept the window | `reduce` |
| the retransmission timer has expired | `flight_before_loss` and `recovering`, then `handle_timeout` |
| F-RTO has found that timeout spurious | `end_timeout` |
| something may be sent | `poll`, while `urgent` |

and, if it `observes`,

| when | the sender calls |
|---|---|
| a segment has been sent | `handle_sent` |
| any acknowledgement has come | `handle_arrival`, before all others; the scoreboard is up to date, `una` is not |
| its timer `early_at` or the retransmission timer has expired | `handle_deadline` |

| of `SendState` | the recovery |
|---|---|
| `una`, `nxt`, `max`, `end`, `flight`, `smss`, `window`, `board`, `resent`, `sack`, `rto`, `loss` | reads |
| `limited` | sets |
| `early_at` | sets: a timer of its own |
| `nxt` | may set to `una`: everything is sent again |
| `counters`: `fast_retransmits`, `eln_kept`, `tail_probes`, `reductions_taken_back` | counts |
| `reduce(flight)` | calls, once for each loss that means congestion |
| `growth`: `cwnd`, `ssthresh` | reads |
| `growth.handle_ack` | calls, for each ACK of new data that opens the window |
| `growth.hold` | calls, to set the window while it repairs losses and when it has |
| `growth.restore` | calls, to take a reduction back |
| `track_resent` | calls, in its constructor, if it wants `resent` |
| `report_lost`, `report_restored` | calls, if it `reports_losses`: a segment is lost; none of those was |

Everything else is the sender's: the timer, go-back-N after a timeout, the peer's window, ECN. The ssthresh after a loss
is computed by window growth (`growth/`).
"""

# ruff: noqa: B027 (methods that do nothing are the defaults)

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from mypy_extensions import mypyc_attr

from common.options import NoOptions
from common.registry import Registry
from hosts.tcp.send_state import SendState
from tcpip.segment import Segment


@mypyc_attr(allow_interpreted_subclasses=True)
class Recovery(ABC):
    """The loss recovery of one connection. The base class finds no losses and leaves them to the timer."""

    def __init__(self, sender: SendState) -> None:
        self.sender = sender
        #: whether `poll` must be asked before anything else is sent
        self.urgent = False
        #: whether only segments from `poll` may be sent
        self.governs = False
        #: whether fast recovery is going on
        self.active = False
        #: whether it has left the window as it was, since all holes until now were corruption
        self.kept = False
        #: whether it is told of every segment sent, of every acknowledgement and of expired timers
        self.observes = False
        #: whether it tells of each segment it finds lost; else sending it again does
        self.reports_losses = False

    @abstractmethod
    def handle_dupack(self, segment: Segment, now: int) -> None:
        """Take a duplicate acknowledgement; the scoreboard is up to date."""

    @abstractmethod
    def handle_ack(self, segment: Segment, acked: int, filled: bool, now: int) -> bool:
        """Take an acknowledgement of `acked` new octets, already off the sender's books; return whether the
        retransmission timer starts again. `filled`: the congestion window was in use, so that the ACK may open it.
        """

    @abstractmethod
    def handle_timeout(self) -> None:
        """The retransmission timer has expired; windows are set, `nxt` goes back to `una` next."""

    def handle_sent(self, start: int, end: int, fresh: bool, now: int) -> None:
        """Observe that [start, end) is sent, for the first time or not; the FIN is the octet behind the data."""

    def handle_arrival(self, segment: Segment, ack: int, now: int) -> None:
        """Observe an acknowledgement, of `ack` unwrapped, older than `una` though it may be."""

    def handle_deadline(self, expired: bool, now: int) -> bool:
        """Take the expiry of `early_at` or, if `expired`, of the retransmission timer; return whether the latter starts
        again in place of having expired.
        """
        return False

    def handle_eln(self, number: int) -> None:
        """Take an explicit loss notification: the segment at `number`, `una` or above, was lost by corruption."""

    def reduce(self) -> None:
        """Reduce the window of a recovery that has kept it."""

    def end_timeout(self) -> None:
        """The timeout was spurious: segments sent before it are not lost."""

    @property
    def recovering(self) -> bool:
        """Whether a loss is still being repaired for which F-RTO must not begin (RFC 5682, step 1)."""
        return self.active

    def flight_before_loss(self) -> int:
        """FlightSize without the segments of limited transmit (RFC 5681 section 3.2, step 2)."""
        return self.sender.flight

    def poll(self) -> tuple[int, int] | None:
        """Return the octets to send next, [start, end), or None."""
        return None


@dataclass(frozen=True, kw_only=True)
class RecoveryPlugin:
    """A loss recovery by its name."""

    name: str
    #: for the table in docs/tcp.md
    summary: str
    #: called when the handshake is complete: `sack` of the sender says whether SACK was agreed
    make: Callable[[SendState, Any], Recovery]
    #: options that the handshake asks the peer to put on its ACKs: SACK blocks (RFC 2018) or SMART
    asks_for: Literal["nothing", "sack", "smart"] = "nothing"
    #: a dataclass (`common/options.py`) whose fields have defaults
    options: type[Any] = NoOptions


RECOVERIES: Final = Registry("hosts.tcp.recovery", "RECOVERY", RecoveryPlugin)
