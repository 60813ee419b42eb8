"""What uses the hosts of virtual time: the ends of TCP transfers and of UDP flows.

Read first: `hosts/tcp_flows.py` and `hosts/udp_flows.py`: the same ends, with the same results, on the live tiers.

Rules kept here

- A transfer lasts from the first SYN until the sender has seen the receiver's FIN, which the receiver sends once it
  has read everything.
- Octets are counted, not made: a result has no hash.
- Times in results are ns since `epoch`.
"""

from collections.abc import Callable
from math import ceil
from random import Random
from typing import Any

from hosts.tcp.config import TcpConfig
from hosts.workloads import UDP_HEADERS, OnOffUdp
from tcpip.segment import Flow
from testbed.model.host import Host, Socket, Tap
from testbed.model.packets import Datagram

#: as the agents of the live tiers report it (docs/hosts.md)
Result = dict[str, Any]
Done = Callable[[Result], None]


def _nobody(result: Result) -> None:
    """Take a result for which nobody waits."""


class StreamSender:
    """One connection's sending end: writes `limit` octets (None: without end) until `end_at`, closes, and waits.

    `drain_ns` after `end_at` what is left is thrown away. `done` gets the result, once.
    """

    def __init__(
        self,
        host: Host,
        address: int,
        port: int,
        config: TcpConfig,
        *,
        limit: int | None = None,
        end_at: int | None = None,
        drain_ns: int | None = None,
        epoch: int = 0,
        tap: Tap | None = None,
        done: Done = _nobody,
    ) -> None:
        self._clock = host.clock
        self._limit, self._drain_ns, self._epoch, self._done = limit, drain_ns, epoch, done
        self._writing = True
        self._started_ns = host.clock.now - epoch
        self._connected_ns: int | None = None
        #: octets given to the connection
        self.written = 0
        #: whether `done` has been called
        self.ended = False
        if end_at is not None:
            host.clock.at(end_at, self._stop_writing)
        self._socket = host.connect(config, address, port, self, tap)
        self.connection = self._socket.connection

    @property
    def connected(self) -> bool:
        """Whether the connection has been open."""
        return self._connected_ns is not None

    def handle(self, now: int) -> None:
        """See Application."""
        if self.ended:
            return
        connection = self.connection
        if connection.error is not None:
            self._finish(connection.error)
        elif self._writing:
            if self._connected_ns is None:
                if not connection.connected:
                    return
                self._connected_ns = now - self._epoch
            self._write(now)
        elif connection.at_end:
            self._finish(None)

    def abort(self, reason: str) -> None:
        """End now with a RST; ignored when it has ended."""
        if not self.ended:
            self._finish(reason)
            self._socket.abort()

    def _write(self, now: int) -> None:
        room = self.connection.write_room
        if self._limit is not None:
            room = min(room, self._limit - self.written)
        if room > 0:
            self.written += self.connection.write(room)
        if self.written == self._limit:
            self._writing = False
            self.connection.close(now)

    def _stop_writing(self, _: object) -> None:
        """The flow's time is over."""
        if self.ended or not self._writing:
            return
        if self._connected_ns is None:
            self.abort("not connected within the duration")
            return
        now = self._clock.now
        self._writing = False
        self.connection.close(now)
        self._socket.pump()
        if self._drain_ns is not None:
            self._clock.at(now + self._drain_ns, self.abort, "not drained in time")

    def _finish(self, error: str | None) -> None:
        self.ended = True
        connection = self.connection
        self._done(
            {
                "bytes": self.written,
                "started_ns": self._started_ns,
                "connected_ns": self._connected_ns,
                "finished_ns": self._clock.now - self._epoch,
                "bytes_acked": connection.bytes_acked,
                "bytes_sent": connection.counters.bytes_sent,
                "retransmits": connection.counters.retransmits,
                "timeouts": connection.counters.timeouts,
                "complete": error is None,
                "error": error,
            }
        )


class Counter:
    """Payload octets received under one flow name, over all of its connections."""

    __slots__ = ("_see", "nbytes")

    def __init__(self, see: Callable[[int, int], None] | None = None) -> None:
        self.nbytes = 0
        #: called with the octets until now and the time, whenever some have come
        self._see = see

    def add(self, nbytes: int, now: int) -> None:
        """Count octets that have come."""
        self.nbytes += nbytes
        if self._see is not None:
            self._see(self.nbytes, now)


class StreamReceiver:
    """One accepted connection's receiving end: reads at once and closes when the sender has; `done` gets its result."""

    def __init__(self, host: Host, socket: Socket, counter: Counter, *, epoch: int = 0, done: Done = _nobody) -> None:
        self._clock, self._socket, self._counter = host.clock, socket, counter
        self._epoch, self._done = epoch, done
        self._connection = socket.connection
        self._accepted_ns = host.clock.now - epoch
        self._first_ns: int | None = None
        self._last_ns: int | None = None
        self.nbytes = 0
        #: whether `done` has been called
        self.ended = False

    def handle(self, now: int) -> None:
        """See Application."""
        if self.ended:
            return
        connection = self._connection
        nbytes = connection.discard()
        if nbytes:
            self.nbytes += nbytes
            self._last_ns = now - self._epoch
            if self._first_ns is None:
                self._first_ns = self._last_ns
            self._counter.add(nbytes, now)
        if connection.at_end:
            connection.close(now)
            self._finish(None)
        elif connection.error is not None:
            self._finish(connection.error)

    def abort(self, reason: str) -> None:
        """End now with a RST; ignored when it has ended."""
        if not self.ended:
            self._finish(reason)
            self._socket.abort()

    def _finish(self, error: str | None) -> None:
        self.ended = True
        self._done(
            {
                **never_connected(),
                "bytes": self.nbytes,
                "accepted_ns": self._accepted_ns,
                "first_byte_ns": self._first_ns,
                "last_byte_ns": self._last_ns,
                "finished_ns": self._clock.now - self._epoch,
                "complete": error is None,
                "error": error,
            }
        )


def never_connected() -> Result:
    """Return the result of a receiving end to which no connection has come."""
    return {
        "bytes": 0,
        "accepted_ns": None,
        "first_byte_ns": None,
        "last_byte_ns": None,
        "finished_ns": None,
        "complete": False,
        "error": "never connected",
    }


class UdpSender:
    """Sends on/off UDP until `end_at`; `done` gets its result, once. `rng` draws the lengths of the periods."""

    def __init__(
        self,
        host: Host,
        address: int,
        work: OnOffUdp,
        rng: Random,
        end_at: int,
        *,
        epoch: int = 0,
        done: Done = _nobody,
    ) -> None:
        self._clock, self._send = host.clock, host.send
        self._flow = Flow(host.address, work.port, address, work.port)
        self._work, self._rng, self._end_at, self._epoch, self._done = work, rng, end_at, epoch, done
        self._gap_ns = work.packet_bytes * 8e9 / work.rate_bps
        self._sent = 0
        #: whether `done` has been called
        self.ended = False
        # counted from the start: so that a gap is added with the same precision at any time
        self._started_at = host.clock.now
        self._next_ns = 0.0
        self._on_until_ns = self._period_ns(work.on_ms)
        self._send_due(None)

    def abort(self, reason: str) -> None:
        """End now; ignored when it has ended."""
        if not self.ended:
            self._finish(reason)

    def _period_ns(self, mean_ms: float) -> float:
        return self._rng.expovariate(1 / mean_ms) * 1e6

    def _send_due(self, _: object) -> None:
        """Send what is due, and wake for the next packet."""
        if self.ended:
            return
        work, now = self._work, self._clock.now
        elapsed_ns, length_ns = now - self._started_at, self._end_at - self._started_at
        while self._next_ns <= elapsed_ns:
            if self._next_ns >= length_ns:
                break
            if self._next_ns >= self._on_until_ns:
                if work.off_ms > 0:
                    self._next_ns = self._on_until_ns + self._period_ns(work.off_ms)
                self._on_until_ns = self._next_ns + self._period_ns(work.on_ms)
                continue
            self._send(Datagram(self._flow, work.packet_bytes, self._sent, now))
            self._sent += 1
            self._next_ns += self._gap_ns
        if self._next_ns >= length_ns and now >= self._end_at:
            self._finish(None)
        else:
            self._clock.at(min(self._started_at + ceil(self._next_ns), self._end_at), self._send_due)

    def _finish(self, error: str | None) -> None:
        self.ended = True
        self._done(
            {
                "packets": self._sent,
                "unsent": 0,
                "bytes": self._sent * (self._work.packet_bytes - UDP_HEADERS),
                "started_ns": self._started_at - self._epoch,
                "finished_ns": self._clock.now - self._epoch,
                "complete": error is None,
                "error": error,
            }
        )


class UdpReceiver:
    """Counts what comes to a port until it is told to stop; `done` gets its result, once."""

    def __init__(self, host: Host, port: int, counter: Counter, *, epoch: int = 0, done: Done = _nobody) -> None:
        self._clock, self._counter, self._epoch, self._done = host.clock, counter, epoch, done
        self._packets = 0
        self._nbytes = 0
        self._highest = -1
        self._delay_sum_ns = 0
        self._delay_max_ns = 0
        self._first_ns: int | None = None
        self._last_ns: int | None = None
        #: whether `done` has been called
        self.ended = False
        host.bind(port, self.receive)

    def receive(self, packet: Datagram) -> None:
        """Take a datagram."""
        if self.ended:
            return
        now = self._clock.now
        nbytes = packet.nbytes - UDP_HEADERS
        delay_ns = now - packet.sent_at
        self._packets += 1
        self._nbytes += nbytes
        self._highest = max(self._highest, packet.sequence)
        self._delay_sum_ns += delay_ns
        self._delay_max_ns = max(self._delay_max_ns, delay_ns)
        self._last_ns = now - self._epoch
        if self._first_ns is None:
            self._first_ns = self._last_ns
        self._counter.add(nbytes, now)

    def abort(self, reason: str | None) -> None:
        """End now, by `reason` or (None) because time is up; ignored when it has ended."""
        if self.ended:
            return
        self.ended = True
        packets = self._packets
        self._done(
            {
                "packets": packets,
                "highest_sequence": self._highest,
                "bytes": self._nbytes,
                "first_byte_ns": self._first_ns,
                "last_byte_ns": self._last_ns,
                "finished_ns": self._clock.now - self._epoch,
                "delay_ms_mean": self._delay_sum_ns / packets / 1e6 if packets else None,
                "delay_ms_max": self._delay_max_ns / 1e6 if packets else None,
                "complete": reason is None,
                "error": reason,
            }
        )
