"""Snoop: the base station caches TCP data towards the mobile end and retransmits what the hop has lost.

Read first: Balakrishnan, Seshan, Katz, "Improving reliable transport and handoff performance in cellular wireless
networks" (1995); COMPARISON sections 2.2 and 3.2. docs/filters.md gives a reason for each parameter.

One machine serves four schemes: LL (local retransmission alone), LL-TCP-AWARE (it also `suppresses` dupacks for a
segment under repair), and both with SMART (`selective`). To repair a segment is to retransmit it on the link.

Rules kept
- The hop keeps the order. So a segment is lost when a segment that was put on the link after it has arrived; with
  cumulative ACKs alone, when dupacks ask for it. SACK blocks and SMART options say which segments have arrived.
- A hole is repaired at once when it shows, and again when its timer expires. Dupacks in between come from segments
  behind the hole and were expected.
- After a repair, a partial new ACK shows the next hole, which is repaired at once.
- Where dupacks are suppressed, ACKs that pass lose the SACK blocks beyond a segment under repair: the sender would take
  that segment for lost. SACK blocks are advice (RFC 2018 section 8), and later ACKs repeat them.
- These pass in every state: packets towards the link, ACKs with data, SYN, FIN, RST, ACKs of a closed window, window
  updates, and dupacks for a segment that is not cached, that its sender has retransmitted or that was given up.
- A retransmission is the cached packet itself (`snoop_cache.py`).

Left out: data from the mobile end, which passes (the ELN marker deals with it).
"""

from bisect import bisect_left
from collections import deque
from dataclasses import asdict
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Final

from common.sequence import MASK, unwrap
from common.units import ns
from linklayer.filters.filter import Cause, Filter, FilterPlugin, Guess
from linklayer.filters.snoop_cache import Cache, CachedFlow, Held, Limits, SnoopOptions
from tcpip.access import Access
from tcpip.options import is_smart, permits_smart, smart_of
from tcpip.segment import ACK, FIN, RST, SYN, Segment


class Snoop(Filter):
    """The base station's filter."""

    def __init__(self, access: Access, *, suppresses: bool, selective: bool, limits: Limits) -> None:
        super().__init__()
        self._access = access
        self._suppresses = suppresses
        self._selective = selective
        self._limits = limits
        self._least_timeout_ns, self._tick_ns = ns(limits.timeout_ms), ns(limits.tick_ms)
        self._cache = Cache(self._limits)
        self._serial = 0
        #: retransmissions for the link
        self._again: deque[tuple[Any, int]] = deque()
        #: (when, place, flow): when to look at a flow's timer, which may have moved on; a flow's latest entry counts
        self._wakeups: list[tuple[int, int, CachedFlow]] = []
        self._places = count()

    # -- packets ---------------------------------------------------------------------------------------------

    def handle_to_link(self, packet: Any, channel: int, now: int) -> None:
        """Take a packet of the IP side: it passes, and data is cached."""
        segment = self._access.view(packet)
        if segment is not None:
            if segment.flags & (SYN | RST):
                self._cache.forget(segment.flow)
                if segment.flags & SYN:
                    self._begin(segment, now)
            elif segment.length or segment.flags & FIN:
                self._keep(segment, packet, channel, now)
        self._to_link.append((packet, channel))

    def handle_from_link(self, packet: Any, channel: int, now: int) -> None:
        """Take a packet of the mobile end: it passes, unless it is a dupack for a segment under repair."""
        segment = self._access.view(packet)
        if segment is not None:
            key = segment.flow.reversed()
            flow = self._cache.flows.get(key)
            if flow is not None:
                if segment.flags & RST or segment.flags & (SYN | ACK) == SYN:
                    self._cache.forget(key)
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

    def poll_to_link(self) -> tuple[Any, int] | None:
        if self._again:
            return self._again.popleft()
        return self._to_link.popleft() if self._to_link else None

    # -- time ------------------------------------------------------------------------------------------------

    def next_deadline(self) -> int | None:
        """When `handle_deadline` is due, or None; nothing may turn out to be due then."""
        return self._wakeups[0][0] if self._wakeups else None

    def handle_deadline(self, now: int) -> None:
        """Repair the segments that were not acknowledged in time; a no-op when early."""
        while self._wakeups and self._wakeups[0][0] <= now:
            at, _, flow = heappop(self._wakeups)
            if at != flow.wakes_at:
                continue
            flow.wakes_at = None
            while (expires_at := self._expires_at(flow)) is not None and expires_at <= now:
                self._expire(flow, now)
            self._arm(flow)

    def _timeout_ns(self, flow: CachedFlow) -> int:
        limits = self._limits
        backoff = min(max(flow.expiries - limits.steady_expiries, 0), limits.max_backoff)
        return max(flow.rtt.bound_ns, self._least_timeout_ns) << backoff

    def _expires_at(self, flow: CachedFlow) -> int | None:
        """When the timer of the segment at the acknowledgement number expires; while the window is closed, never."""
        head = flow.head()
        if head is None or flow.window == 0:
            return None
        # a segment waits for those before it; a repair goes before all else
        since = head.sent_at if head.repairs else max(head.sent_at, flow.progress_at)
        at = since + self._timeout_ns(flow)
        tick_ns = self._tick_ns
        return -(-at // tick_ns) * tick_ns if tick_ns else at

    def _expire(self, flow: CachedFlow, now: int) -> None:
        head = flow.held[0]
        if head.repairs >= self._limits.tries:
            # leave it to its sender, and everything else where no ACK has ever come; the wired network is not to blame
            flow.blamed = flow.una
            self._cache.drop(flow, 0, len(flow.held) if flow.una is None else 1)
            return
        self._repair(flow, head, now)
        if self._selective:
            since = now - self._timeout_ns(flow)
            for held in flow.held:
                lost = 0 < held.repairs < self._limits.tries or held.serial < flow.arrived_serial
                if lost and not held.arrived and held.sent_at <= since:
                    self._repair(flow, held, now)
        flow.expiries += 1

    def _arm(self, flow: CachedFlow) -> None:
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
        """Take the start of a connection; the mobile end's ACK confirms its first number."""
        flow = self._cache.use(syn.flow, syn.seq + 1, now)
        flow.high += syn.length
        flow.permits_smart = permits_smart(syn)

    def _keep(self, segment: Segment, packet: Any, channel: int, now: int) -> None:
        limits = self._limits
        flow = self._cache.use(segment.flow, segment.seq, now)
        fin = segment.flags & FIN
        left = unwrap(segment.seq, flow.high)
        right = left + segment.length + fin
        oldest = flow.high - limits.leap_bytes if flow.una is None else flow.una
        if right <= oldest or left > flow.high + limits.leap_bytes:
            flow.misfits += 1
            if flow.misfits < limits.misfits:
                return
            # the numbers known so far belong to another flow of this name
            self._cache.forget(segment.flow)
            flow = self._cache.use(segment.flow, segment.seq, now)
            left = segment.seq
            right = left + segment.length + fin
        else:
            flow.misfits = 0
        self._serial += 1
        held = Held(left, right, packet, channel, self._serial, now, left < flow.high)
        flow.high = max(flow.high, right)
        if fin:
            flow.fin = right
        if self._cache.put(flow, held):
            self._arm(flow)

    # -- ACKs of the mobile end ------------------------------------------------------------------------------

    def _take_ack(self, flow: CachedFlow, segment: Segment, now: int) -> bool:
        """Learn from an ACK; return whether it passes."""
        una = flow.una
        ack = unwrap(segment.ack, flow.high if una is None else una)
        # while no ACK has come, data may have crossed before this station knew of the flow
        known = flow.high + (self._limits.leap_bytes if una is None else 0)
        if ack > known or (una is not None and ack < una):
            # an ACK of octets never sent, or an overtaken one
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
        # a segment is lost when a later one on the link has arrived
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
            self._cache.forget(flow.flow)
        else:
            self._arm(flow)
        return passes

    def _advance(self, flow: CachedFlow, ack: int, now: int) -> None:
        """Drop the acknowledged segments; the last of them gives the round-trip time."""
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
            self._cache.drop(flow, 0, covered)
        flow.una = ack
        flow.dupacks = 0
        flow.progress_at = now

    def _note_arrival(self, flow: CachedFlow, held: Held, now: int) -> None:
        """Note how far the link has come. News too soon after the latest copy can only be of the first copy."""
        late_enough = flow.least_rtt_ns is not None and now - held.sent_at >= flow.least_rtt_ns
        flow.arrived_serial = max(flow.arrived_serial, held.serial if held.sure or late_enough else held.first_serial)

    def _selective_news(self, flow: CachedFlow, segment: Segment, ack: int, now: int) -> bool:
        """Note the segments that have arrived beyond a hole; return whether the ACK names any."""
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

    def _take_dupack(self, flow: CachedFlow, ack: int, asks: bool, now: int) -> bool:
        """Repair the segment that a dupack `asks` for, if it is time; return whether the dupack passes."""
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

    def _without_holes(self, flow: CachedFlow, segment: Segment, packet: Any) -> Any:
        """Return an ACK without the SACK blocks that would show a segment under repair to the sender."""
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

    def _repair(self, flow: CachedFlow, held: Held, now: int) -> None:
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

    def _guess(self, flow: CachedFlow, seq: int, cause: Cause, now: int) -> None:
        self._guesses.append(Guess(now, flow.flow, seq & MASK, cause))


def _repeats(segment: Segment, window: int | None, says_more: bool) -> bool:
    """Whether an ACK that acknowledges nothing new may count as a dupack; `window` is that of the ACK before it.

    RFC 5681 section 2: it changes nothing. With SACK it may change the window (RFC 6675 section 2).
    """
    if segment.length or segment.flags & FIN or not segment.window or window == 0:
        return False
    return window is None or segment.window == window or (says_more and bool(segment.sack))


def _asks(segment: Segment, says_more: bool) -> bool:
    """Whether a dupack says that a segment is missing: a dupack that names its cause may answer a duplicate instead."""
    return says_more or (not segment.sack and smart_of(segment) is None)


def _plugin(name: str, summary: str, *, suppresses: bool, selective: bool) -> FilterPlugin:
    return FilterPlugin(
        name=name,
        summary=summary,
        make=lambda options, context: Snoop(
            context.access, suppresses=suppresses, selective=selective, limits=Limits(**asdict(options))
        ),
        ends=("base",),
        options_key="snoop",
        options=SnoopOptions,
        resends=True,
        guesses=True,
    )


LL: Final = _plugin("ll", "the base station sends TCP segments again", suppresses=False, selective=False)
LL_SMART: Final = _plugin("ll-smart", "ll, with selective ACKs", suppresses=False, selective=True)
SNOOP: Final = _plugin("snoop", "ll, and TCP is spared the dupacks", suppresses=True, selective=False)
SNOOP_SMART: Final = _plugin("snoop-smart", "snoop, with selective ACKs", suppresses=True, selective=True)

FILTER = (LL, LL_SMART, SNOOP, SNOOP_SMART)
