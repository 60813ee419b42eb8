"""FQ-CoDel: a queue per flow, each with CoDel, that take turns (RFC 8290).

Read first: RFC 8290 sections 3 and 4; `codel.py` for what happens within a flow.

Rules kept

- A flow is a protocol, two addresses and two ports (`flow_key`), hashed with numbers that are drawn once. Packets of
  one flow leave in the order they came.
- Flows take turns of `quantum_bytes` by deficit round robin. A flow that begins goes before those that had a turn.
- A full queue loses the oldest packet of the flow with the most octets, the arrival's octets included.
- No packet leaves that has waited longer than `max_wait_ms`: it is dropped at its turn, also if it could be marked.

Left out: drops in batches. Only flows that take turns are compared when the queue is full.
"""

from collections import deque
from collections.abc import Sized
from dataclasses import dataclass
from typing import Annotated, Final

from annotated_types import Ge, Le

from common.options import Bytes, Positive
from common.units import ns
from linklayer.queues import Queue, QueueContext, QueuePlugin
from linklayer.queues.codel import CoDel, CoDelOptions
from tcpip.access import flow_key

_NEVER: Final = 1 << 61
#: above every number of an IPv4 flow, so that two share a queue with the chance 1 / `flows` (Carter and Wegman 1979)
_PRIME: Final = (1 << 127) - 1


@dataclass(frozen=True, kw_only=True)
class FqCoDelOptions(CoDelOptions):
    """The options of CoDel hold for each flow, the limits for all together."""

    #: queues of flows at most; flows whose hashes are equal share one
    flows: Annotated[int, Ge(1), Le(65536)] = 1024
    #: octets that a flow may send at its turn; none: one MTU
    quantum_bytes: Bytes | None = None
    #: a packet that has waited longer is dropped at its turn; none: CoDel alone bounds the wait
    max_wait_ms: Positive | None = None


class _Flow(CoDel):
    """The packets of a flow. Its limits never hold: those of the whole queue are the same."""

    def __init__(self, options: FqCoDelOptions, context: QueueContext) -> None:
        super().__init__(options, context)
        self._max_wait_ns = _NEVER if options.max_wait_ms is None else ns(options.max_wait_ms)
        #: octets that the flow may send before its turn ends; below 0: it sent more
        self.credit = 0
        #: whether it is among the flows that take turns
        self.listed = False

    def drop_oldest(self, now: int) -> None:
        """Drop the packet that has waited longest, of one at least."""
        self._arrivals.popleft()
        packet = self._packets.popleft()
        self.nbytes -= len(packet)
        self._drop_waiting(packet, now)

    def _take(self, now: int) -> tuple[Sized | None, bool]:
        arrivals = self._arrivals
        while arrivals and now - arrivals[0] > self._max_wait_ns:
            self.drop_oldest(now)
        return super()._take(now)


class FqCoDel(Queue):
    """Flow queues with controlled delay.

    `limit_packets` and the limit in octets are those of all flows together, one may be None. Raises ValueError without
    any.
    """

    def __init__(self, options: FqCoDelOptions, context: QueueContext) -> None:
        super().__init__()
        self._options, self._context = options, context
        if context.limit_bytes is None and options.limit_packets is None:
            raise ValueError("a queue needs limit_bytes, limit_packets or both")
        self._limit_bytes = _NEVER if context.limit_bytes is None else context.limit_bytes
        self._limit_packets = _NEVER if options.limit_packets is None else options.limit_packets
        self._quantum = options.quantum_bytes or context.mtu_bytes
        self._factor = context.rng.randrange(1, _PRIME)
        self._addend = context.rng.randrange(_PRIME)
        #: by hash
        self._flows: dict[int, _Flow] = {}
        #: those that have begun, and those that have had a turn
        self._new: deque[_Flow] = deque()
        self._old: deque[_Flow] = deque()
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    def push(self, packet: Sized, now: int) -> bool:
        """Queue one packet; return False when it is dropped. Others may be dropped to make room for it."""
        nbytes = len(packet)
        flow = self._flow_of(packet)
        while self.nbytes + nbytes > self._limit_bytes or self._waiting >= self._limit_packets:
            fattest = self._fattest(flow, nbytes)
            if not fattest:
                self.drops += 1
                return False
            fattest.drop_oldest(now)
        flow.push(packet, now)
        self.nbytes += nbytes
        self._waiting += 1
        if not flow.listed:
            flow.listed = True
            flow.credit = self._quantum
            self._new.append(flow)
        return True

    def pop(self, now: int) -> Sized | None:
        """Take the next packet, which may get CE; packets dropped on the way to it are counted."""
        new, old = self._new, self._old
        while new or old:
            turns = new or old
            flow = turns[0]
            if flow.credit <= 0:
                flow.credit += self._quantum
                old.append(turns.popleft())
                continue
            marks = flow.marks
            packet = flow.pop(now)
            if packet is not None:
                nbytes = len(packet)
                flow.credit -= nbytes
                self.nbytes -= nbytes
                self._waiting -= 1
                self.marks += flow.marks - marks
                return packet
            turns.popleft()
            # One that has begun stays for a round: with a packet at a time it would always go first (section 4.2).
            if turns is new:
                old.append(flow)
            else:
                flow.listed = False
        return None

    def _flow_of(self, packet: Sized) -> _Flow:
        """Return the flow of a packet."""
        index = (self._factor * flow_key(packet) + self._addend) % _PRIME % self._options.flows
        flow = self._flows.get(index)
        if flow is None:
            flow = self._flows[index] = _Flow(self._options, self._context)
            flow.watch(self._lose)
        return flow

    def _fattest(self, arriving: _Flow, nbytes: int) -> _Flow:
        """Return the flow with the most octets, once `nbytes` have arrived in one; it is empty if it has only these."""
        found, most = arriving, arriving.nbytes + nbytes
        for turns in (self._new, self._old):
            for flow in turns:
                if flow.nbytes > most:
                    found, most = flow, flow.nbytes
        return found

    def _lose(self, packet: Sized, now: int) -> None:
        """Count a waiting packet that its flow has dropped."""
        self.nbytes -= len(packet)
        self._waiting -= 1
        self._drop_waiting(packet, now)


QUEUE = QueuePlugin(
    name="fq-codel",
    summary="queued with its flow; flows take turns, each with codel, and the longest loses when the queue is full",
    options=FqCoDelOptions,
    make=FqCoDel,
    example={"target_ms": 2, "interval_ms": 20, "max_wait_ms": 200},
)
