"""Rate-based dynamic capacity (SLACP section 4)."""

from collections import deque
from dataclasses import dataclass

from channel.capacity import CapacityModel
from channel.capacity.superframes import SIGNALLING_NS, DamaOptions, Superframe, Terminal
from channel.limits import positive
from common.options import Positive
from common.units import ns

#: Ours: four superframes, since new data can wait up to three for the request it causes.
TIMEOUT_NS = 1_060_000_000


class Rbdc(Terminal):
    """Rate-based dynamic capacity: rate requests up to a guaranteed ceiling.

    While anything waits, the terminal asks in each superframe for the rate that empties its MAC buffer in
    `drain_ns` (ours: a request's own lifetime). With an empty buffer it asks for nothing and keeps its rate
    until the timeout, which runs from the start of the first superframe the request can take effect in. Times
    in ns.

    Raises ValueError when a parameter is not positive or the ceiling is below one slot per superframe.
    """

    __slots__ = (
        "_max_slots",
        "_requests",
        "_valid_until",
        "drain_ns",
        "signalling_ns",
        "timeout_ns",
    )

    def __init__(
        self,
        ceiling_bps: int,
        *,
        superframe: Superframe | None = None,
        signalling_ns: int = SIGNALLING_NS,
        timeout_ns: int = TIMEOUT_NS,
        drain_ns: int | None = None,
    ) -> None:
        super().__init__(superframe)
        self.signalling_ns = positive("signalling_ns", signalling_ns)
        self.timeout_ns = positive("timeout_ns", timeout_ns)
        self.drain_ns = positive("drain_ns", timeout_ns if drain_ns is None else drain_ns)
        self._max_slots = self.superframe.slots_within(positive("ceiling_bps", ceiling_bps))
        #: requests on their way: (takes effect at, slots per superframe)
        self._requests: deque[tuple[int, int]] = deque()
        #: the instant the request behind the present slots times out
        self._valid_until = 0

    def _start_superframe(self, at: int) -> None:
        """Apply the request in force, send the next one."""
        requests = self._requests
        while requests and requests[0][0] <= at:
            effective_at, self._slots = requests.popleft()
            self._valid_until = effective_at + self.timeout_ns
        if at >= self._valid_until:
            self._slots = 0
        if self._backlog_bits:
            requests.append((self.superframe.at_or_after(at + self.signalling_ns), self._wanted_slots()))
        busy = self._backlog_bits or self._slots or requests
        self._boundary_at = at + self.superframe.length_ns if busy else None

    def _wanted_slots(self) -> int:
        superframe = self.superframe
        slots = -(-self._backlog_bits * superframe.length_ns // (self.drain_ns * superframe.slot_bits))
        return min(slots, self._max_slots)


@dataclass(frozen=True, kw_only=True)
class RbdcOptions(DamaOptions):
    """Requests for a rate."""

    timeout_ms: Positive = 1060
    #: None: the timeout
    drain_ms: Positive | None = None


CAPACITY_MODEL = CapacityModel(
    name="rbdc",
    summary="a rate, requested by backlog",
    options=RbdcOptions,
    make=lambda options, rate_bps, rng: Rbdc(
        rate_bps,
        superframe=options.superframe(),
        signalling_ns=ns(options.signalling_ms),
        timeout_ns=ns(options.timeout_ms),
        drain_ns=None if options.drain_ms is None else ns(options.drain_ms),
    ),
    example={"superframe_ms": 53, "drain_ms": 550},
)
