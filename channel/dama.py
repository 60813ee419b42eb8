"""DAMA: capacity a satellite terminal asks for, by rate (RBDC) or by volume (VBDC).

Read first: SLACP section 4; ETSI EN 301 790 section 6.6 (capacity request categories).

Rules kept here:

- Time is cut into superframes; capacity is assigned in whole slots per superframe and served evenly across
  it. Each assignment starts and ends with a superframe; volume assigned and not used in it is lost.
- A terminal asks at the start of a superframe, for what is in its MAC buffer then. The answer can take effect
  at the first superframe that starts `signalling_ns` or more after the request.
- RBDC is guaranteed up to its ceiling, and the latest request in force holds until the next one or its
  timeout.
- VBDC is a queue of volumes at the scheduler. A volume is assigned once, as soon as there is room for it.
- Slots and superframes are such that every rate is a whole number of bit/s, so no bit is gained or lost to
  rounding.

The paper gives neither superframe, slot, signalling delay nor timeout: all defaults here are ours
(docs/channel.md gives the reasons), and all are parameters.

Left out: requests lost on the air, several classes at once in one terminal, free capacity assignment, and the
other terminals, of which VBDC shows only the wait they cause.
"""

import random
from collections import deque
from dataclasses import dataclass
from typing import ClassVar

from channel.limits import positive, span

SECOND_NS = 1_000_000_000

#: Ours: terminal -> satellite -> scheduler and back, 250 ms each.
SIGNALLING_NS = 500_000_000
#: Ours: four superframes, since new data can wait up to three for the request it causes.
TIMEOUT_NS = 1_060_000_000


@dataclass(frozen=True, slots=True)
class Superframe:
    """The grid on which capacity is assigned.

    `length_ns` is a superframe's length, `slot_bits` the least that can be assigned in one. Defaults (ours):
    five frames of 53 ms, and a slot of one ATM cell, which makes one slot per superframe exactly 1.6 kbit/s
    and 80 of them the paper's 128 kbit/s.

    Raises ValueError unless slot_bits x 10^9 is a multiple of length_ns.
    """

    length_ns: int = 265_000_000
    slot_bits: int = 424

    def __post_init__(self) -> None:
        positive("length_ns", self.length_ns)
        positive("slot_bits", self.slot_bits)
        if self.slot_bits * SECOND_NS % self.length_ns:
            raise ValueError(
                f"length_ns is {self.length_ns}; a slot of {self.slot_bits} bits in each superframe must make "
                "a whole number of bit/s."
            )

    def at_or_after(self, at: int) -> int:
        """Return the first start of a superframe that is not before `at` (superframes start at 0)."""
        return -(-at // self.length_ns) * self.length_ns

    def slots_for(self, bits: int) -> int:
        """Return the slots that hold `bits`."""
        return -(-bits // self.slot_bits)

    def slots_within(self, rate_bps: int) -> int:
        """Return the slots per superframe that stay within `rate_bps`; raise ValueError when that is none."""
        slots = rate_bps * self.length_ns // (self.slot_bits * SECOND_NS)
        if slots < 1:
            raise ValueError(
                f"ceiling_bps is {rate_bps}; one slot per superframe already takes {self.rate_bps(1)} bit/s."
            )
        return slots

    def rate_bps(self, slots: int) -> int:
        """Return the rate of `slots` per superframe."""
        return slots * self.slot_bits * SECOND_NS // self.length_ns


class _Terminal:
    """What RBDC and VBDC share: a terminal that wakes at superframes while it has anything to do."""

    __slots__ = ("_backlog_bits", "_boundary_at", "_slots", "superframe")

    constant: ClassVar[bool] = False

    def __init__(self, superframe: Superframe | None) -> None:
        self.superframe = superframe or Superframe()
        self._backlog_bits = 0
        #: start of the next superframe, while there is anything to do
        self._boundary_at: int | None = None
        #: slots of the present superframe
        self._slots = 0

    def rate_bps(self) -> int:
        """Return the rate of the present superframe."""
        return self.superframe.rate_bps(self._slots)

    def handle_backlog(self, backlog_bits: int, now: int) -> None:
        """Take note of the backlog; the first bits to wait wake the terminal at the next superframe."""
        self._backlog_bits = backlog_bits
        if backlog_bits and self._boundary_at is None:
            self._boundary_at = self.superframe.at_or_after(now)

    def next_deadline(self) -> int | None:
        """Return the start of the next superframe unless the terminal is idle."""
        return self._boundary_at

    def handle_deadline(self, now: int) -> None:
        """Start every superframe due by `now`."""
        while self._boundary_at is not None and self._boundary_at <= now:
            self._start_superframe(self._boundary_at)

    def _start_superframe(self, at: int) -> None:
        raise AssertionError("a terminal is RBDC's or VBDC's")


class Rbdc(_Terminal):
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


class Vbdc(_Terminal):
    """Volume-based dynamic capacity: requests for what waits in the MAC buffer, with no guarantee.

    In each superframe the terminal asks for the volume that no earlier request covers, in whole slots. A
    request reaches the head of the scheduler's queue `signalling_ns` after it was sent plus a wait for other
    terminals' traffic drawn uniformly from `wait_ns` (shortest, longest), never before an earlier one; then
    it gets up to `ceiling_bps` until it is served. Times in ns.

    Raises ValueError when a parameter is not positive or the ceiling is below one slot per superframe.
    """

    __slots__ = (
        "_coming_slots",
        "_due_slots",
        "_max_slots",
        "_randint",
        "_requests",
        "granted_bits",
        "requested_bits",
        "signalling_ns",
        "wait_ns",
    )

    def __init__(
        self,
        ceiling_bps: int,
        rng: random.Random,
        *,
        superframe: Superframe | None = None,
        signalling_ns: int = SIGNALLING_NS,
        wait_ns: tuple[int, int] = (0, 0),
    ) -> None:
        super().__init__(superframe)
        self.signalling_ns = positive("signalling_ns", signalling_ns)
        self.wait_ns = span("wait_ns", wait_ns)
        self._max_slots = self.superframe.slots_within(positive("ceiling_bps", ceiling_bps))
        self._randint = rng.randint
        #: requests not yet at the head of the scheduler's queue: (due there at, slots), and their slots in
        #: all
        self._requests: deque[tuple[int, int]] = deque()
        self._coming_slots = 0
        #: slots at the head of the queue that found no room yet
        self._due_slots = 0
        #: totals since the start, for who wants to know what was asked for and what was assigned
        self.requested_bits = 0
        self.granted_bits = 0

    def _start_superframe(self, at: int) -> None:
        """Assign what was asked for, ask for what is new."""
        requests, slot_bits = self._requests, self.superframe.slot_bits
        while requests and requests[0][0] <= at:
            _, slots = requests.popleft()
            self._coming_slots -= slots
            self._due_slots += slots
        self._slots = min(self._due_slots, self._max_slots)
        self._due_slots -= self._slots
        self.granted_bits += self._slots * slot_bits
        covered_slots = self._slots + self._due_slots + self._coming_slots
        wanted = self.superframe.slots_for(self._backlog_bits - covered_slots * slot_bits)
        if wanted > 0:
            self._request(wanted, at)
        busy = self._backlog_bits or self._slots or self._due_slots or requests
        self._boundary_at = at + self.superframe.length_ns if busy else None

    def _request(self, slots: int, at: int) -> None:
        due_at = at + self.signalling_ns + self._randint(*self.wait_ns)
        self._requests.append((due_at, slots))
        self._coming_slots += slots
        self.requested_bits += slots * self.superframe.slot_bits
