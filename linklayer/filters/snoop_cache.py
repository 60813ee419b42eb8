"""The base station's cache: data segments towards the mobile end that are not acknowledged yet, by flow.

Rules kept
- Numbers of a flow are unwrapped. Its segments ascend and do not overlap: octets that the sender cuts into other
  segments replace those they overlap.
- Memory is bounded per flow and in all. Of one flow the earliest segments stay, which are asked for first; of all flows
  the least recently used goes.
"""

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any, Final

from common.options import Bytes, Count, NotNegative, Positive
from linklayer.rtt import RttEstimator
from tcpip.segment import Flow

_MS: Final = 1_000_000


@dataclass(frozen=True, kw_only=True)
class SnoopOptions:
    """The base station's options, of `ll`, `snoop` and both with SMART."""

    #: dupacks that ask for a segment, with cumulative ACKs alone: a single one may answer a duplicate
    dupacks: Count = 2
    #: COMPARISON section 2.2: the least local timeout
    timeout_ms: Positive = 200
    #: clock of the local timers: a timer expires at the first tick after its time; 0: exactly at its time
    tick_ms: NotNegative = 0
    #: local retransmissions of one segment, before it is left to its sender
    tries: Count = 10
    #: octets held of one flow, each packet counted with `packet_overhead_bytes`
    cache_bytes: Bytes = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Limits(SnoopOptions):
    """Memory and retransmissions that a base station spends on TCP, and its timeouts."""

    #: expiries without a round-trip time after which each further one doubles the timeout, and the number of doublings:
    #: five of 200 ms are the least timeout of a TCP (RFC 6298 section 2.4)
    steady_expiries: int = 5
    max_backoff: int = 3
    flows: int = 1024
    #: octets held of all flows
    total_bytes: int = 1 << 24
    packet_overhead_bytes: int = 640
    #: a flow that has been silent for so long may go
    idle_ns: int = 120_000 * _MS
    #: octets a flow may leap ahead
    leap_bytes: int = 1 << 20
    #: segments in a row that leap further or are older than all, after which the flow begins anew
    misfits: int = 32


@dataclass(slots=True, eq=False)
class Held:
    """One segment in the cache."""

    #: unwrapped numbers of its first octet and of the octet behind its last; a FIN has a number, too
    left: int
    right: int
    packet: Any
    channel: int
    #: place of the latest copy among all packets put on the link, and its time
    serial: int
    sent_at: int
    #: whether its sender had sent it, or something behind it, before
    by_sender: bool
    #: place of the first copy
    first_serial: int = field(init=False)
    #: whether a SACK block or SMART option has named it; its receiver may drop it again (RFC 2018 section 8)
    arrived: bool = False
    #: local retransmissions
    repairs: int = 0
    #: whether the copy before the latest one is known to be lost: with SMART alone, its ACK may be lost instead
    sure: bool = True
    guessed: bool = False

    def __post_init__(self) -> None:
        self.first_serial = self.serial


@dataclass(slots=True, eq=False)
class CachedFlow:
    """The data of one TCP connection towards the mobile end; numbers are unwrapped."""

    flow: Flow
    #: the octet behind the last one seen
    high: int
    #: time of the last segment from the sender
    used_at: int
    #: when an ACK last acknowledged something
    progress_at: int
    #: segments in the cache, by `left`; no two overlap
    held: list[Held] = field(default_factory=list)
    #: their octets, with overhead
    nbytes: int = 0
    #: the latest acknowledgement; None: none seen
    una: int | None = None
    #: the number behind its FIN
    fin: int | None = None
    #: window field of the latest ACK; None: none seen since the SYN
    window: int | None = None
    dupacks: int = 0
    #: the hole that was guessed to be the wired network's loss
    blamed: int | None = None
    #: the latest place on the link of anything that has arrived
    arrived_serial: int = 0
    rtt: RttEstimator = field(default_factory=RttEstimator)
    #: the shortest round-trip time
    least_rtt_ns: int | None = None
    #: expiries of the timer since the last round-trip time
    expiries: int = 0
    misfits: int = 0
    #: when its timer is looked at
    wakes_at: int | None = None
    #: whether the fixed host has asked for SMART options
    permits_smart: bool = False

    def head(self) -> Held | None:
        """Return the segment at the acknowledgement number, if it is cached; before any ACK, the first segment."""
        if not self.held:
            return None
        first = self.held[0]
        return first if self.una is None or first.left <= self.una else None


class Cache:
    """The segments of all flows."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        #: the least recently used first
        self.flows: dict[Flow, CachedFlow] = {}
        #: octets of all segments, with overhead
        self.nbytes = 0

    def use(self, key: Flow, seq: int, now: int) -> CachedFlow:
        """Return a flow, now the most recently used; a new flow begins at `seq`."""
        flow = self.flows.pop(key, None)
        if flow is None:
            flow = CachedFlow(key, seq, used_at=now, progress_at=now)
            while self.flows:
                oldest = next(iter(self.flows.values()))
                if len(self.flows) < self._limits.flows and now - oldest.used_at < self._limits.idle_ns:
                    break
                self.forget(oldest.flow)
        self.flows[key] = flow
        flow.used_at = now
        return flow

    def forget(self, key: Flow) -> None:
        """Let a flow and its segments go, if it is known."""
        flow = self.flows.pop(key, None)
        if flow is not None:
            self.nbytes -= flow.nbytes
            flow.wakes_at = None

    def put(self, flow: CachedFlow, held: Held) -> bool:
        """Cache a segment in place of those it overlaps; return whether there was room for it."""
        first = end = bisect_left(flow.held, held.left, key=lambda each: each.left)
        if end and flow.held[end - 1].right > held.left:
            first -= 1
        while end < len(flow.held) and flow.held[end].left < held.right:
            end += 1
        self.drop(flow, first, end)
        cost = self._cost(held.packet)
        if flow.nbytes + cost > self._limits.cache_bytes:
            return False
        flow.held.insert(first, held)
        flow.nbytes += cost
        self.nbytes += cost
        while self.nbytes > self._limits.total_bytes and (least := next(iter(self.flows))) != flow.flow:
            self.forget(least)
        return True

    def drop(self, flow: CachedFlow, first: int, end: int) -> None:
        """Take the segments at [first, end) out."""
        nbytes = sum(self._cost(held.packet) for held in flow.held[first:end])
        del flow.held[first:end]
        flow.nbytes -= nbytes
        self.nbytes -= nbytes

    def _cost(self, packet: Any) -> int:
        return len(packet) + self._limits.packet_overhead_bytes
