"""The station's loop on real descriptors: two stations in threads, their ports and radios over socket pairs."""

import gc
import itertools
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from random import Random

import pytest

from linklayer.classify import Classifier
from linklayer.filters.filter import Guess
from linklayer.link import Link, LinkContext, Scheme
from linklayer.queues.drop_tail import DropTail
from linklayer.schemes import SCHEMES
from linklayer.schemes.none import NONE
from linklayer.schemes.slacp import SLACP
from linklayer.station import LossObserver
from tcpip.access import Octets
from testbed.live.station_loop import Radio, StationLoop
from tests.harness.waiting import PATIENCE_S, wait_for

pytestmark = pytest.mark.slow

MS = 1_000_000


def packet(number: int) -> bytes:
    """An IPv4 packet that carries its number."""
    header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 24, number, 0, 64, 6, 0, bytes(4), bytes(4))
    return header + number.to_bytes(4, "big")


#: by the order that switches to them
_SCHEMES = {scheme.name[:1].encode(): scheme for scheme in (NONE, SLACP)}


class Port:
    """The IP interface: the test writes and reads at `kernel`."""

    def __init__(self) -> None:
        self.kernel, self._socket = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setblocking(False)
        self.kernel.settimeout(PATIENCE_S)
        self.refusing = False

    def fileno(self) -> int:
        return self._socket.fileno()

    def read(self) -> bytes | None:
        try:
            return self._socket.recv(2048)
        except BlockingIOError:
            return None

    def write(self, packet: bytes) -> bool:
        # A bare link takes a frame of SLACP's that was under way for a packet; a TAP does not.
        if self.refusing or packet[0] >> 4 not in (4, 6):
            return False
        self._socket.send(packet)
        return True

    def close(self) -> None:
        self.kernel.close()
        self._socket.close()


class Air(Radio):
    """A radio: one end of a socket pair. `room` says whether it takes frames; `hurt` changes those that leave.

    The pair takes some hundred frames. A station that a busy machine keeps from reading lets it fill, so the air has
    room only while the pair has, and looks again a millisecond later.
    """

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        end.setblocking(False)
        self.room = True
        self._writable = select.poll()
        self._writable.register(end, select.POLLOUT)
        self._full_until: int | None = None
        self.hurt: Callable[[bytes], bytes] = lambda frame: frame
        self.received = 0
        self.alarm: int | None = None
        self.alarms: list[int] = []

    def fileno(self) -> int:
        return self._socket.fileno()

    def has_room(self) -> bool:
        if not self._writable.poll(0):
            self._full_until = time.monotonic_ns() + MS
            return False
        return self.room

    def send(self, frame: bytes, now: int) -> bool:
        if not self.has_room():
            return False
        self._socket.send(self.hurt(frame))
        return True

    def receive(self) -> bytes | None:
        try:
            frame = self._socket.recv(2048)
        except BlockingIOError:
            return None
        self.received += 1
        return frame

    def next_deadline(self) -> int | None:
        return min((at for at in (self.alarm, self._full_until) if at is not None), default=None)

    def handle_deadline(self, now: int) -> None:
        if self._full_until is not None and now >= self._full_until:
            self._full_until = None
        if self.alarm is not None and now >= self.alarm:
            self.alarms.append(now - self.alarm)
            self.alarm = None

    def close(self) -> None:
        self._socket.close()


class Counting(StationLoop):
    """A station that counts its turns and the deadlines it was given."""

    turns = 0

    def turn(self, now: int, *, frames: bool = True, packets: bool = True) -> None:
        self.turns += 1
        super().turn(now, frames=frames, packets=packets)


def context(rng: Random) -> LinkContext:
    """An end of a link whose frames take a millisecond."""
    return LinkContext(end="mobile", access=Octets(), sized=False, rng=rng, now=time.monotonic_ns(), frame_ms=1.0)


class Bench:
    """One station with everything around it."""

    def __init__(self, scheme: Scheme, end: socket.socket, seed: int, limit: int = 100_000) -> None:
        self.port, self.radio = Port(), Air(end)
        self.rng = Random(seed)
        self.link: Link = scheme.make(scheme.options(), context(self.rng))
        self.queues = [DropTail(limit), DropTail(limit)]
        self.reports: list[int] = []
        self.wake, self._control = socket.socketpair()
        self.loop = Counting(
            port=self.port,
            link=self.link,
            scheme=scheme,
            radio=self.radio,
            queues=self.queues,
            classifier=Classifier(),
            report=self.reports.append,
            report_interval_ns=100 * MS,
            control=self.handle_control,
            control_fds=[self._control.fileno()],
        )
        self.failure: BaseException | None = None
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        try:
            self.loop.run()
        except BaseException as error:
            self.failure = error

    def handle_control(self, fd: int) -> None:
        assert fd == self._control.fileno()
        order = self._control.recv(1)
        if order == b"q":
            self.loop.stop()
        elif order in _SCHEMES:
            scheme = _SCHEMES[order]
            self.link = scheme.make(scheme.options(), context(self.rng))
            self.loop.switch(self.link, scheme, time.monotonic_ns())

    def stop(self) -> None:
        if self.thread.is_alive():
            self.wake.send(b"q")
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()

    def close(self) -> None:
        for thing in (self.port, self.radio, self.wake, self._control):
            thing.close()
        assert self.failure is None


@contextmanager
def stations(scheme: Scheme, **options: int) -> Iterator[tuple[Bench, Bench]]:
    """Two stations whose links are up."""
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    benches = Bench(scheme, ends[0], 1, **options), Bench(scheme, ends[1], 2, **options)
    for bench in benches:
        bench.thread.start()
    try:
        wait_for(lambda: all(bench.link.established for bench in benches))
        yield benches
    finally:
        for bench in benches:
            bench.stop()
        for bench in benches:
            bench.close()


def nudge(bench: Bench) -> None:
    """Wake the loop, which cannot know that the test has changed its radio."""
    bench.wake.send(b".")


@pytest.mark.parametrize("name", sorted(SCHEMES))
def test_packets_cross_both_ways(name: str) -> None:
    with stations(SCHEMES[name]) as (a, b):
        # the sockets in the air's place take some hundred frames, and a scheme may cut a packet into ten
        for number in range(20):
            a.port.kernel.send(packet(number))
            b.port.kernel.send(packet(1000 + number))
        assert [b.port.kernel.recv(2048) for _ in range(20)] == [packet(number) for number in range(20)]
        assert [a.port.kernel.recv(2048) for _ in range(20)] == [packet(1000 + number) for number in range(20)]
        assert a.link.counters().packets == b.link.counters().delivered == 20


def test_the_scheme_is_switched_while_packets_flow() -> None:
    with stations(SLACP) as benches:
        a, b = benches
        numbers = iter(range(1000))

        def crosses() -> None:
            for wanted in map(packet, itertools.islice(numbers, 20)):
                a.port.kernel.send(wanted)
                assert b.port.kernel.recv(2048) == wanted

        def switched(flow_control: bool) -> bool:
            return all(bench.link.established and bench.link.flow_control is flow_control for bench in benches)

        crosses()
        for order in (b"n", b"s", b"n"):
            for bench in benches:
                bench.wake.send(order)
            wait_for(partial(switched, order == b"s"))
            crosses()


def test_packets_that_wait_when_flow_control_ends_go_out() -> None:
    with stations(SLACP) as (a, b):
        a.radio.room = False
        for number in range(10):
            a.port.kernel.send(packet(number))
        wait_for(lambda: len(a.queues[0]) == 10)
        b.wake.send(b"n")
        wait_for(lambda: not b.link.flow_control)
        a.radio.room = True
        a.wake.send(b"n")
        assert [b.port.kernel.recv(2048) for _ in range(10)] == [packet(number) for number in range(10)]


class RecordingObserver(LossObserver):
    """Keeps every lost packet."""

    def __init__(self) -> None:
        self.lost: list[object] = []
        self.gone: list[object] = []

    def dropped(self, packet: object, now: int) -> None:
        self.lost.append(packet)

    def given_up(self, packet: object, now: int) -> None:
        self.gone.append(packet)

    def guessed(self, guess: Guess) -> None: ...


@pytest.mark.parametrize("scheme", [NONE, SLACP], ids=lambda scheme: scheme.name)
def test_packets_without_room_are_dropped_by_the_queue_or_by_the_radio_and_reported(scheme: Scheme) -> None:
    with stations(scheme, limit=24 * 30) as (a, b):
        a.loop.station.loss_observer = seen = RecordingObserver()
        a.radio.room = False
        for number in range(50):
            a.port.kernel.send(packet(number))
        # with flow control as many wait as the IP queue holds
        waiting = 30 if a.link.flow_control else 0
        wait_for(lambda: a.loop.station.congestion_losses + len(a.queues[0]) == 50)
        assert seen.lost == [packet(number) for number in range(waiting, 50)]
        assert (len(a.queues[0]), a.loop.station.refusals) == (waiting, 0 if waiting else 50)
        a.loop.station.loss_observer = None
        a.port.kernel.send(packet(50))
        wait_for(lambda: a.loop.station.congestion_losses == 51 - waiting)
        assert len(seen.lost) == 50 - waiting
        a.radio.room = True
        nudge(a)
        assert [b.port.kernel.recv(2048) for _ in range(waiting)] == [packet(number) for number in range(waiting)]
        a.port.kernel.send(packet(51))
        assert b.port.kernel.recv(2048) == packet(51)
        assert len(a.queues[0]) == 0


def test_loss_observer_gets_packets_given_up_with_the_session() -> None:
    with stations(SLACP) as (a, _):
        a.loop.station.loss_observer = seen = RecordingObserver()
        a.radio.hurt = lambda frame: bytes(len(frame))
        a.port.kernel.send(packet(1))
        wait_for(lambda: a.link.counters().packets == 1)
        a.wake.send(b"n")
        wait_for(lambda: seen.gone)
        assert seen.gone == [packet(1)]


def test_a_packet_the_kernel_refuses_is_counted() -> None:
    with stations(NONE) as (a, b):
        b.port.refusing = True
        a.port.kernel.send(packet(1))
        wait_for(lambda: b.loop.port_refusals == 1)


def test_the_radios_deadline_is_kept() -> None:
    with stations(NONE) as (a, _):

        def late_ns() -> int:
            done = len(a.radio.alarms)
            a.radio.alarm = time.monotonic_ns() + 20 * MS
            nudge(a)
            wait_for(lambda: len(a.radio.alarms) > done)
            return a.radio.alarms[-1]

        # a busy machine is late now and then, a loop that adds to it always
        wait_for(lambda: late_ns() < 10 * MS)
        assert min(a.radio.alarms) >= 0


@pytest.mark.parametrize("name", sorted(SCHEMES))
def test_an_idle_loop_sleeps_between_its_deadlines(name: str) -> None:
    began = time.monotonic_ns()
    with stations(SCHEMES[name]) as (a, _):
        received, turns, reports = a.radio.received, a.loop.turns, len(a.reports)
        start = time.monotonic_ns()
        wait_for(lambda: len(a.reports) - reports >= 5)
        # before its causes: frames may come meanwhile
        turned = a.loop.turns - turns
        # ACK timers of 50, 100, 200, ... ms, reports, and one turn for each frame of the peer's
        seconds = (time.monotonic_ns() - start) / 1e9
        timers = 6 + 2 * seconds
        caused = (a.radio.received - received) + (len(a.reports) - reports) + timers
        assert turned <= caused + 3
        # the n-th is due n intervals after the loop's start, however late those before it came
        assert len(a.reports) <= 10 * (time.monotonic_ns() - began) / 1e9


def test_stopping_ends_the_loop_and_returns_its_descriptors() -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    with stations(NONE):
        pass
    # what earlier tests have left to the collector would be closed meanwhile
    gc.collect()
    before = descriptors()
    for _ in range(3):
        with stations(SLACP):
            pass
    assert descriptors() == before
