"""The two ends of an on/off UDP flow.

Rules kept

- The due times of packets depend on the seed alone; the sender wakes only for the next packet.
- UDP goes on after errors: a packet that is refused or far too late counts as unsent.

Left out: congestion control, and the losses of single packets (compare the two results).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import ceil
from random import Random
from typing import Final

from mypy_extensions import mypyc_attr

from hosts.engine.context import Context
from hosts.engine.delays import Delays
from hosts.engine.packets import UDP_HEADERS
from hosts.engine.probe import FlowCounter
from hosts.engine.results import UdpReceived, UdpSent

#: the same with each packet's sequence number and time
UDP_MIN_PACKET: Final = UDP_HEADERS + 16
#: a stalled sender may catch up with at most this much; older packets are not sent at all
_MAX_LAG_NS: Final = 100_000_000


@mypyc_attr(allow_interpreted_subclasses=True)
class DatagramSender(ABC):
    """Sends datagrams of one size to one address."""

    @abstractmethod
    def send(self, sequence: int, now: int) -> bool:
        """Send a datagram with this number and time; False when it was refused."""

    @abstractmethod
    def close(self) -> None:
        """Close it."""


@mypyc_attr(allow_interpreted_subclasses=True)
class DatagramReceiver(ABC):
    """Takes the datagrams that come to one port."""

    @abstractmethod
    def start(self, take: Callable[[int, int, int], None]) -> None:
        """Call `take` with each payload's size, number and time; earlier datagrams may have waited."""

    @abstractmethod
    def close(self) -> None:
        """Close it."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Datagrams(ABC):
    """A host's UDP as its agent uses it."""

    @abstractmethod
    def sender(self, address: str, port: int, packet_bytes: int) -> DatagramSender:
        """Return a sender of IP packets of this size."""

    @abstractmethod
    def receiver(self, port: int) -> DatagramReceiver:
        """Take a port. Raises HostError when it is taken."""


class UdpSender:
    """Sends on/off UDP until `end_at`, unless `paused`; `done` gets its result, once.

    On and off periods are exponential, `on_ms` and `off_ms` their means; `rate_bps` counts whole IP packets.
    """

    def __init__(
        self,
        context: Context,
        sender: DatagramSender,
        done: Callable[[UdpSent], None],
        *,
        flow: str,
        rate_bps: float,
        on_ms: float,
        off_ms: float,
        packet_bytes: int,
        end_at: int,
        paused: bool = False,
    ) -> None:
        self._context, self._clock, self._sender, self._done = context, context.clock, sender, done
        self._random = Random(f"{context.seed}/{flow}")
        self._on_ms, self._off_ms, self._packet_bytes = on_ms, off_ms, packet_bytes
        self._gap_ns = packet_bytes * 8e9 / rate_bps
        self._sent = 0
        self._unsent = 0
        self._paused = paused
        #: whether `done` has been called
        self.ended = False
        # relative to the start, so that gaps add with the same precision at any time
        self._started_at = context.clock.now
        self._length_ns = end_at - self._started_at
        self._next_ns = 0.0
        self._on_until_ns = self._period_ns(on_ms)
        self._send_due(None)

    def pause(self, paused: bool) -> None:
        """Stop sending, or go on; packets due in between are neither sent nor counted."""
        self._paused = paused

    def abort(self, reason: str) -> None:
        """End now; ignored when it has ended."""
        if not self.ended:
            self._finish(reason)

    def _period_ns(self, mean_ms: float) -> float:
        return self._random.expovariate(1 / mean_ms) * 1e6

    def _send_due(self, _: object) -> None:
        if self.ended:
            return
        now = self._clock.now
        elapsed_ns = now - self._started_at
        while self._next_ns <= elapsed_ns and self._next_ns < self._length_ns:
            if self._next_ns >= self._on_until_ns:
                if self._off_ms > 0:
                    self._next_ns = self._on_until_ns + self._period_ns(self._off_ms)
                self._on_until_ns = self._next_ns + self._period_ns(self._on_ms)
                continue
            if not self._paused:
                if elapsed_ns - self._next_ns <= _MAX_LAG_NS and self._sender.send(self._sent, now):
                    self._sent += 1
                else:
                    self._unsent += 1
            self._next_ns += self._gap_ns
        if elapsed_ns >= self._length_ns:
            self._finish(None)
        else:
            self._clock.at(self._started_at + min(ceil(self._next_ns), self._length_ns), self._send_due)

    def _finish(self, error: str | None) -> None:
        self.ended = True
        self._sender.close()
        self._done(
            UdpSent(
                packets=self._sent,
                unsent=self._unsent,
                bytes=self._sent * (self._packet_bytes - UDP_HEADERS),
                started_ns=self._started_at - self._context.epoch,
                finished_ns=self._context.time_ns,
                error=error,
            )
        )


class UdpReceiver:
    """Counts the datagrams for a port until `abort`; `done` gets its result, once.

    With `answers` each is sent back, with its number and time.
    """

    def __init__(
        self,
        context: Context,
        receiver: DatagramReceiver,
        counter: FlowCounter,
        done: Callable[[UdpReceived], None],
        answers: DatagramSender | None = None,
    ) -> None:
        self._context, self._receiver, self._counter, self._done = context, receiver, counter, done
        self._answers = answers
        self._packets = 0
        self._nbytes = 0
        self._highest = -1
        self._delay_sum_ns = 0
        self._delay_max_ns = 0
        #: from the times that the datagrams carry
        self.delays = Delays()
        self._first_ns: int | None = None
        self._last_ns: int | None = None
        #: whether `done` has been called
        self.ended = False

    def start(self) -> None:
        """Begin to read."""
        self._receiver.start(self._take)

    def abort(self, reason: str | None) -> None:
        """End now, by `reason` or (None) because time is up; ignored when it has ended."""
        if self.ended:
            return
        self.ended = True
        self._receiver.close()
        if self._answers is not None:
            self._answers.close()
        packets, now = self._packets, self._context.time_ns
        self._counter.report(now)
        self._done(
            UdpReceived(
                packets=packets,
                highest_sequence=self._highest,
                bytes=self._nbytes,
                first_byte_ns=self._first_ns,
                last_byte_ns=self._last_ns,
                finished_ns=now,
                delay_ms_mean=self._delay_sum_ns / packets / 1e6 if packets else None,
                delay_ms_max=self._delay_max_ns / 1e6 if packets else None,
                delays=self.delays.counts(),
                error=reason,
            )
        )

    def _take(self, nbytes: int, sequence: int, sent_at: int) -> None:
        if self.ended:
            return
        if self._answers is not None:
            self._answers.send(sequence, sent_at)
        delay_ns = self._context.clock.now - sent_at
        self._packets += 1
        self._nbytes += nbytes
        self._highest = max(self._highest, sequence)
        self._delay_sum_ns += delay_ns
        self._delay_max_ns = max(self._delay_max_ns, delay_ns)
        self.delays.add(delay_ns)
        self._last_ns = self._context.time_ns
        if self._first_ns is None:
            self._first_ns = self._last_ns
        self._counter.add(nbytes, self._last_ns)
