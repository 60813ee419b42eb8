"""The real-time loop of a station: IP interface, link and radio, driven by the wall clock.

Rules: one thread, one epoll, no polling sleeps: it wakes when a packet or a frame has come or when a deadline is due,
and never otherwise. With flow control packets wait in the IP queues (one per channel) until the link wants them;
without it they go straight to the radio, which drops what it has no room for. The radio pulls: it is offered frames
only while it has room.

This is the only file of `linklayer` that reads a clock (with `timerfd.py`); the cores get `now` from here.
"""

import select
import time
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from typing import Protocol

from linklayer.classify import Classifier
from linklayer.filters.filter import Guess
from linklayer.filters.filtered import Filtered
from linklayer.link import FrameError, Link, Scheme
from linklayer.queues import Queue
from linklayer.timerfd import TimerFd

#: packets and frames taken in one turn: bounds the time the other side of the loop waits
BATCH = 32


class PacketPort(Protocol):
    """The IP interface: a TAP."""

    def fileno(self) -> int:
        """Return the descriptor to wait on."""

    def read(self) -> bytes | None:
        """Return the next packet from the kernel, or None."""

    def write(self, packet: bytes) -> bool:
        """Give a packet to the kernel; False when it was refused."""


class Radio(Protocol):
    """What carries frames: an emulated hop, a virtual USRP, a real one."""

    def fileno(self) -> int:
        """Return the descriptor to wait on for received frames."""

    def has_room(self) -> bool:
        """Whether a frame of the largest size would be taken now."""

    def send(self, frame: bytes, now: int) -> bool:
        """Take one frame to transmit; False when it was dropped for want of room."""

    def receive(self) -> bytes | None:
        """Return the next received frame, or None."""

    def next_deadline(self) -> int | None:
        """When `handle_deadline` is due, or None."""

    def handle_deadline(self, now: int) -> None:
        """Do what is due."""


class LossWitness(Protocol):
    """Is told of every packet this station loses, and of what its packet filters believe."""

    def dropped(self, packet: Sized, now: int) -> None:
        """See a packet that the IP queue or the radio had no room for."""

    def given_up(self, packet: Sized, now: int) -> None:
        """See a packet that the link has lost for good."""

    def guessed(self, guess: Guess) -> None:
        """Hear a guess."""


@dataclass(slots=True)
class StationCounters:
    """What the station itself has counted."""

    #: frames handed to the radio, and their bytes
    frames: int = 0
    frame_bytes: int = 0
    #: frames the radio had no room for
    radio_refusals: int = 0
    #: frames that came damaged beyond use
    bad_frames: int = 0
    #: packets the kernel would not take
    port_refusals: int = 0


class Station:
    """One end of the radio link, running until `stop` is called or `control` says so.

    `queues` are the IP queues by channel. `report(now)` is called every `report_interval_ns`. `control(fd)` is called
    when one of `control_fds` is readable. `witness` may be set at any time. Times are CLOCK_MONOTONIC nanoseconds.
    """

    witness: LossWitness | None = None

    def __init__(
        self,
        *,
        port: PacketPort,
        link: Link,
        scheme: Scheme,
        radio: Radio,
        queues: Sequence[Queue],
        classifier: Classifier,
        report: Callable[[int], None],
        report_interval_ns: int,
        control: Callable[[int], None],
        control_fds: Sequence[int] = (),
    ) -> None:
        self._port = port
        self._link = link
        self._emit, self._parse = scheme.emit, scheme.parse
        self._radio = radio
        self._queues = queues
        for queue in queues:
            queue.watch(self._tell_dropped)
        self._classifier = classifier
        self._report = report
        self._report_interval_ns = report_interval_ns
        self._control = control
        self._control_fds = control_fds
        self._stopped = False
        self.counters = StationCounters()

    def stop(self) -> None:
        """End `run` after the present turn."""
        self._stopped = True

    def switch(self, link: Link, scheme: Scheme, now: int) -> None:
        """Go on with another link, of another scheme; to be called between turns (`control` is).

        What the old link has under way is lost, unless it is at the far side already; its counters stay with it.
        Frames of the old scheme that still come are nothing to the new one. Packets in the IP queues wait for the new
        link or, without flow control, go out.
        """
        self._link.end(now)
        self._deliver(now)
        self._emit, self._parse = scheme.emit, scheme.parse
        self.refit(link, now)

    def refit(self, link: Link, now: int) -> None:
        """Go on with the same link behind other packet filters; as `switch`, but nothing is lost."""
        self._link = link
        if not link.flow_control:
            for channel, queue in enumerate(self._queues):
                while (packet := queue.pop(now)) is not None:
                    self._pass(packet, channel, now)

    def run(self) -> None:
        """Drive the link until stopped."""
        timer = TimerFd()
        report_at = time.monotonic_ns() + self._report_interval_ns
        with select.epoll() as epoll:
            epoll.register(timer.fileno(), select.EPOLLIN | select.EPOLLET)
            epoll.register(self._port.fileno(), select.EPOLLIN)
            epoll.register(self._radio.fileno(), select.EPOLLIN)
            for fd in self._control_fds:
                epoll.register(fd, select.EPOLLIN)
            try:
                while not self._stopped:
                    now = time.monotonic_ns()
                    self._turn(now)
                    if now >= report_at:
                        self._report(now)
                        report_at = max(report_at + self._report_interval_ns, now)
                    timer.set(_earliest(report_at, self._link.next_deadline(), self._radio.next_deadline()))
                    for fd, _ in epoll.poll():
                        if fd in self._control_fds:
                            self._control(fd)
            finally:
                timer.close()

    def _turn(self, now: int) -> None:
        """Take what has come, let what is due happen, send what there is room for."""
        radio, link = self._radio, self._link
        radio.handle_deadline(now)
        for _ in range(BATCH):
            octets = radio.receive()
            if octets is None:
                break
            try:
                frame = self._parse(octets)
            except FrameError:
                self.counters.bad_frames += 1
                continue
            link.handle_frame(frame, now)
        link.handle_deadline(now)
        self._deliver(now)
        if link.flow_control:
            self._queue_packets(now)
            self._fill_radio(now)
        else:
            self._pass_packets(now)

    def _deliver(self, now: int) -> None:
        """Give the kernel what the link has for it, and the witness what it has lost."""
        link, witness = self._link, self.witness
        while (delivery := link.poll_packet()) is not None:
            if not self._port.write(delivery[0]):  # type: ignore[arg-type]
                self.counters.port_refusals += 1
        while (packet := link.poll_given_up()) is not None:
            if witness is not None:
                witness.given_up(packet, now)
        self._hear_guesses()

    def _hear_guesses(self) -> None:
        if isinstance(self._link, Filtered):
            while (guess := self._link.poll_guess()) is not None:
                if self.witness is not None:
                    self.witness.guessed(guess)

    def _queue_packets(self, now: int) -> None:
        read, channel_of, queues = self._port.read, self._classifier.channel, self._queues
        for _ in range(BATCH):
            packet = read()
            if packet is None:
                break
            if not queues[channel_of(packet)].push(packet, now):
                self._tell_dropped(packet, now)

    def _fill_radio(self, now: int) -> None:
        link, radio, queues = self._link, self._radio, self._queues
        while radio.has_room():
            for channel, queue in enumerate(queues):
                if queue.nbytes and link.wants_packet(channel) and (packet := queue.pop(now)) is not None:
                    link.handle_packet(packet, channel)
            frame = link.poll_frame(now)
            if frame is None:
                break
            self._transmit(self._emit(frame), now)
        self._hear_guesses()

    def _pass_packets(self, now: int) -> None:
        read, channel_of = self._port.read, self._classifier.channel
        for _ in range(BATCH):
            packet = read()
            if packet is None:
                break
            self._pass(packet, channel_of(packet), now)

    def _pass(self, packet: Sized, channel: int, now: int) -> None:
        self._link.handle_packet(packet, channel)
        while (frame := self._link.poll_frame(now)) is not None:
            if not self._transmit(self._emit(frame), now):
                # without flow control a frame is one packet
                self._tell_dropped(packet, now)

    def _tell_dropped(self, packet: Sized, now: int) -> None:
        if self.witness is not None:
            self.witness.dropped(packet, now)

    def _transmit(self, octets: bytes, now: int) -> bool:
        if self._radio.send(octets, now):
            self.counters.frames += 1
            self.counters.frame_bytes += len(octets)
            return True
        self.counters.radio_refusals += 1
        return False


def _earliest(*times: int | None) -> int:
    return min(at for at in times if at is not None)
