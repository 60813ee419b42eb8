"""Volume-based dynamic capacity (SLACP section 4)."""

import random
from collections import deque
from dataclasses import dataclass

from channel.capacity import CapacityModel
from channel.capacity.superframes import DamaOptions, Terminal
from common.options import Span
from common.units import ns


@dataclass(frozen=True, kw_only=True)
class VbdcOptions(DamaOptions):
    """Requests for a volume."""

    #: shortest and longest wait for other terminals' traffic
    wait_ms: Span = (0, 0)


class Vbdc(Terminal):
    """Volume-based dynamic capacity: requests for the volume in the MAC buffer, without a guarantee.

    In each superframe the terminal requests the volume that no earlier request covers, in whole slots. A request
    reaches the head of the scheduler's queue after `signalling_ms` and a wait for other terminals' traffic, drawn
    uniformly from `wait_ms` (shortest, longest), but not before earlier requests. Then it gets up to the ceiling
    until it is served.
    """

    def __init__(self, ceiling_bps: int, options: VbdcOptions, rng: random.Random) -> None:
        super().__init__(ceiling_bps, options)
        shortest, longest = options.wait_ms
        self._wait_ns = ns(shortest), ns(longest)
        self._randint = rng.randint
        #: requests not yet at the head of the scheduler's queue: (time at the head, slots), and the sum of their slots
        self._requests: deque[tuple[int, int]] = deque()
        self._coming_slots = 0
        #: requested slots at the head of the queue, not assigned yet
        self._due_slots = 0
        #: totals since the start
        self.requested_bits = 0
        self.granted_bits = 0

    def _start_superframe(self, at: int) -> None:
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
        due_at = at + self._signalling_ns + self._randint(*self._wait_ns)
        self._requests.append((due_at, slots))
        self._coming_slots += slots
        self.requested_bits += slots * self.superframe.slot_bits


CAPACITY_MODEL = CapacityModel(
    name="vbdc",
    summary="a volume, requested by backlog",
    options=VbdcOptions,
    make=lambda options, rate_bps, rng: Vbdc(rate_bps, options, rng),
    example={"superframe_ms": 53, "wait_ms": [0, 200]},
)
