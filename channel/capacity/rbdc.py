"""Rate-based dynamic capacity (SLACP section 4)."""

from collections import deque
from dataclasses import dataclass

from channel.capacity import CapacityModel
from channel.capacity.superframes import DamaOptions, Terminal
from common.options import Milliseconds
from common.units import ns


@dataclass(frozen=True, kw_only=True)
class RbdcOptions(DamaOptions):
    """Requests for a rate."""

    #: four superframes: the request for new data can take up to three
    timeout_ms: Milliseconds = 1060
    #: None: the timeout, a request's own lifetime
    drain_ms: Milliseconds | None = None


class Rbdc(Terminal):
    """Rate-based dynamic capacity: rate requests up to a guaranteed ceiling.

    While its MAC buffer holds data, the terminal requests in each superframe the rate that empties it in `drain_ms`.
    With an empty buffer it requests nothing and keeps its rate until the timeout, which begins with the first
    superframe in which the request can take effect.
    """

    def __init__(self, ceiling_bps: int, options: RbdcOptions) -> None:
        super().__init__(ceiling_bps, options)
        self._timeout_ns = ns(options.timeout_ms)
        self._drain_ns = ns(options.drain_ms or options.timeout_ms)
        #: requests on their way: (takes effect at, slots per superframe)
        self._requests: deque[tuple[int, int]] = deque()
        #: the instant the request behind the present slots times out
        self._valid_until = 0

    def _start_superframe(self, at: int) -> None:
        requests = self._requests
        while requests and requests[0][0] <= at:
            effective_at, self._slots = requests.popleft()
            self._valid_until = effective_at + self._timeout_ns
        if at >= self._valid_until:
            self._slots = 0
        if self._backlog_bits:
            requests.append((self.superframe.at_or_after(at + self._signalling_ns), self._wanted_slots()))
        busy = self._backlog_bits or self._slots or requests
        self._boundary_at = at + self.superframe.length_ns if busy else None

    def _wanted_slots(self) -> int:
        superframe = self.superframe
        slots = -(-self._backlog_bits * superframe.length_ns // (self._drain_ns * superframe.slot_bits))
        return min(slots, self._max_slots)


CAPACITY_MODEL = CapacityModel(
    name="rbdc",
    summary="a rate, requested by backlog",
    options=RbdcOptions,
    make=lambda options, rate_bps, rng: Rbdc(rate_bps, options),
    example={"superframe_ms": 53, "drain_ms": 550},
)
