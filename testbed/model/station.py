"""A station of the radio link in virtual time: what `linklayer/station.py` does, without octets.

Rules kept here:

- The same behaviour as on the real-time tiers: with flow control packets wait in the IP queues (one per channel) until
  the link wants them, without it they go straight to the MAC buffer; the hop is offered frames only while it has room
  for the largest.
- Frames are objects and packets have a size only. A damaged frame becomes what its receiver would make of it
  (`Scheme.damage`), or nothing.
- One wakeup per station, for hop and link together; one that has moved to later finds out when it wakes.
"""

from collections.abc import Callable
from typing import Any, Final

from channel.errors import INTACT, Fate
from channel.hop import Arrival, Hop
from hosts.engine.clock import Clock
from hosts.engine.packets import TCP, UDP, Datagram, Deliver, Packet
from linklayer.classify import Classifier
from linklayer.filters.filtered import Filtered
from linklayer.link import Link, Scheme
from linklayer.queues import Queue
from testbed.results.ground_truth import Witness
from testbed.results.lost_packets import LostPackets

_NEVER: Final = 1 << 63


class ModelStation:
    """One end of the radio link; `deliver` takes what has come across it, and `send` what is to go.

    `hop` is what it transmits through, `queues` are the IP queues by channel. `judged(arrival)` is called for every
    frame with its fate, `witness` sees what becomes of packets. `join` tells two stations of each other, once, and
    starts them.
    """

    __slots__ = (
        "_at",
        "_clock",
        "_damage",
        "_deliver",
        "_far",
        "_flow_control",
        "_guesser",
        "_judged",
        "_max_frame_bytes",
        "_tcp_channel",
        "_udp_channel",
        "_wake_at",
        "_witness",
        "arrivals",
        "bad_frames",
        "hop",
        "link",
        "lost_packets",
        "queues",
        "refusals",
    )

    def __init__(
        self,
        clock: Clock,
        *,
        link: Link,
        scheme: Scheme,
        hop: Hop[Any],
        queues: tuple[Queue, ...],
        classifier: Classifier,
        max_frame_bytes: int,
        deliver: Deliver,
        judged: Callable[[Arrival[Any]], None] | None = None,
        witness: Witness | None = None,
    ) -> None:
        self._clock, self._at = clock, clock.at
        self.link = link
        self.hop = hop
        self.queues = queues
        self._damage = scheme.damage
        self._flow_control = link.flow_control
        self._tcp_channel, self._udp_channel = classifier.channel_of(0, TCP), classifier.channel_of(0, UDP)
        self._max_frame_bytes = max_frame_bytes
        self._deliver = deliver
        self._judged = judged
        self._witness = witness
        if witness is not None:
            for queue in queues:
                queue.watch(witness.dropped)
        self._guesser = link if isinstance(link, Filtered) else None
        self._far: ModelStation | None = None
        #: when the earliest wakeup is due that counts
        self._wake_at = _NEVER
        #: frames that came through the hop, lost ones included
        self.arrivals = 0
        #: frames that came damaged beyond use
        self.bad_frames = 0
        #: frames the MAC buffer had no room for
        self.refusals = 0
        #: where packet filters send packets again
        self.lost_packets = LostPackets() if scheme.resends else None

    @property
    def congestion_losses(self) -> int:
        """Packets the IP queues, or frames the MAC buffer, had no room for."""
        return sum(queue.drops for queue in self.queues) + self.refusals

    def send(self, packet: Packet) -> None:
        """Take a packet of the LAN's that is to cross the link."""
        now = self._clock.now
        channel = self._udp_channel if isinstance(packet, Datagram) else self._tcp_channel
        if self._flow_control:
            if self.queues[channel].push(packet, now):
                self._fill(now)
                self._arm()
            elif self._witness is not None:
                self._witness.dropped(packet, now)
        else:
            link, hop = self.link, self.hop
            link.handle_packet(packet, channel)
            while (frame := link.poll_frame(now)) is not None:
                if not hop.handle_frame(frame, frame.nbytes, now):
                    self.refusals += 1
                    if self._witness is not None:
                        self._witness.dropped(frame.payload, now)
            self._arm()

    def start(self, far: "ModelStation") -> None:
        """Begin, with `far` at the other end of the hop."""
        self._far = far
        self._settle(self._clock.now)

    def _settle(self, now: int) -> None:
        """Pass on what the link has: packets to the LAN, frames to the hop."""
        link, deliver = self.link, self._deliver
        witness = self._witness
        while (delivery := link.poll_packet()) is not None:
            deliver(delivery[0])
        while (packet := link.poll_given_up()) is not None:
            if witness is not None:
                witness.given_up(packet, now)
        self._hear_guesses()
        if self._flow_control:
            self._fill(now)
        self._arm()

    def _fill(self, now: int) -> None:
        """Give the hop frames while it has room for the largest, and the link packets while it wants them."""
        link, hop, queues = self.link, self.hop, self.queues
        while hop.room() >= self._max_frame_bytes:
            for channel, queue in enumerate(queues):
                if queue.nbytes and link.wants_packet(channel):
                    packet = queue.pop(now)
                    if packet is not None:
                        link.handle_packet(packet, channel)
            frame = link.poll_frame(now)
            if frame is None:
                break
            hop.handle_frame(frame, frame.nbytes, now)
        self._hear_guesses()

    def _hear_guesses(self) -> None:
        """Let the witness know what the packet filters believe."""
        if self._guesser is not None and self._witness is not None:
            while (guess := self._guesser.poll_guess()) is not None:
                self._witness.guessed(guess)

    def _arm(self) -> None:
        """Wake at the next deadline, unless a wakeup is due before."""
        at = self.hop.next_deadline()
        due_at = self.link.next_deadline()
        if at is None or (due_at is not None and due_at < at):
            at = due_at
        if at is not None and at < self._wake_at:
            self._wake_at = at
            self._at(max(at, self._clock.now), self._wake, at)

    def _wake(self, at: int) -> None:
        if at != self._wake_at:
            # an earlier one has taken its place
            return
        self._wake_at = _NEVER
        now, hop, link = self._clock.now, self.hop, self.link
        far = self._far
        assert far is not None
        left, heard = hop.frames, False
        while (arrival := hop.poll_arrival(now)) is not None:
            heard = self._carry(arrival, far, now) or heard
        if heard:
            far._settle(now)
        due_at = link.next_deadline()
        if due_at is not None and due_at <= now:
            link.handle_deadline(now)
            self._settle(now)
        elif hop.frames > left:
            self._settle(now)
        else:
            # nothing has changed on this side
            self._arm()

    def _carry(self, arrival: Arrival[Any], far: "ModelStation", now: int) -> bool:
        """Let the far station have what has come through the hop; return whether it heard anything."""
        self.arrivals += 1
        if self._judged is not None:
            self._judged(arrival)
        frame, verdict = arrival.frame, arrival.verdict
        if self.lost_packets is not None:
            self.lost_packets.judge(frame.payload, verdict.fate is not Fate.INTACT)
        witness = self._witness
        if verdict is not INTACT and verdict.fate is not Fate.INTACT:
            if witness is not None and not witness.repairs:
                witness.taken(frame.payload, now)
            if verdict.fate is Fate.ERASED:
                return False
            frame = self._damage(frame, verdict.bit_errors)
            if frame is None:
                far.bad_frames += 1
                return False
        far.link.handle_frame(frame, now)
        return True


def join(one: ModelStation, other: ModelStation) -> None:
    """Put two stations at the ends of one link and start them."""
    one.start(other)
    other.start(one)
