"""The state of the sending half that its parts share: sequence numbers, windows, the scoreboard.

Read first: RFC 9293 section 3.3.1 (SND.UNA, SND.NXT), RFC 5681 section 2.

Rules: numbers are unwrapped (`common/sequence.py`). `una` <= `nxt` <= `max`: octets below `una` are acknowledged, `nxt`
is sent next and goes back to `una` when the timer expires, `max` is the octet behind the highest ever sent. The SYN is
the octet before the data, the FIN the one behind it.

`Sender` drives it. Loss recovery (`recovery/`), window growth (`growth/`) and F-RTO see this and nothing else of the
sender.
"""

from random import Random
from typing import TYPE_CHECKING, Final

from hosts.tcp.bsd import BsdRto
from hosts.tcp.buffers import SendBuffer
from hosts.tcp.counters import Counters
from hosts.tcp.options import LossOptions, TimerOptions
from hosts.tcp.rto import RtoEstimator
from hosts.tcp.scoreboard import Scoreboard

if TYPE_CHECKING:
    from hosts.tcp.accecn import Feedback
    from hosts.tcp.delivery import DeliveryRate
    from hosts.tcp.growth import Growth
    from hosts.tcp.recovery import Recovery

#: an ssthresh as high as can be (RFC 5681 section 3.1)
INFINITE: Final = 1 << 61


class SendState:
    """Sequence numbers (octets, unwrapped) and the peer's window (octets) of one connection's sending half."""

    __slots__ = (
        "_ecn_recover",
        "accecn",
        "board",
        "buffer",
        "closing",
        "counters",
        "cwr_due",
        "delivery",
        "early_at",
        "ecn_only",
        "fec_octets",
        "full_smss",
        "grows_in_recovery",
        "growth",
        "limited",
        "loss",
        "max",
        "nagle",
        "nxt",
        "recovery",
        "repairable",
        "repeats_cwr",
        "resent",
        "rng",
        "rto",
        "sack",
        "smss",
        "una",
        "unit",
        "window",
    )

    growth: "Growth"
    recovery: "Recovery"

    def __init__(
        self,
        timers: TimerOptions,
        loss: LossOptions,
        mss: int,
        counters: Counters,
        first: int,
        rng: Random | None = None,
    ) -> None:
        self.counters = counters
        #: the host's, for growths that draw; without one it is a generator of the connection's own
        self.rng = Random(first) if rng is None else rng
        self.loss = loss
        self.rto = BsdRto(timers) if timers.tick_ns else RtoEstimator(timers)
        self.buffer = SendBuffer(first)
        #: whether the FIN follows the buffer's end
        self.closing = False
        #: data that fills no segment waits until all before it is acknowledged (RFC 9293 section 3.7.4)
        self.nagle = False
        self.una = self.nxt = self.max = first
        #: data octets of a full segment; of the largest one; and those by which the window grows
        self.smss = self.full_smss = self.unit = mss
        #: octets the congestion window may be exceeded by (limited transmit)
        self.limited = 0
        #: the peer's window
        self.window = 0
        #: SACK was agreed in the handshake
        self.sack = False
        self.board = Scoreboard()
        #: segments sent again and not acknowledged, by their first octets: `max` and the time then; None: not kept
        self.resent: dict[int, tuple[int, int]] | None = None
        #: when the recovery's own timer expires
        self.early_at: int | None = None
        #: counters of marks, where accurate ECN was agreed
        self.accecn: Feedback | None = None
        #: delivery rate samples, where the growth asks for them
        self.delivery: DeliveryRate | None = None
        #: no second reduction by ECN before this is acknowledged, and whether CWR is still to be sent
        self._ecn_recover = first
        self.cwr_due = False
        #: ECN was agreed, and losses are no congestion; then also: the window grows while they are repaired, and CWR is
        #: repeated
        self.ecn_only = self.grows_in_recovery = self.repeats_cwr = False
        #: octets of FEC segments in the network, which fill the window, too
        self.fec_octets = 0
        #: holes at or above this octet may yet be repaired by FEC segments under way: they are not lost
        self.repairable = INFINITE

    @property
    def end(self) -> int:
        """The number behind everything to be sent, FIN included."""
        return self.buffer.end + self.closing

    @property
    def flight(self) -> int:
        """FlightSize: octets sent and not acknowledged (RFC 5681 section 2)."""
        return self.max - self.una

    def waits_for_ack(self, octets: int) -> bool:
        """Whether the last `octets` to be sent wait for an ACK, or for more data (Nagle)."""
        return self.nagle and octets < self.smss and self.una < self.max and not self.closing

    def new_segment(self) -> int:
        """Return the octets of the next segment of new data by size and by the peer's window; 0 or less: none."""
        return min(self.smss, self.end - self.max, self.una + self.window - self.max)

    def track_resent(self) -> None:
        """Keep `resent` from now on."""
        if self.resent is None:
            self.resent = {}

    def reduce(self, flight: int, marked: bool = False) -> int:
        """Take a loss, or a mark of ECN in its place, with `flight` octets under way; return the new ssthresh."""
        ssthresh = self.growth.handle_mark(flight) if marked else self.growth.handle_loss(flight)
        self.note_reduction()
        return ssthresh

    def report_lost(self, start: int, end: int, now: int) -> None:
        """Take that a recovery has found [start, end) lost."""
        if self.delivery is not None:
            self.delivery.handle_lost(start, end, now)

    def report_restored(self) -> None:
        """Take that a recovery has found its losses to be none."""
        if self.delivery is not None:
            self.delivery.restore()

    def handle_cwr_sent(self) -> None:
        """CWR goes out. Where it is repeated it goes on all new data until some of that is acknowledged: a peer that
        missed it would go on to echo, and the window would be reduced again.
        """
        self.cwr_due = self.repeats_cwr and self.una <= self._ecn_recover

    def note_reduction(self) -> None:
        """Note a reduction of the window: the next new data carries CWR, and ECN echoes until then belong to it."""
        self._ecn_recover = self.max
        # RFC 9768 section 3.1.5: no CWR
        self.cwr_due = self.accecn is None
