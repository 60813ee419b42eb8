"""The sending side of link ARQ.

Read first: COHERENCE sections 3.2 and 4.1; LT-TCP section IV-C for fragments.

Rules kept
- A packet goes as one frame or, with a `Cutter`, as several fragments, one behind the other.
- A packet that has not been acknowledged `resend_after_ns` after the radio took its last frame is sent again, before
  all new ones; after `retries` such copies, and the same time once more, its packet is given up.
- All waits are equally long, so the timers expire in the order in which they were set.
- At most `window` packets are under way. Without retries, where they wait only to be counted, the oldest is given up
  for the next one.
"""

from collections import deque
from collections.abc import Sized
from typing import Final

from common.sequence import MASK, unwrap
from linklayer.arq.code import FragmentCode
from linklayer.arq.frames import ACK_BITS, Ack, Data, Fragment

_NEVER: Final = 1 << 61


class _Held:
    __slots__ = ("channel", "copies", "due_at", "packet", "seq")

    def __init__(self, seq: int, packet: Sized, channel: int) -> None:
        self.seq = seq
        self.packet = packet
        self.channel = channel
        #: times that it was sent
        self.copies = 0
        #: when the wait for an acknowledgement of the last copy ends; never while it is in line for another one
        self.due_at = _NEVER


class Cutter:
    """How packets are cut: `total` fragments each, any `data` of them suffice."""

    def __init__(self, code: FragmentCode, data: int, total: int) -> None:
        self.code = code
        self.data = data
        self.total = total


class Sender:
    """Packets for the peer, from `handle_packet` until they are acknowledged or given up."""

    def __init__(
        self, session: int, resend_after_ns: int, retries: int, window: int, cutter: Cutter | None = None
    ) -> None:
        self._session = session
        self._cutter = cutter
        self._resend_after_ns = resend_after_ns
        self._retries = retries
        self._window = window
        self._next = 0
        #: packets not sent yet, and those under way by number, oldest first
        self._fresh: deque[_Held] = deque()
        self._held: dict[int, _Held] = {}
        #: those that are to be sent again
        self._again: deque[_Held] = deque()
        #: the packet that is being sent in fragments, and those still to go
        self._rest: tuple[_Held, list[Fragment]] | None = None
        #: (when, whose wait ends then); an entry counts only if it is the packet's latest
        self._timers: deque[tuple[int, _Held]] = deque()
        #: packets given up, for the station
        self.given_up: deque[Sized] = deque()
        self.packets = 0
        self.resent = 0
        self.fec_frames = 0
        self.acked_bytes = 0
        self.residual_losses = 0
        #: those of them that were under way when the session ended
        self.session_losses = 0
        #: acknowledgements of another session, or of numbers that were never sent
        self.stale = 0

    @property
    def wants_packet(self) -> bool:
        """Whether the next packet may be handed over: one at a time, while the window is open."""
        return not self._fresh and (not self._retries or self._next - self._base() < self._window)

    def handle_packet(self, packet: Sized, channel: int) -> None:
        """Take one packet. Raises RuntimeError, and changes nothing, when none is wanted."""
        if not self.wants_packet:
            raise RuntimeError("a packet was handed over that the link did not want")
        if self._next - self._base() >= self._window:
            self._give_up(next(iter(self._held.values())))
        self._fresh.append(_Held(self._next, packet, channel))
        self._next += 1

    def poll_data(self, now: int) -> Data | Fragment | None:
        """Return the next frame, those that go again first, or None."""
        if self._rest is not None:
            return self._send_rest(now)
        again = self._again
        while again:
            held = again.popleft()
            if held.seq in self._held:
                self.resent += 1
                return self._send(held, now)
        if not self._fresh:
            return None
        held = self._fresh.popleft()
        self._held[held.seq] = held
        self.packets += 1
        return self._send(held, now)

    def handle_ack(self, ack: Ack) -> None:
        """Let go of the packets that have come."""
        latest = unwrap(ack.seq, self._next)
        if ack.session != self._session or not 0 <= latest < self._next:
            self.stale += 1
            return
        self._let_go(latest)
        before, seq = ack.before & (1 << ACK_BITS) - 1, latest - 1
        while before:
            if before & 1:
                self._let_go(seq)
            before >>= 1
            seq -= 1

    def next_deadline(self) -> int | None:
        """When the next wait ends, or None."""
        timers = self._timers
        while timers:
            due_at, held = timers[0]
            if held.due_at == due_at and held.seq in self._held:
                return due_at
            timers.popleft()
        return None

    def handle_deadline(self, now: int) -> None:
        """Send again, or give up, the packets whose wait is over."""
        while (due_at := self.next_deadline()) is not None and due_at <= now:
            _, held = self._timers.popleft()
            held.due_at = _NEVER
            if held.copies > self._retries:
                self._give_up(held)
            else:
                self._again.append(held)

    def end(self) -> None:
        """Give up all that is under way."""
        for held in [*self._held.values(), *self._fresh]:
            self._give_up(held)
            self.session_losses += 1
        self._fresh.clear()
        self._again.clear()
        self._rest = None
        self._timers.clear()

    def _base(self) -> int:
        """The lowest number that may still be sent."""
        for seq in self._held:
            return seq
        return self._fresh[0].seq if self._fresh else self._next

    def _send(self, held: _Held, now: int) -> Data | Fragment:
        held.copies += 1
        cutter, seq, base = self._cutter, held.seq & MASK, self._base() & MASK
        if cutter is None:
            self._wait(held, now)
            return Data(self._session, held.channel, seq, base, held.packet)
        data, total, nbytes = cutter.data, cutter.total, len(held.packet)
        self.fec_frames += total - data
        fragments = [
            Fragment(self._session, held.channel, seq, base, held.copies - 1, index, data, total, nbytes, fragment)
            for index, fragment in enumerate(cutter.code.cut(held.packet, data, total))
        ]
        fragments.reverse()
        self._rest = held, fragments
        return self._send_rest(now)

    def _send_rest(self, now: int) -> Fragment:
        """Return the next fragment of the packet that is being sent."""
        assert self._rest is not None
        held, fragments = self._rest
        fragment = fragments.pop()
        if not fragments:
            self._rest = None
            self._wait(held, now)
        return fragment

    def _wait(self, held: _Held, now: int) -> None:
        held.due_at = now + self._resend_after_ns
        self._timers.append((held.due_at, held))

    def _let_go(self, seq: int) -> None:
        held = self._held.pop(seq, None)
        if held is not None:
            self.acked_bytes += len(held.packet)

    def _give_up(self, held: _Held) -> None:
        self._held.pop(held.seq, None)
        self.residual_losses += 1
        self.given_up.append(held.packet)
