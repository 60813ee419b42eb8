"""DAMA: capacity that a satellite terminal requests; `rbdc.py` requests a rate, `vbdc.py` a volume.

Read first: SLACP section 4; ETSI EN 301 790 section 6.6 (capacity request categories).

Rules kept here:

- Time is divided into superframes; capacity is assigned in whole slots per superframe and served evenly across
  it. Each assignment starts and ends with a superframe; an unused part of it is lost.
- A terminal sends requests at the start of a superframe, for the data then in its MAC buffer. A request can take effect
  at the first superframe that starts `signalling_ms` or more later.
- RBDC is guaranteed up to its ceiling, and the latest request in force holds until the next one or its
  timeout.
- VBDC is a queue of volumes at the scheduler. A volume is assigned once, as soon as there is room for it.
- Sizes of slots and superframes make every rate a whole number of bit/s, so rounding neither adds nor removes bits.

The paper gives neither superframe, slot, signalling delay nor timeout: all defaults here are ours
(docs/channel.md gives the reasons), and all are parameters.

Left out: requests lost on the air, several classes at once in one terminal, free capacity assignment, and the
traffic of other terminals, except for the wait that it adds in VBDC.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Final

from channel.capacity import Capacity
from common.options import Milliseconds, check_ranges
from common.units import ns

SECOND_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Superframe:
    """The grid on which capacity is assigned.

    `length_ns` is a superframe's length, `slot_bits` the smallest assignment in a superframe; ours is one ATM cell.

    Raises ValueError unless slot_bits x 10^9 is a multiple of length_ns.
    """

    length_ns: int
    slot_bits: int = 424

    def __post_init__(self) -> None:
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
        """Return the slots per superframe that stay within `rate_bps`; raise ValueError when not even one does."""
        slots = rate_bps * self.length_ns // (self.slot_bits * SECOND_NS)
        if slots < 1:
            raise ValueError(f"rate_bps is {rate_bps}; one slot per superframe already takes {self.rate_bps(1)} bit/s.")
        return slots

    def rate_bps(self, slots: int) -> int:
        """Return the rate of `slots` per superframe."""
        return slots * self.slot_bits * SECOND_NS // self.length_ns


@dataclass(frozen=True, kw_only=True)
class DamaOptions:
    """The grid of capacity assignment, and the time of a request to the scheduler and back."""

    #: five frames of 53 ms: one slot per superframe is exactly 1.6 kbit/s, and 80 of them the paper's 128 kbit/s
    superframe_ms: Milliseconds = 265
    #: terminal -> satellite -> scheduler and back, 250 ms each
    signalling_ms: Milliseconds = 500

    def __post_init__(self) -> None:
        check_ranges(self)
        self.superframe()

    def superframe(self) -> Superframe:
        """Return the superframe. Raises ValueError when a slot in each does not make a whole number of bit/s."""
        try:
            return Superframe(ns(self.superframe_ms))
        except ValueError as error:
            raise ValueError(f"superframe_ms is {self.superframe_ms:g}: {error}") from None


class Terminal(Capacity):
    """A terminal that wakes at each superframe while it is busy, with a rate of up to `ceiling_bps`.

    Raises ValueError when the ceiling is below one slot per superframe.
    """

    def __init__(self, ceiling_bps: int, options: DamaOptions) -> None:
        self.superframe = options.superframe()
        self._signalling_ns = ns(options.signalling_ms)
        self._max_slots = self.superframe.slots_within(ceiling_bps)
        self._backlog_bits = 0
        #: start of the next superframe, None while idle
        self._boundary_at: int | None = None
        #: slots of the present superframe
        self._slots = 0

    def rate_bps(self) -> int:
        return self.superframe.rate_bps(self._slots)

    def handle_backlog(self, backlog_bits: int, now: int) -> None:
        """Take the backlog; the first bits wake an idle terminal at the next superframe."""
        self._backlog_bits = backlog_bits
        if backlog_bits and self._boundary_at is None:
            self._boundary_at = self.superframe.at_or_after(now)

    def next_deadline(self) -> int | None:
        return self._boundary_at

    def handle_deadline(self, now: int) -> None:
        while self._boundary_at is not None and self._boundary_at <= now:
            self._start_superframe(self._boundary_at)

    @abstractmethod
    def _start_superframe(self, at: int) -> None:
        """Assign the slots of the superframe that starts at `at`, send a request, and set `_boundary_at`."""
