"""A station of the radio link in virtual time: it transmits through a hop, and packets and frames are objects.

Read first: `linklayer/station.py`, the machine that this drives.

Rules kept here:

- Packets have a size and no octets. A damaged frame becomes the frame that its receiver would parse (`Scheme.damage`),
  or nothing.
- After a change of schemes a station ignores the frames of the old one that still arrive.
- One wakeup per station, for hop and link together. A wakeup is never cancelled: when it comes too early, the station
  sets another.
"""

from collections.abc import Callable
from typing import Any, Final

from channel.errors import INTACT, Fate
from channel.hop import Arrival, Hop
from hosts.engine.clock import Alarm, Clock, Sleeper
from hosts.engine.packets import TCP, UDP, Datagram, Deliver, Taker, taker
from linklayer.classify import Classifier
from linklayer.link import Link, Scheme
from linklayer.queues import Queue
from linklayer.station import Station, Transmitter
from tcpip.segment import IpPacket
from testbed.results.frame_fates import FrameFates
from testbed.results.ground_truth import LossReporter
from testbed.results.station_meter import DriverCounts, StationMeter

_NEVER: Final = 1 << 61
#: in place of the time of a wakeup: earlier than any, so that none is set and none is valid
_STALLED: Final = -1


class _MacBuffer(Transmitter):
    """The hop, as a transmitter."""

    def __init__(self, hop: Hop[Any], max_frame_bytes: int) -> None:
        self._hop, self.max_frame_bytes = hop, max_frame_bytes

    def has_room(self) -> bool:
        return self._hop.room() >= self.max_frame_bytes

    def send(self, frame: Any, now: int) -> bool:
        return self._hop.handle_frame(frame, frame.nbytes, now)


class ModelStation(Taker, Sleeper):
    """One end of the radio link: `take` takes packets that are to cross it, `deliver` gets those that have crossed.

    The station transmits through `hop`; `queues` are the IP queues by channel. `on_arrival(arrival)` is called for
    every frame with its fate, `fates` takes them where that has an effect; its loss reporter is told of every lost
    packet. `join` connects two stations, once, and starts them.
    """

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
        fates: FrameFates,
        on_arrival: Callable[[Arrival[Any]], None] | None = None,
    ) -> None:
        self._clock, self._alarm = clock, Alarm(self)
        self.link = link
        self.hop = hop
        self.queues = queues
        self._damage = scheme.damage
        self._transmitter = _MacBuffer(hop, max_frame_bytes)
        self._station = Station(
            link=link,
            queues=queues,
            transmitter=self._transmitter,
            deliver=taker(deliver).take,
            loss_observer=fates.loss_reporter,
        )
        self._tcp_channel, self._udp_channel = classifier.channel_of(0, TCP), classifier.channel_of(0, UDP)
        self.fates = fates
        self._on_arrival = on_arrival
        self._observe()
        self.meter = StationMeter(
            self._station, hop, queues, scheme, lambda: DriverCounts(self.bad_frames), fates.lost_packets
        )
        self._far: ModelStation | None = None
        #: time of the one valid wakeup: later ones in the queue do nothing
        self._wake_at = _NEVER
        #: frames in the hop that are of an earlier scheme; they are the next ones to arrive
        self._foreign = 0
        #: frames that came through the hop, lost ones included
        self.arrivals = 0
        #: frames that came damaged beyond use
        self.bad_frames = 0

    @property
    def congestion_losses(self) -> int:
        """Packets lost in the queues or for want of room in the transmitter."""
        return self._station.congestion_losses

    def take(self, packet: IpPacket) -> None:
        now = self._clock.now
        channel = self._udp_channel if isinstance(packet, Datagram) else self._tcp_channel
        self._station.handle_packet(packet, channel, now)
        self._station.fill(now)
        self._arm()

    def start(self, far: "ModelStation") -> None:
        """Begin, with `far` at the other end of the hop."""
        self._far = far
        self._settle(self._clock.now)

    def switch(self, link: Link, scheme: Scheme, *, buffer_bytes: int, max_frame_bytes: int) -> None:
        """Go on with another link, of another scheme; `go_on` follows, once both ends have switched.

        `buffer_bytes` is the size of the hop's MAC buffer. See `Station.switch`.
        """
        now = self._clock.now
        self.meter.switch(scheme)
        self._damage = scheme.damage
        self._foreign = self.hop.held
        self.hop.set_buffer_bytes(buffer_bytes)
        self._transmitter.max_frame_bytes = max_frame_bytes
        self.link = link
        self._station.switch(link, now)

    def refit(self, link: Link, *, buffer_bytes: int) -> None:
        """Go on with the same link behind other packet filters; `go_on` follows."""
        self.hop.set_buffer_bytes(buffer_bytes)
        self.link = link
        self._station.refit(link, self._clock.now)

    def restart(self, link: Link, scheme: Scheme, *, buffer_bytes: int) -> None:
        """Begin anew with a link of the same scheme, as after the death of a station's process; `go_on` follows.

        What the station held is gone without a word to anybody: packets in queues and link, frames in the transmitter.
        """
        now = self._clock.now
        self.meter.switch(scheme)
        self._foreign = self.hop.held
        for queue in self.queues:
            while queue.nbytes:
                queue.pop(now)
        self.hop.set_buffer_bytes(buffer_bytes)
        self.link = link
        self._station.refit(link, now)

    @property
    def stalled(self) -> bool:
        """Whether a stall goes on."""
        return self._wake_at == _STALLED

    def stall(self) -> None:
        """Handle no deadline and deliver no frame until `go_on`, as a process that is stopped."""
        self._wake_at = _STALLED

    def tell(self, loss_reporter: LossReporter | None, *, repeats: bool) -> None:
        """Report losses elsewhere; `repeats`: packets cross in several frames that no acknowledgement settles."""
        self.fates.loss_reporter = self._station.loss_observer = loss_reporter
        self.fates.repeats = repeats
        self._observe()

    def go_on(self) -> None:
        """Send what a change lets go, and end a stall."""
        if self.stalled:
            self._wake_at = _NEVER
        self._settle(self._clock.now)

    def _observe(self) -> None:
        takers = (self._on_arrival, self.fates.handle if self.fates.needed else None)
        self._observers = tuple(taker for taker in takers if taker is not None)

    def _settle(self, now: int) -> None:
        self._station.settle(now)
        self._arm()

    def _arm(self) -> None:
        """Wake at the next deadline, unless a wakeup is due before."""
        at = self.hop.next_deadline()
        due_at = self.link.next_deadline()
        if at is None or (due_at is not None and due_at < at):
            at = due_at
        if at is not None and at < self._wake_at:
            self._wake_at = at
            self._clock.give(max(at, self._clock.now), self._alarm, at)

    def wake(self, at: int) -> None:
        """Deliver the frames that have crossed the hop, and handle the deadline set for `at`."""
        if at != self._wake_at:
            # an earlier wakeup has replaced this one
            return
        self._wake_at = _NEVER
        now, hop, link = self._clock.now, self.hop, self.link
        far = self._far
        assert far is not None
        left, received = hop.frames, False
        while (arrival := hop.poll_arrival(now)) is not None:
            received = self._carry(arrival, far, now) or received
        if received:
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
        """Hand a frame that has crossed the hop to the far station; return whether the station received one."""
        self.arrivals += 1
        if self._foreign:
            self._foreign -= 1
            self.fates.write(arrival)
            if self._on_arrival is not None:
                self._on_arrival(arrival)
            return False
        for observe in self._observers:
            observe(arrival)
        frame, verdict = arrival.frame, arrival.verdict
        if verdict is not INTACT and verdict.fate is not Fate.INTACT:
            if verdict.fate is Fate.ERASED:
                return False
            frame = self._damage(frame, verdict.bit_errors)
            if frame is None:
                far.bad_frames += 1
                return False
        far._station.handle_frame(frame, now)
        return True


def join(one: ModelStation, other: ModelStation) -> None:
    """Put two stations at the ends of one link and start them."""
    one.start(other)
    other.start(one)
