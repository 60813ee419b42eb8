"""Two connections joined by a path, in virtual time: no clock, no sleep.

`Pair.run_until` jumps from wakeup to wakeup. Each direction is a `Path`: a hop (rate, delay, drop-tail buffer) behind a
rule that says what is lost, or a `Chaos` that loses, repeats and reorders by chance.
"""

import heapq
from collections.abc import Callable
from itertools import count
from random import Random

from channel.capacity.cra import ConstantRate
from channel.delay import ExcessDelay
from channel.errors.none import NoErrors
from channel.framing import raw
from channel.hop import Hop
from common.units import MS, SECOND
from hosts.tcp.config import TcpConfig
from hosts.tcp.connection import Connection
from tcpip.segment import Flow, Segment

FLOW = Flow(0x0A000001, 40_000, 0x0A000002, 80)

#: says whether a segment is lost; it sees every segment sent, in order
Drop = Callable[[Segment], bool]


def lose(*numbers: int) -> Drop:
    """Lose segments with data, counted from 1 in the order they are sent."""
    count = 0

    def drop(segment: Segment) -> bool:
        nonlocal count
        count += segment.length > 0
        return segment.length > 0 and count in numbers

    return drop


class Path:
    """A link of `rate_bps` and `delay_ns` with a buffer of `buffer_bytes`, which never sees what `drop` picks."""

    def __init__(
        self,
        *,
        rate_bps: int = 10_000_000,
        delay_ns: int = 50 * MS,
        buffer_bytes: int = 1 << 20,
        drop: Drop = lambda segment: False,
        excess_delay: ExcessDelay | None = None,
    ) -> None:
        self.drop = drop
        self.hop: Hop[Segment] = Hop(
            capacity=ConstantRate(rate_bps),
            framing=raw,
            errors=NoErrors(),
            propagation_ns=delay_ns,
            buffer_bytes=buffer_bytes,
            excess_delay=excess_delay,
        )
        #: when each segment was sent: those that `drop` picked, too
        self.log: list[tuple[int, Segment]] = []

    def send(self, segment: Segment, now: int) -> None:
        self.log.append((now, segment))
        if not self.drop(segment):
            self.hop.handle_frame(segment, len(segment), now)

    def receive(self, now: int) -> Segment | None:
        arrival = self.hop.poll_arrival(now)
        return None if arrival is None else arrival.frame

    def next_deadline(self) -> int | None:
        return self.hop.next_deadline()


class Chaos:
    """A way on which each segment is lost, comes twice or takes up to `jitter_ns` longer, by chance."""

    def __init__(self, rng: Random, *, loss: float, repeat: float, jitter_ns: int) -> None:
        self.rng, self.loss, self.repeat, self.jitter_ns = rng, loss, repeat, jitter_ns
        self.flying: list[tuple[int, int, Segment]] = []
        self.tie = count()
        self.log: list[tuple[int, Segment]] = []

    def send(self, segment: Segment, now: int) -> None:
        self.log.append((now, segment))
        if self.rng.random() < self.loss:
            return
        for _ in range(2 if self.rng.random() < self.repeat else 1):
            at = now + 20 * MS + self.rng.randint(0, self.jitter_ns)
            heapq.heappush(self.flying, (at, next(self.tie), segment))

    def receive(self, now: int) -> Segment | None:
        return heapq.heappop(self.flying)[2] if self.flying and self.flying[0][0] <= now else None

    def next_deadline(self) -> int | None:
        return self.flying[0][0] if self.flying else None


#: one way between two hosts
Direction = Path | Chaos


class Pair:
    """`client`, which connects and closes when told, and `server`, which listens; `up` leads from client to server.

    What comes is read at once, counted in `received` (by size) and kept in `octets` (where segments carry any). The
    server writes once it is connected, and closes when it has read everything.
    """

    def __init__(
        self,
        config: TcpConfig,
        *,
        server_config: TcpConfig | None = None,
        up: Direction | None = None,
        down: Direction | None = None,
        iss: tuple[int, int] = (1000, 5000),
        octets: bool = False,
    ) -> None:
        self.now = 0
        self.client = Connection(config, FLOW, iss[0])
        self.server = Connection(server_config or config, FLOW.reversed(), iss[1])
        self.ends = (self.client, self.server)
        self.ways: tuple[Direction, Direction] = (up or Path(), down or Path())
        self.backlog: list[bytes | int] = [b"" if octets else 0, b"" if octets else 0]
        self.closing = [False, False]
        self.keep_octets = octets
        self.octets = [bytearray(), bytearray()]
        self.received = [0, 0]
        #: called after everything due at an instant was done
        self.watch: Callable[[], None] = lambda: None
        #: called for each segment as it is sent, with the number of the end that sends it
        self.sent: Callable[[int, Segment], None] = lambda number, segment: None
        self.server.listen()
        self.client.connect(0)

    def send(self, end: int, data: bytes | int) -> None:
        """Have an end (0: client) write all of this as room comes, and close behind it."""
        self.backlog[end] = data
        self.closing[end] = True

    def run_until(self, done: Callable[[], bool], limit_ns: int = 3600 * SECOND) -> "Pair":
        """Step until `done()`; fail after `limit_ns` of virtual time, or when nothing is left to happen."""
        end = self.now + limit_ns
        self._serve()
        while not done():
            times = [at for what in (*self.ends, *self.ways) if (at := what.next_deadline()) is not None]
            assert times, f"nothing is left to happen at {self.now / SECOND:.3f} s"
            self.now = max(self.now, min(times))
            assert self.now < end, f"nothing came of it in {limit_ns / SECOND:.0f} s of virtual time"
            self._step()
        return self

    def run(self) -> "Pair":
        """Run until both sides have sent and received everything and closed, TIME-WAIT apart."""
        return self.run_until(lambda: self.finished)

    @property
    def finished(self) -> bool:
        return all(
            end.closed or (end.at_end and end.drained and closing and not backlog)
            for end, closing, backlog in zip(self.ends, self.closing, self.backlog, strict=True)
        )

    def _step(self) -> None:
        for way, target in ((self.ways[0], self.server), (self.ways[1], self.client)):
            while (segment := way.receive(self.now)) is not None:
                target.handle_segment(segment, self.now)
                self._serve()
        for end in self.ends:
            end.handle_deadline(self.now)
        self._serve()
        for end in self.ends:
            at = end.next_deadline()
            assert at is None or at > self.now, "a deadline that does not go away would spin"
        self.watch()

    def _serve(self) -> None:
        """Let the applications read, write and close, and send what there is to send."""
        for number, end in enumerate(self.ends):
            if not (number == 0 or end.connected):
                continue
            if end.readable:
                if self.keep_octets:
                    self.octets[number] += end.read(end.readable)
                    self.received[number] = len(self.octets[number])
                else:
                    self.received[number] += end.discard()
            data = self.backlog[number]
            if data and end.error is None and end.write_room:
                if isinstance(data, int):
                    self.backlog[number] = data - end.write(min(data, end.write_room))
                else:
                    self.backlog[number] = data[end.write(data[: end.write_room]) :]
            if self.closing[number] and not self.backlog[number] and end.connected:
                end.close(self.now)
            if number == 1 and end.at_end and not self.backlog[1]:
                end.close(self.now)
                self.closing[1] = True
        for number, (end, way) in enumerate(zip(self.ends, self.ways, strict=True)):
            while (segment := end.poll_segment(self.now)) is not None:
                self.sent(number, segment)
                way.send(segment, self.now)
