"""The sending side: which frame goes next, and how often.

Rules kept
- A packet has a deadline: the budget after the link took it. By how many round trips are left until then it has
  *rounds*. In each round it goes once as it is; with others of its *group* it shares as many combinations as the plan
  says (`plan.py`). A round ends when the fates of all its frames are known, and what is still missing begins the next.
- The combinations of a group slide: it takes members until all its frames are sent. In the last round they go as late
  as its oldest packet allows, so that more losses share them; in the others after a part of what the budget leaves
  beyond whole round trips. A packet itself never waits, nor do new packets' combinations when nothing else is to send.
- The price of a miss is the plan's for the residual loss that is wanted. It rises with each miss and falls with each
  arrival, so that this residual is met whatever the plan does not know.
- A frame is lost when an acknowledgement of a later one does not name it, or when none has come for longer than a round
  trip takes.
- `base` moves past a packet as soon as its last frame has gone: the link keeps the order of frames, so what comes
  behind that frame tells the receiver not to wait any longer.
- Repairs go before new packets, and the oldest first.
"""

from collections import deque
from collections.abc import Sized
from math import exp
from typing import Final

from common.sequence import MASK, unwrap
from common.units import MS
from linklayer.adaptive.budget import Budget
from linklayer.adaptive.code import MAX_INDEXES, MAX_SPAN, Code
from linklayer.adaptive.estimator import LossEstimator
from linklayer.adaptive.frames import MAX_BITS, MAX_PATIENCE_MS, MAX_WINDOW, MIN_BITS, Ack, Coded, Data, Mark
from linklayer.adaptive.plan import Plan, cost_within, plan_within
from linklayer.adaptive.rounds import NEVER, Group, Packet, Transmission, number

#: members of a group at most: in the last round and, since a longer one takes time that a later round needs, before it
_LAST_GROUP: Final = 8
_EARLY_GROUP: Final = 2
#: the share of packets that may be missed (docs/adaptive.md)
RESIDUAL: Final = 1e-3
#: how much a miss raises the price of the next, its logarithm, and the bounds of that
_DEARER: Final = 0.5
_MOST_DEAR: Final = 1.5
#: a plan is made for groups of so many
_USUAL_GROUP: Final = 4
#: before the first acknowledgement: marks go out after this time, then after twice as long
_FIRST_MARK_NS: Final = 100 * MS
_LAST_MARK_NS: Final = 2000 * MS
#: a new plan is asked for after so many fates
_REPLAN: Final = 16


class Sender:
    """Packets for the peer, from `handle_packet` until they are acknowledged or given up.

    The budget is `budget_ns` or, where that is 0, `round_trips` of the link. `frame_ns`: how long the longest frame
    takes, about.
    """

    def __init__(
        self, session: int, code: Code, *, round_trips: float, budget_ns: int, frame_ns: int, now: int
    ) -> None:
        self._session = session
        self._code = code
        self._frame_ns = frame_ns
        #: the last round begins so long before the time is over at the latest
        self._margin_ns = 2 * frame_ns
        self.loss = LossEstimator()
        self.budget = Budget(round_trips, budget_ns, now)
        #: the logarithm of what the price of a miss is multiplied by, so that `RESIDUAL` is met on average
        self._dearness = 0.0
        self._plan: Plan = self._make_plan()
        self._fates = 0
        self._next = 0
        self._next_tx = 0
        self._next_index = 0
        self._fresh: deque[tuple[Sized, int]] = deque()
        #: packets that are not settled, by number, oldest first
        self._held: dict[int, Packet] = {}
        #: packets by the end of their time, those in their last round among them
        self._dues: deque[Packet] = deque()
        #: those that begin another round
        self._again: deque[Packet] = deque()
        #: groups whose frames are not all sent, oldest first
        self._groups: list[Group] = []
        #: those that take members, by channel and rounds, new packets apart
        self._open: dict[tuple[int, int, bool], Group] = {}
        #: transmissions whose fate is not known, oldest first
        self._under_way: deque[Transmission] = deque()
        #: those that no acknowledgement told of in time
        self._overdue: deque[Transmission] = deque()
        #: the last acknowledgement answered one of these
        self._came_late = False
        self._base = 0
        #: the base that the last frame told, and the least one that the peer has to be told
        self._told = self._left = 0
        self._mark_due = True
        self._mark_at = now + _FIRST_MARK_NS
        self._mark_wait_ns = 2 * _FIRST_MARK_NS
        #: the share of the peer's acknowledgements that were lost, in 1/255: the receiving side sets it
        self.heard = 0
        self.given_up: deque[Sized] = deque()
        self.packets = 0
        self.resent = 0
        self.coded = 0
        self.acked_bytes = 0
        #: packets acknowledged, and those of them that came within the budget
        self.delivered = 0
        self.in_time = 0
        #: when the last acknowledgement came
        self._acked_at = now
        self.residual_losses = 0
        self.session_losses = 0
        self.stale = 0

    # -- packets -----------------------------------------------------------------------------------------------------

    def wants_packet(self, channel: int) -> bool:
        """Whether a packet may be handed over: one of each channel at a time, while the window is open."""
        for _, waits in self._fresh:
            if waits == channel:
                return False
        return self._next - self._lowest() < MAX_WINDOW - len(self._fresh)

    def handle_packet(self, packet: Sized, channel: int) -> None:
        """Take one packet. Raises RuntimeError, and changes nothing, when none is wanted."""
        if not self.wants_packet(channel):
            raise RuntimeError("a packet was handed over that the link did not want")
        self._fresh.append((packet, channel))

    def poll_frame(self, now: int) -> Data | Coded | Mark | None:
        """Return the next frame, or None."""
        self._look_at_dues(now)
        frame: Data | Coded | Mark | None = self._poll_again(now)
        if frame is None:
            frame = self._poll_coded(now)
        if frame is None and self._fresh:
            frame = self._send_fresh(now)
        if frame is None and self._start_fresh():
            frame = self._poll_coded(now)
        if frame is None and (self._mark_due or self._told < self._left):
            frame = self._mark(now)
        return frame

    # -- fates -------------------------------------------------------------------------------------------------------

    def handle_ack(self, ack: Ack, now: int) -> None:
        """Let go of the packets that have come, and judge the frames that went before the newest that has."""
        newest = unwrap(ack.tx, self._next_tx)
        top = unwrap(ack.top, self._next)
        if ack.session != self._session or not 0 <= newest < self._next_tx or top >= self._next:
            self.stale += 1
            return
        self._acked_at = now
        self._settle_bits(top, ack.packets)
        self._hear_of_overdue(newest, ack.frames, now)
        under_way = self._under_way
        while under_way and under_way[0].tx <= newest:
            sent = under_way.popleft()
            behind = newest - sent.tx
            came = behind == 0 or bool(ack.frames >> behind - 1 & 1)
            if behind == 0:
                self._came_late = False
                self._mark_at = NEVER
                self.budget.handle_round_trip(now - sent.sent_at, sent.nbytes, now)
            self.budget.handle_fate(now - sent.sent_at)
            if behind <= MIN_BITS or behind <= ack.frames.bit_length():
                self._handle_fate(not came)
            self._judge(sent, came)
        self._move_base()

    def _hear_of_overdue(self, newest: int, frames: int, now: int) -> None:
        """Learn the fates of transmissions that were taken for lost, for the estimate.

        If the newest is one of them, it tells how long a round trip is: longer than the wait for it. Where every
        acknowledgement comes later than that, nothing else would tell. A single one may be the repetition of one that
        was lost, and counts only while no round trip is known.
        """
        overdue = self._overdue
        while overdue and overdue[0].tx <= newest:
            late = overdue.popleft()
            behind = newest - late.tx
            came = behind == 0 or bool(frames >> behind - 1 & 1)
            if behind == 0:
                if self._came_late or not self.budget.round_trip_ns:
                    self.budget.handle_round_trip(now - late.sent_at, late.nbytes, now)
                self._came_late = True
            if behind <= MIN_BITS or behind <= frames.bit_length():
                self._handle_fate(not came)

    def next_deadline(self) -> int | None:
        """When `handle_deadline` is due, or None."""
        at = NEVER
        if self._under_way:
            at = self._under_way[0].sent_at + self.budget.overdue_ns
        if self._dues:
            at = min(at, self._dues[0].due_at - self._margin_ns)
        for group in self._groups:
            if not group.started and group.starts_at < at:
                at = group.starts_at
        if self._mark_at < at:
            at = self._mark_at
        return at if at < NEVER else None

    def handle_deadline(self, now: int) -> None:
        """Give up waiting for acknowledgements that are overdue; a no-op when early."""
        under_way, patience = self._under_way, self.budget.overdue_ns
        while under_way and under_way[0].sent_at + patience <= now:
            sent = under_way.popleft()
            self.budget.handle_fate(now - sent.sent_at)
            self._judge(sent, False)
            sent.forget()
            self._overdue.append(sent)
            if len(self._overdue) > MAX_BITS:
                self._overdue.popleft()
        self._look_at_dues(now)
        for group in self._groups:
            if group.starts_at <= now:
                group.started = True
        if self._mark_at <= now:
            self._mark_due = True
            self._mark_at = now + self._mark_wait_ns
            self._mark_wait_ns = min(2 * self._mark_wait_ns, _LAST_MARK_NS)
        self._move_base()

    def end(self) -> None:
        """Give up all that is under way."""
        for held in list(self._held.values()):
            self._give_up(held)
            self.session_losses += 1
        for packet, _ in self._fresh:
            self.residual_losses += 1
            self.session_losses += 1
            self.given_up.append(packet)
        self._fresh.clear()
        self._again.clear()
        self._open.clear()
        self._groups.clear()
        self._under_way.clear()
        self._overdue.clear()
        self._dues.clear()
        self._move_base()

    def _judge(self, sent: Transmission, came: bool) -> None:
        """Draw the consequences of a transmission's fate."""
        packet, group = sent.packet, sent.group
        if came and packet is not None:
            self._settle(packet)
        if group is not None:
            group.pending -= 1
            self._end_round(group)
        elif packet is not None:
            self._wait(packet)

    def _end_round(self, group: Group) -> None:
        """Begin the next round of what is missing, once the fates of all frames are known."""
        if not group.ended or group.pending:
            return
        for packet in group.members:
            if not packet.settled:
                if group.rounds == 1:
                    self._give_up(packet)
                else:
                    # its last round may have begun, and is judged by itself
                    self._wait(packet)

    def _settle_bits(self, top: int, bits: int) -> None:
        came = []
        for seq, held in self._held.items():
            if seq > top:
                break
            behind = top - seq
            if not behind or bits >> behind - 1 & 1:
                came.append(held)
        for held in came:
            self._settle(held)

    def _settle(self, packet: Packet) -> None:
        if not packet.settled:
            packet.settled = True
            del self._held[packet.seq]
            self.acked_bytes += len(packet.packet)
            self.delivered += 1
            # `due_at` is a quarter of a round trip before the budget's end; an ACK takes half of one less a frame
            if self._acked_at <= packet.due_at + 3 * self.budget.round_trip_ns // 4 - self._frame_ns // 2:
                self.in_time += 1
            self._dearness = max(-_MOST_DEAR, self._dearness - _DEARER * RESIDUAL)

    def _give_up(self, packet: Packet) -> None:
        packet.settled = True
        del self._held[packet.seq]
        self._left = max(self._left, packet.seq + 1)
        self.residual_losses += 1
        self.given_up.append(packet.packet)
        self._dearness = min(_MOST_DEAR, self._dearness + _DEARER)

    def _handle_fate(self, lost: bool) -> None:
        self.loss.handle(lost)
        self._fates += 1
        if self._fates >= _REPLAN:
            self._fates = 0
            self._plan = self._make_plan()

    def _make_plan(self) -> Plan:
        rounds = self.budget.rounds_in(self.budget.sending_ns)
        return plan_within(self.loss.loss, self.loss.correlation, rounds, _USUAL_GROUP, RESIDUAL, exp(self._dearness))

    def frame_cost(self, loss: float) -> float:
        """Return the plan's E[frames] + price * E[missed] of one packet, if so many frames were lost, 0 to 1."""
        return cost_within(loss, self.budget.rounds_in(self.budget.sending_ns), _USUAL_GROUP, RESIDUAL)

    # -- rounds ------------------------------------------------------------------------------------------------------

    def _send_fresh(self, now: int) -> Data:
        packet, channel = self._fresh.popleft()
        held = Packet(self._next, packet, channel, now + self.budget.sending_ns)
        self._next += 1
        self._held[held.seq] = held
        self._dues.append(held)
        self.packets += 1
        return self._send(held, True, now)

    def _poll_again(self, now: int) -> Data | None:
        again = self._again
        while again:
            held = again.popleft()
            held.waits = False
            if held.settled:
                continue
            if held.due_at < now:
                self._give_up(held)
                self._move_base()
                continue
            self.resent += 1
            return self._send(held, False, now)
        return None

    def _wait(self, held: Packet) -> None:
        """Put a packet in line for its next round."""
        if not held.settled and not held.waits and not held.last:
            held.waits = True
            self._again.append(held)

    def _look_at_dues(self, now: int) -> None:
        """Let packets whose time ends have their last round, although the fate of the one before is not known."""
        dues, due_at = self._dues, now + self._margin_ns
        while dues and (dues[0].settled or dues[0].due_at <= due_at):
            self._wait(dues.popleft())

    def _poll_coded(self, now: int) -> Coded | None:
        """Return the next combination of the group that has waited longest, if its time has come, or None."""
        groups, place = self._groups, 0
        while place < len(groups):
            group = groups[place]
            if not group.started:
                place += 1
                continue
            if self._owed(group) > 0:
                members = [member for member in group.members if not member.settled]
                if members:
                    return self._combine(group, members, now)
            # takes it out of the list
            self._end(group)
        return None

    def _start_fresh(self) -> bool:
        """Let groups of new packets wait no longer, as there are no more; return whether any had."""
        waited = False
        for (_, _, fresh), group in self._open.items():
            if fresh and not group.started:
                group.started = waited = True
        return waited

    def _join(self, held: Packet, fresh: bool, now: int) -> Group | None:
        """Return the group with which the packet shares this round; None: it needs no redundancy."""
        left_ns = held.due_at - now
        rounds = self.budget.rounds_in(left_ns) if left_ns > self._margin_ns else 1
        if rounds > 1 and self._plan.frames(rounds, _EARLY_GROUP) <= _EARLY_GROUP:
            return None
        held.last = rounds == 1
        key = held.channel, rounds, fresh
        group = self._open.get(key)
        if group is not None and (
            now + self._owed(group) * self._frame_ns > group.due_at + self.budget.round_trip_ns // 2
            or abs(held.seq - group.members[0].seq) >= MAX_SPAN // 2
            or held in group.members
        ):
            group.started = True
            del self._open[key]
            group = None
        if group is None:
            group = self._open[key] = Group(held.channel, rounds)
            self._groups.append(group)
        group.members.append(held)
        if len(group.members) == (_LAST_GROUP if rounds == 1 else _EARLY_GROUP):
            group.started = True
            del self._open[key]
        group.due_at = min(group.due_at, held.due_at)
        # its frames have to go before that
        group.starts_at = group.due_at - (self._owed(group) + 1) * self._frame_ns
        if rounds > 1:
            group.starts_at = min(group.starts_at, now + 2 * self._frame_ns)
        if group.starts_at <= now:
            group.started = True
        return group

    def _owed(self, group: Group) -> int:
        """Return the frames that a group has still to send."""
        return self._plan.frames(group.rounds, len(group.members)) - group.sent

    def _end(self, group: Group) -> None:
        """Note that all frames of a group are sent."""
        group.ended = True
        self._groups.remove(group)
        for key, other in self._open.items():
            if other is group:
                del self._open[key]
                break
        if group.rounds == 1:
            for member in group.members:
                member.left_behind = True
            self._move_base()
        self._end_round(group)

    # -- frames ------------------------------------------------------------------------------------------------------

    def _send(self, held: Packet, fresh: bool, now: int) -> Data:
        group = self._join(held, fresh, now)
        tx = self._transmit(held, group, now)
        base = self._tell_base(held.seq)
        return Data(
            self._session, held.channel, tx, base, self._patience_ms(), self.heard, held.seq & MASK, held.packet
        )

    def _combine(self, group: Group, members: list[Packet], now: int) -> Coded:
        members.sort(key=number)
        first, bits = members[0].seq, 0
        for member in members:
            bits |= 1 << member.seq - first
        index = self._next_index
        self._next_index = (index + 1) % MAX_INDEXES
        payload = self._code.combine([(member.seq, member.packet) for member in members], index)
        self.coded += 1
        tx = self._transmit(None, group, now)
        base = self._tell_base(first)
        return Coded(
            self._session,
            group.channel,
            tx,
            base,
            self._patience_ms(),
            self.heard,
            first & MASK,
            bits,
            index,
            payload,
        )

    def _mark(self, now: int) -> Mark:
        self._mark_due = False
        tx = self._transmit(None, None, now)
        return Mark(self._session, 0, tx, self._tell_base(), self._patience_ms(), self.heard)

    def _transmit(self, packet: Packet | None, group: Group | None, now: int) -> int:
        tx = self._next_tx
        self._next_tx = tx + 1
        self._under_way.append(Transmission(tx, now, packet, group))
        if group is not None:
            group.sent += 1
            group.pending += 1
        return tx & MASK

    def _patience_ms(self) -> int:
        return max(1, min(MAX_PATIENCE_MS, self.budget.patience_ns // MS))

    def _tell_base(self, below: int = NEVER) -> int:
        """Return the base that a frame tells, at most the number of a packet that it brings."""
        self._told = min(self._base, below)
        return self._told & MASK

    def _lowest(self) -> int:
        for seq in self._held:
            return seq
        return self._next

    def _move_base(self) -> None:
        base, held = self._base, self._held
        while base < self._next:
            packet = held.get(base)
            if packet is not None:
                if not packet.left_behind:
                    break
                self._left = base + 1
            base += 1
        self._base = base
