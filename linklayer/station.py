"""A station of the radio link, sans IO: its IP queues, its link, and the transmitter that pulls frames.

Two drivers: `testbed/live/station_loop.py` in real time, with octets, and `testbed/model/station_driver.py` in virtual
time.

Rules kept

- With flow control packets wait in the IP queues (one per channel) until the link wants them; without it they go
  straight to the transmitter, which drops packets when it has no room.
- The transmitter pulls: it is offered frames only while it has room for the largest.

Order of calls: `handle_packet` per packet from the LAN that is to cross, then `fill`; `handle_frame` per frame that
arrives, and `handle_deadline` when the link's deadline is due, then `settle`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence, Sized
from typing import Any

from mypy_extensions import mypyc_attr

from linklayer.filters.filter import Guess
from linklayer.filters.filtered import Filtered
from linklayer.link import Link
from linklayer.queues import Queue


@mypyc_attr(allow_interpreted_subclasses=True)
class Transmitter(ABC):
    """Takes frames to send: a hop, or a radio."""

    @abstractmethod
    def has_room(self) -> bool:
        """Whether a frame of the largest size would be taken now."""

    @abstractmethod
    def send(self, frame: Any, now: int) -> bool:
        """Take one frame; False when it was dropped for want of room."""


@mypyc_attr(allow_interpreted_subclasses=True)
class LossObserver(ABC):
    """Learns of every packet that the station loses, and of every guess of its packet filters."""

    @abstractmethod
    def dropped(self, packet: Sized, now: int) -> None:
        """Note a packet lost for want of room in the IP queue or the transmitter."""

    @abstractmethod
    def given_up(self, packet: Sized, now: int) -> None:
        """Note a packet that the link has lost for good."""

    @abstractmethod
    def guessed(self, guess: Guess) -> None:
        """Note a guess."""


class Station:
    """One end of the radio link. `deliver` takes the packets that have crossed it; `queues` are by channel.

    `loss_observer` may be set at any time.
    """

    def __init__(
        self,
        *,
        link: Link,
        queues: Sequence[Queue],
        transmitter: Transmitter,
        deliver: Callable[[Any], object],
        loss_observer: LossObserver | None = None,
    ) -> None:
        self._queues, self._transmitter, self._deliver = queues, transmitter, deliver
        self.loss_observer = loss_observer
        #: frames refused for want of room in the transmitter
        self.refusals = 0
        for queue in queues:
            queue.watch(self._tell_dropped)
        self._take(link)

    @property
    def congestion_losses(self) -> int:
        """Packets that the IP queues, or frames that the transmitter, had no room for."""
        return sum(queue.drops for queue in self._queues) + self.refusals

    def handle_packet(self, packet: Sized, channel: int, now: int) -> None:
        """Take a packet that is to cross the link; it waits for `fill`, or has been sent."""
        if not self.link.flow_control:
            self._pass(packet, channel, now)
        elif not self._queues[channel].push(packet, now):
            self._tell_dropped(packet, now)

    def handle_frame(self, frame: Any, now: int) -> None:
        """Take a frame that has come."""
        self.link.handle_frame(frame, now)

    def settle(self, now: int) -> None:
        """Pass on all that the link has: packets to the LAN, frames to the transmitter."""
        self.deliver(now)
        self.fill(now)

    def deliver(self, now: int) -> None:
        """Deliver the packets that have crossed, and report those that are lost to the observer."""
        link, deliver, loss_observer = self.link, self._deliver, self.loss_observer
        while (delivery := link.poll_packet()) is not None:
            deliver(delivery[0])
        while (packet := link.poll_given_up()) is not None:
            if loss_observer is not None:
                loss_observer.given_up(packet, now)
        self._hear_guesses()

    def fill(self, now: int) -> None:
        """Give the transmitter frames while it has room, and the link packets while it wants them."""
        link, transmitter, queues = self.link, self._transmitter, self._queues
        if not link.flow_control:
            return
        while transmitter.has_room():
            for channel, queue in enumerate(queues):
                if queue.nbytes and link.wants_packet(channel):
                    packet = queue.pop(now)
                    if packet is not None:
                        link.handle_packet(packet, channel)
            frame = link.poll_frame(now)
            if frame is None:
                break
            if not transmitter.send(frame, now):
                self.refusals += 1
        self._hear_guesses()

    def switch(self, link: Link, now: int) -> None:
        """Go on with another link.

        Packets that the old one has under way are lost, unless they are at the far side already; its counters stay with
        it. Packets in the IP queues wait for the new link or, without flow control, go out.
        """
        self.link.end(now)
        self.deliver(now)
        self.refit(link, now)

    def refit(self, link: Link, now: int) -> None:
        """Go on with the same link behind other packet filters; as `switch`, but nothing is lost."""
        self._take(link)
        if not link.flow_control:
            for channel, queue in enumerate(self._queues):
                while (packet := queue.pop(now)) is not None:
                    self._pass(packet, channel, now)

    def _take(self, link: Link) -> None:
        self.link = link
        self._guesser = link if isinstance(link, Filtered) else None

    def _pass(self, packet: Sized, channel: int, now: int) -> None:
        link, send = self.link, self._transmitter.send
        link.handle_packet(packet, channel)
        while (frame := link.poll_frame(now)) is not None:
            if not send(frame, now):
                self.refusals += 1
                # without flow control a frame is one packet
                self._tell_dropped(frame.payload, now)

    def _tell_dropped(self, packet: Sized, now: int) -> None:
        if self.loss_observer is not None:
            self.loss_observer.dropped(packet, now)

    def _hear_guesses(self) -> None:
        if self._guesser is not None:
            while (guess := self._guesser.poll_guess()) is not None:
                if self.loss_observer is not None:
                    self.loss_observer.guessed(guess)
