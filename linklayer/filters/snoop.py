"""Snoop: the base station caches TCP data towards the mobile end and sends again what the hop has lost.

Read first: Balakrishnan, Seshan, Katz, "Improving reliable transport and handoff performance in cellular wireless
networks" (1995); COMPARISON sections 2.2 and 3.2. docs/filters.md has the parameters' reasons.

One machine for four schemes: LL (local retransmission alone), LL-TCP-AWARE (it `suppresses` dupacks for what is being
repaired), and both with SMART (`selective`).

Rules kept
- The hop keeps the order. So a segment is lost when one that was put on the link after it has arrived; where only
  cumulative ACKs speak, when dupacks ask for it. An ACK's SACK blocks or SMART option say what has arrived.
- A hole is repaired at once when it is seen, and again when its timer expires: dupacks in between are those of segments
  behind it, which were expected.
- A partial new ACK, after a repair, shows the next hole, which is repaired at once.
- Where dupacks are suppressed, ACKs that pass go without the SACK blocks beyond what is being repaired: a sender would
  take it for lost. They are advice (RFC 2018 section 8), and come again.
- What passes whatever the state: packets towards the link, ACKs with data, SYN, FIN, RST, ACKs of a closed window,
  window updates, dupacks for a segment that is not cached, that its sender has sent again or that was given up.
- A retransmission is the very packet that was cached. Octets the sender cuts anew replace what they overlap.

Left out: data from the mobile end (it passes; ELN is another filter).
"""

from bisect import bisect_left
from collections import deque
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Final

from common.sequence import MASK, unwrap
from linklayer.filters.filter import Cause, FilterCounters, Guess
from linklayer.slacp.rtt import RttEstimator
from tcpip.access import Access
from tcpip.options import is_smart, permits_smart, smart_of
from tcpip.segment import ACK, FIN, RST, SYN, Flow, Segment

_MS: Final = 1_000_000
#: guesses nobody has asked for
_MAX_GUESSES: Final = 4096


@dataclass(frozen=True, slots=True)
class Limits:
    """What a base station spends on TCP, and how long it waits."""

    #: dupacks that ask for a segment, where only cumulative ACKs speak: one may be the answer to a duplicate
    dupacks: int = 2
    #: COMPARISON section 2.2: the least local timeout
    min_timeout_ns: int = 200 * _MS
    #: the clock of the local timers: one expires at the first tick when its time is up; 0: exact
    tick_ns: int = 0
    #: expiries without a round-trip time after which the timeout doubles with each further one, and how often at most:
    #: five of 200 ms are the least timeout of a TCP (RFC 6298 section 2.4)
    steady_expiries: int = 5
    max_backoff: int = 3
    #: local retransmissions of one segment, before it is left to its sender
    tries: int = 10
    flows: int = 1024
    #: octets held of one flow and of all, each packet counted with `packet_overhead_bytes`
    flow_bytes: int = 1 << 20
    total_bytes: int = 1 << 24
    packet_overhead_bytes: int = 640
    #: a flow that has been silent so long may go
    idle_ns: int = 120_000 * _MS
    #: octets a flow may leap ahead
    leap_bytes: int = 1 << 20
    #: segments in a row that leap further or are older than all, after which the flow begins anew
    misfits: int = 32


class _Held:
    """One segment in the cache."""

    __slots__ = (
        "arrived",
        "by_sender",
        "channel",
        "first_serial",
        "guessed",
        "left",
        "packet",
        "repairs",
        "right",
        "sent_at",
        "serial",
        "sure",
    )

    def __init__(
        self, left: int, right: int, packet: Any, channel: int, serial: int, now: int, by_sender: bool
    ) -> None:
        #: unwrapped numbers of its first octet and of the one behind its last; a FIN has a number, too
        self.left = left
        self.right = right
        self.packet = packet
        self.channel = channel
        #: place among all that was put on the link: of the first time
        self.first_serial = serial
        #: of the latest time, and when that was
        self.serial = serial
        self.sent_at = now
        #: whether a SACK block or SMART option has named it; it may have been dropped since (RFC 2018 section 8)
        self.arrived = False
        #: local retransmissions
        self.repairs = 0
        #: whether the copy before the latest one is known to be lost: with SMART alone, the ACK that named it may be
        self.sure = True
        #: whether its sender had sent it, or something behind it, before
        self.by_sender = by_sender
        self.guessed = False


class _Flow:
    """What is known of the data of one TCP connection towards the mobile end; numbers are unwrapped."""

    __slots__ = (
        "arrived_serial",
        "blamed",
        "dupacks",
        "expiries",
        "fin",
        "flow",
        "held",
        "high",
        "least_rtt_ns",
        "misfits",
        "nbytes",
        "permits_smart",
        "progress_at",
        "rtt",
        "una",
        "used_at",
        "wakes_at",
        "window",
    )

    def __init__(self, flow: Flow, high: int, now: int) -> None:
        self.flow = flow
        #: by `left`; no two overlap
        self.held: list[_Held] = []
        #: octets of them, with overhead
        self.nbytes = 0
        #: the latest acknowledgement; None: none seen
        self.una: int | None = None
        #: the octet behind the last one seen
        self.high = high
        #: the number behind its FIN
        self.fin: int | None = None
        #: window field of the latest ACK; None: none seen since the SYN
        self.window: int | None = None
        self.dupacks = 0
        #: the hole the wired network was blamed for
        self.blamed: int | None = None
        #: the latest place on the link of anything that has arrived
        self.arrived_serial = 0
        self.rtt = RttEstimator()
        #: the shortest round-trip time
        self.least_rtt_ns: int | None = None
        #: of the timer, since the last sample
        self.expiries = 0
        #: when an ACK last acknowledged something
        self.progress_at = now
        self.used_at = now
        self.misfits = 0
        #: when its timer is looked at
        self.wakes_at: int | None = None
        #: whether the fixed host has asked for SMART options
        self.permits_smart = False

    def head(self) -> _Held | None:
        """The segment that is waited for, if it is here; while no ACK has come, the first."""
        if not self.held:
            return None
        first = self.held[0]
        return first if self.una is None or first.left <= self.una else None


class Snoop:
    """The base station's filter."""

    def __init__(self, access: Access, *, suppresses: bool, selective: bool, limits: Limits | None = None) -> None:
        self._access = access
        self._suppresses = suppresses
        self._selective = selective
        self._limits = limits or Limits()
        self.counters = FilterCounters()
        #: the least recently used first
        self._flows: dict[Flow, _Flow] = {}
        self._nbytes = 0
        self._serial = 0
        self._again: deque[tuple[Any, int]] = deque()
        self._to_link: deque[tuple[Any, int]] = deque()
        self._from_link: deque[tuple[Any, int]] = deque()
        self._guesses: deque[Guess] = deque(maxlen=_MAX_GUESSES)
        #: (when, place, flow): when to look at a flow's timer, which may have moved on; a flow's latest entry counts
        self._wakeups: list[tuple[int, int, _Flow]] = []
        self._places = count()

    @property
    def held_bytes(self) -> int:
        """Octets in the cache, each packet counted with its overhead."""
        return self._nbytes

    # -- packets ---------------------------------------------------------------------------------------------

    def handle_to_link(self, packet: Any, channel: int, now: int) -> None:
        """Take a packet of the IP side: it passes, and data is kept."""
        segment = self._access.view(packet)
        if segment is not None:
            if segment.flags & (SYN | RST):
                self._forget(segment.flow)
                if segment.flags & SYN:
                    self._begin(segment, now)
            elif segment.length or segment.flags & FIN:
                self._keep(segment, packet, channel, now)
        self._to_link.append((packet, channel))

    def handle_from_link(self, packet: Any, channel: int, now: int) -> None:
        """Take a packet of the mobile end: it passes, unless it is a dupack for what is being repaired."""
        segment = self._access.view(packet)
        if segment is not None:
            key = segment.flow.reversed()
            flow = self._flows.get(key)
            if flow is not None:
                if segment.flags & RST or segment.flags & (SYN | ACK) == SYN:
                    self._forget(key)
                elif segment.flags & SYN:
                    ack = unwrap(segment.ack, flow.high)
                    if flow.una is None and ack <= flow.high:
                        flow.una = ack
                elif segment.flags & ACK and not self._take_ack(flow, segment, now):
                    self.counters.suppressed_dupacks += 1
                    return
                if self._suppresses and segment.sack:
                    packet = self._without_holes(flow, segment, packet)
            if self._selective and segment.extra and not segment.length and (flow is None or not flow.permits_smart):
                packet = self._access.without_option(packet, is_smart)
        self._from_link.append((packet, channel))

    def handle_given_up(self, packet: Any, now: int) -> None:
        """Do nothing: timers and ACKs tell."""

    def poll_to_link(self) -> tuple[Any, int] | None:
        """Return the next packet for the link, retransmissions first, or None."""
        if self._again:
            return self._again.popleft()
        return self._to_link.popleft() if self._to_link else None

    def poll_from_link(self) -> tuple[Any, int] | None:
        """Return the next packet for the IP side, or None."""
        return self._from_link.popleft() if self._from_link else None

    def poll_guess(self) -> Guess | None:
        """Return the next guess, oldest first, or None."""
        return self._guesses.popleft() if self._guesses else None

    # -- time ------------------------------------------------------------------------------------------------

    def next_deadline(self) -> int | None:
        """When `handle_deadline` is due, or None; it may find that nothing is."""
        return self._wakeups[0][0] if self._wakeups else None

    def handle_deadline(self, now: int) -> None:
        """Repair what has not been acknowledged in time; a no-op when early."""
        while self._wakeups and self._wakeups[0][0] <= now:
            at, _, flow = heappop(self._wakeups)
            if at != flow.wakes_at:
                continue
            flow.wakes_at = None
            while (expires_at := self._expires_at(flow)) is not None and expires_at <= now:
                self._expire(flow, now)
            self._arm(flow)

    def _timeout_ns(self, flow: _Flow) -> int:
        limits = self._limits
        backoff = min(max(flow.expiries - limits.steady_expiries, 0), limits.max_backoff)
        return max(flow.rtt.bound_ns, limits.min_timeout_ns) << backoff

    def _expires_at(self, flow: _Flow) -> int | None:
        """When the segment that is waited for has had its time; while the window is closed, never."""
        head = flow.head()
        if head is None or flow.window == 0:
            return None
        # what came before a segment may have been slow to come; a repair goes before all else
        since = head.sent_at if head.repairs else max(head.sent_at, flow.progress_at)
        at = since + self._timeout_ns(flow)
        tick_ns = self._limits.tick_ns
        return -(-at // tick_ns) * tick_ns if tick_ns else at

    def _expire(self, flow: _Flow, now: int) -> None:
        head = flow.held[0]
        if head.repairs >= self._limits.tries:
            # its sender's, and so is all else where nobody answers; the wired network is not to blame
            flow.blamed = flow.una
            self._drop(flow, 0, len(flow.held) if flow.una is None else 1)
            return
        self._repair(flow, head, now)
        if self._selective:
            since = now - self._timeout_ns(flow)
            for held in flow.held:
                lost = 0 < held.repairs < self._limits.tries or held.serial < flow.arrived_serial
                if lost and not held.arrived and held.sent_at <= since:
                    self._repair(flow, held, now)
        flow.expiries += 1

    def _arm(self, flow: _Flow) -> None:
        at = self._expires_at(flow)
        if at is None or (flow.wakes_at is not None and flow.wakes_at <= at):
            return
        flow.wakes_at = at
        heappush(self._wakeups, (at, next(self._places), flow))
        if len(self._wakeups) > 2 * self._limits.flows:
            # entries of flows that are gone
            self._wakeups = [wakeup for wakeup in self._wakeups if wakeup[0] == wakeup[2].wakes_at]
            heapify(self._wakeups)

    # -- data towards the mobile end -------------------------------------------------------------------------

    def _begin(self, syn: Segment, now: int) -> None:
        """Take the start of a connection; where it begins is believed when the mobile end says so, too."""
        flow = self._use(syn.flow, syn.seq + 1, now)
        flow.high += syn.length
        flow.permits_smart = permits_smart(syn)

    def _keep(self, segment: Segment, packet: Any, channel: int, now: int) -> None:
        """Put a segment into the cache as far as there is room."""
        limits = self._limits
        flow = self._use(segment.flow, segment.seq, now)
        fin = segment.flags & FIN
        left = unwrap(segment.seq, flow.high)
        right = left + segment.length + fin
        oldest = flow.high - limits.leap_bytes if flow.una is None else flow.una
        if right <= oldest or left > flow.high + limits.leap_bytes:
            flow.misfits += 1
            if flow.misfits < limits.misfits:
                return
            # what was known is not of this flow, or no longer
            self._forget(segment.flow)
            flow = self._use(segment.flow, segment.seq, now)
            left = segment.seq
            right = left + segment.length + fin
        else:
            flow.misfits = 0
        self._serial += 1
        held = _Held(left, right, packet, channel, self._serial, now, left < flow.high)
        first = at = bisect_left(flow.held, left, key=lambda held: held.left)
        if at and flow.held[at - 1].right > left:
            first -= 1
        while at < len(flow.held) and flow.held[at].left < right:
            at += 1
        self._drop(flow, first, at)
        flow.high = max(flow.high, right)
        if fin:
            flow.fin = right
        cost = self._cost(packet)
        if flow.nbytes + cost > limits.flow_bytes:
            return
        flow.held.insert(first, held)
        flow.nbytes += cost
        self._nbytes += cost
        while self._nbytes > limits.total_bytes and (least := next(iter(self._flows))) != segment.flow:
            self._forget(least)
        self._arm(flow)

    def _use(self, key: Flow, seq: int, now: int) -> _Flow:
        """Return a flow, which is now the most recently used; a new one begins at `seq`."""
        flow = self._flows.pop(key, None)
        if flow is None:
            flow = _Flow(key, seq, now)
            while self._flows:
                oldest = next(iter(self._flows.values()))
                if len(self._flows) < self._limits.flows and now - oldest.used_at < self._limits.idle_ns:
                    break
                self._forget(oldest.flow)
        self._flows[key] = flow
        flow.used_at = now
        return flow

    def _forget(self, key: Flow) -> None:
        flow = self._flows.pop(key, None)
        if flow is not None:
            self._nbytes -= flow.nbytes
            flow.wakes_at = None

    def _drop(self, flow: _Flow, first: int, end: int) -> None:
        """Take the segments at [first, end) out of the cache."""
        nbytes = sum(self._cost(held.packet) for held in flow.held[first:end])
        del flow.held[first:end]
        flow.nbytes -= nbytes
        self._nbytes -= nbytes

    def _cost(self, packet: Any) -> int:
        return len(packet) + self._limits.packet_overhead_bytes

    # -- what the mobile end says ----------------------------------------------------------------------------

    def _take_ack(self, flow: _Flow, segment: Segment, now: int) -> bool:
        """Learn from an ACK; return whether it passes."""
        una = flow.una
        ack = unwrap(segment.ack, flow.high if una is None else una)
        # while no ACK has come, data may have crossed before this station knew of the flow
        known = flow.high + (self._limits.leap_bytes if una is None else 0)
        if ack > known or (una is not None and ack < una):
            # of what was never sent, or late
            return True
        flow.high = max(flow.high, ack)
        moved = una is None or ack > una
        if moved:
            self._advance(flow, ack, now)
        says_more = self._selective_news(flow, segment, ack, now)
        window, flow.window = flow.window, segment.window
        if not window:
            # nothing was due while the window was closed
            flow.progress_at = now
        passes = True
        if not moved and ack < flow.high and _repeats(segment, window, says_more):
            passes = self._take_dupack(flow, ack, _asks(segment, says_more), now)
        # what precedes anything that has arrived is lost
        head = flow.head()
        lost = head is not None and not head.arrived and head.serial < flow.arrived_serial
        if head is not None and moved and lost and head.repairs < self._limits.tries:
            self._repair(flow, head, now)
        if self._selective and says_more:
            for held in flow.held:
                if held.serial < flow.arrived_serial and not held.repairs and not held.arrived:
                    held.sure = bool(segment.sack) or held.left <= ack
                    self._repair(flow, held, now)
        if flow.fin is not None and ack >= flow.fin:
            self._forget(flow.flow)
        else:
            self._arm(flow)
        return passes

    def _advance(self, flow: _Flow, ack: int, now: int) -> None:
        """Let what is acknowledged go; the segment that caused the ACK tells the round-trip time."""
        covered, once = 0, not flow.dupacks
        for held in flow.held:
            if held.right > ack:
                break
            covered += 1
            once = once and not held.repairs and not held.by_sender
            self._note_arrival(flow, held, now)
        if covered:
            if once:
                rtt_ns = now - flow.held[covered - 1].sent_at
                flow.rtt.handle_sample(rtt_ns)
                flow.least_rtt_ns = rtt_ns if flow.least_rtt_ns is None else min(flow.least_rtt_ns, rtt_ns)
                flow.expiries = 0
            self._drop(flow, 0, covered)
        flow.una = ack
        flow.dupacks = 0
        flow.progress_at = now

    def _note_arrival(self, flow: _Flow, held: _Held, now: int) -> None:
        """Learn how far the link has come. What is known too soon to be of the latest copy is of the first one."""
        late_enough = flow.least_rtt_ns is not None and now - held.sent_at >= flow.least_rtt_ns
        flow.arrived_serial = max(flow.arrived_serial, held.serial if held.sure or late_enough else held.first_serial)

    def _selective_news(self, flow: _Flow, segment: Segment, ack: int, now: int) -> bool:
        """Let go what has arrived beyond a hole; return whether the ACK tells of any."""
        smart = smart_of(segment)
        told = False
        for left32, right32 in segment.sack or ((smart,) if smart is not None else ()):
            left, right = unwrap(left32, ack), unwrap(right32, ack)
            if not ack < left < right <= flow.high:
                # nothing new, or nonsense
                continue
            told = True
            if self._selective:
                end = bisect_left(flow.held, left, key=lambda held: held.left)
                while end < len(flow.held) and flow.held[end].right <= right:
                    self._note_arrival(flow, flow.held[end], now)
                    flow.held[end].arrived = True
                    end += 1
        return told

    def _take_dupack(self, flow: _Flow, ack: int, asks: bool, now: int) -> bool:
        """See to the segment a dupack `asks` for, or names without asking; return whether the dupack passes."""
        flow.dupacks += asks
        head = flow.head()
        if head is None:
            if asks and flow.blamed != ack:
                flow.blamed = ack
                self._guess(flow, ack, "congestion", now)
            return True
        if flow.dupacks >= self._limits.dupacks and not head.repairs and not head.by_sender:
            self._repair(flow, head, now)
        return not self._suppresses or head.by_sender or not (asks or head.repairs)

    def _without_holes(self, flow: _Flow, segment: Segment, packet: Any) -> Any:
        """Return an ACK without the SACK blocks that would show its receiver what is being repaired here."""
        una, high = flow.una, flow.high
        if una is None:
            return packet
        beyond = {}
        for block in segment.sack:
            left, right = unwrap(block[0], una), unwrap(block[1], una)
            if una < left < right <= high:
                beyond[block] = left, right
        top = max((right for _, right in beyond.values()), default=0)
        for held in flow.held:
            if held.left >= top:
                break
            if not (held.by_sender or held.arrived) and not any(
                left <= held.left < right for left, right in beyond.values()
            ):
                kept = (block for block in segment.sack if block not in beyond or beyond[block][1] <= held.left)
                return self._access.with_sack(packet, tuple(kept))
        return packet

    def _repair(self, flow: _Flow, held: _Held, now: int) -> None:
        """Send a segment again, before all else."""
        if not held.guessed:
            held.guessed = True
            self._guess(flow, held.left, "corruption", now)
        self._serial += 1
        held.serial = self._serial
        held.sent_at = now
        held.repairs += 1
        held.arrived = False
        self.counters.retransmissions += 1
        self.counters.retransmitted_bytes += len(held.packet)
        self._again.append((held.packet, held.channel))

    def _guess(self, flow: _Flow, seq: int, cause: Cause, now: int) -> None:
        self._guesses.append(Guess(now, flow.flow, seq & MASK, cause))


def _repeats(segment: Segment, window: int | None, says_more: bool) -> bool:
    """Whether an ACK that acknowledges nothing new may count as a dupack; `window` is that of the ACK before.

    RFC 5681 section 2: it changes nothing. With SACK it may change the window (RFC 6675 section 2).
    """
    if segment.length or segment.flags & FIN or not segment.window or window == 0:
        return False
    return window is None or segment.window == window or (says_more and bool(segment.sack))


def _asks(segment: Segment, says_more: bool) -> bool:
    """Whether a dupack says that something is missing: one that tells what caused it may answer a duplicate."""
    return says_more or (not segment.sack and smart_of(segment) is None)
