"""The real-time loop of a station: IP interface, station and radio, driven by the wall clock.

Read first: `linklayer/station.py`, the machine that this drives.

Rules: one thread, one epoll, no polling sleeps: the loop wakes only for a packet, a frame, a message or a deadline, and
reads only what is readable then.
"""

import select
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, Protocol

from linklayer.classify import Classifier
from linklayer.link import FrameError, Link, Scheme
from linklayer.queues import Queue
from linklayer.station import Station, Transmitter
from testbed.live.timerfd import TimerFd

#: most packets, and most frames, taken in one turn: bounds the delay that one kind of input causes the other
BATCH = 32


class PacketPort(Protocol):
    """The IP interface: a TAP."""

    def fileno(self) -> int:
        """Return the descriptor to wait on."""

    def read(self) -> bytes | None:
        """Return the next packet from the kernel, or None."""

    def write(self, packet: bytes) -> bool:
        """Give a packet to the kernel; False when the kernel refused it."""


class Radio(Protocol):
    """Carries frames: an emulated hop, a virtual USRP, or a real one."""

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
        """Handle everything that is due."""


class _Octets(Transmitter):
    """The radio as a transmitter: encodes frames as octets, as the scheme says."""

    def __init__(self, radio: Radio, scheme: Scheme) -> None:
        self._radio, self.emit = radio, scheme.emit

    def has_room(self) -> bool:
        return self._radio.has_room()

    def send(self, frame: Any, now: int) -> bool:
        return self._radio.send(self.emit(frame), now)


class StationLoop:
    """One end of the radio link, which runs until `stop` is called.

    `queues` are the IP queues by channel. `report(now)` is called every `report_interval_ns`. `control(fd)` is called
    when one of `control_fds` is readable. Times are CLOCK_MONOTONIC nanoseconds.
    """

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
        #: frames received that do not parse
        self.bad_frames = 0
        #: packets that the kernel refused
        self.port_refusals = 0
        self._port = port
        self._parse = scheme.parse
        self._radio = radio
        self._octets = _Octets(radio, scheme)
        self.station = Station(link=link, queues=queues, transmitter=self._octets, deliver=self._write)
        self._classifier = classifier
        self._report = report
        self._report_interval_ns = report_interval_ns
        self._control = control
        self._control_fds = control_fds
        self._stopped = False

    def stop(self) -> None:
        """End `run` after the present turn."""
        self._stopped = True

    def switch(self, link: Link, scheme: Scheme, now: int) -> None:
        """Switch to another link, of another scheme, between turns (as `control` is called). See `Station.switch`.

        The new link ignores frames of the old scheme that still arrive.
        """
        self._parse = scheme.parse
        # before `Station.switch`, in which the new link may send
        self._octets.emit = scheme.emit
        self.station.switch(link, now)

    def run(self) -> None:
        """Drive the station until stopped."""
        report_at = time.monotonic_ns() + self._report_interval_ns
        with closing(TimerFd()) as timer, select.epoll() as epoll:
            epoll.register(timer.fileno(), select.EPOLLIN | select.EPOLLET)
            epoll.register(self._port.fileno(), select.EPOLLIN)
            epoll.register(self._radio.fileno(), select.EPOLLIN)
            for fd in self._control_fds:
                epoll.register(fd, select.EPOLLIN)
            port_fd, radio_fd = self._port.fileno(), self._radio.fileno()
            readable = {port_fd, radio_fd}
            while not self._stopped:
                now = time.monotonic_ns()
                self.turn(now, frames=radio_fd in readable, packets=port_fd in readable)
                if now >= report_at:
                    self._report(now)
                    report_at = max(report_at + self._report_interval_ns, now)
                deadlines = (report_at, self.station.link.next_deadline(), self._radio.next_deadline())
                timer.set(min(at for at in deadlines if at is not None))
                readable = {fd for fd, _ in epoll.poll()}
                for fd in readable.intersection(self._control_fds):
                    self._control(fd)

    def turn(self, now: int, *, frames: bool = True, packets: bool = True) -> None:
        """Take received frames and packets where there may be some, handle due deadlines, and fill the radio."""
        station = self.station
        self._radio.handle_deadline(now)
        if frames:
            self._take_frames(now)
        station.link.handle_deadline(now)
        station.deliver(now)
        if packets:
            self._take_packets(now)
        station.fill(now)

    def _take_frames(self, now: int) -> None:
        receive, handle_frame = self._radio.receive, self.station.handle_frame
        for _ in range(BATCH):
            octets = receive()
            if octets is None:
                break
            try:
                frame = self._parse(octets)
            except FrameError:
                self.bad_frames += 1
                continue
            handle_frame(frame, now)

    def _take_packets(self, now: int) -> None:
        read, channel_of, handle_packet = self._port.read, self._classifier.channel, self.station.handle_packet
        for _ in range(BATCH):
            packet = read()
            if packet is None:
                break
            handle_packet(packet, channel_of(packet), now)

    def _write(self, packet: bytes) -> None:
        if not self._port.write(packet):
            self.port_refusals += 1
