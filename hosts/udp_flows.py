"""The two ends of an on/off UDP flow.

Read first: `hosts/flows.py`; `hosts/agent.py` for who drives them.

Rules kept
- Packets have due times that follow from the seed alone; the loop wakes for the next one, never in between.
- UDP goes on whatever happens: a refused or late packet is counted as unsent.

Left out: congestion control, and knowing what was lost (compare the two results).
"""

import random
import socket
import struct
from collections.abc import Callable

from hosts.flows import CHUNK, Context, Counter, Result, listen
from hosts.loop import READ
from hosts.workloads import UDP_HEADERS, OnOffUdp

_UDP_PAYLOAD_HEADER = struct.Struct("!QQ")  # sequence number, sent at (CLOCK_MONOTONIC ns)
#: A stalled UDP sender may catch up with at most this much; what is older is not sent at all.
_UDP_MAX_LAG_NS = 100_000_000


class UdpSender:
    """Sends on/off UDP, unless `paused`; `done` gets its result, once."""

    def __init__(
        self,
        context: Context,
        work: OnOffUdp,
        address: tuple[str, int],
        end_at: int,
        paused: bool,
        done: Callable[[Result], None],
    ) -> None:
        self._context, self._loop, self._work, self._end_at, self._done = context, context.loop, work, end_at, done
        self._random = random.Random(f"{context.seed}/{work.flow}")
        self._gap_ns = work.packet_bytes * 8e9 / work.rate_bps
        self._padding = bytes(work.packet_bytes - UDP_HEADERS - _UDP_PAYLOAD_HEADER.size)
        self._sent = 0
        self._unsent = 0
        self._paused = paused
        self._ended = False
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.connect(address)
        self._next_at = float(self._loop.now())
        self._started_ns = context.since_epoch(self._loop.now())
        self._on_until = self._next_at + self._period_ns(work.on_ms)
        self._send_due()

    def pause(self, paused: bool) -> None:
        """Let the packets that are due now pass unsent and uncounted, or send them again."""
        self._paused = paused

    def abort(self, reason: str) -> None:
        """End now; ignored when it has ended."""
        if not self._ended:
            self._finish(reason)

    def _period_ns(self, mean_ms: float) -> float:
        return self._random.expovariate(1 / mean_ms) * 1e6

    def _send_due(self) -> None:
        if self._ended:
            return
        now = self._loop.now()
        while self._next_at <= now:
            if self._next_at >= self._end_at:
                self._finish(None)
                return
            if self._next_at >= self._on_until:
                if self._work.off_ms > 0:
                    self._next_at = self._on_until + self._period_ns(self._work.off_ms)
                self._on_until = self._next_at + self._period_ns(self._work.on_ms)
                continue
            if self._paused:
                pass
            elif now - self._next_at <= _UDP_MAX_LAG_NS:
                self._send(now)
            else:
                self._unsent += 1
            self._next_at += self._gap_ns
        self._loop.call_at(min(int(self._next_at) + 1, self._end_at), self._send_due)

    def _send(self, now: int) -> None:
        try:
            self._socket.send(_UDP_PAYLOAD_HEADER.pack(self._sent, now) + self._padding)
            self._sent += 1
        except OSError:
            # A full queue, or an ICMP error about an earlier packet: UDP goes on.
            self._unsent += 1

    def _finish(self, error: str | None) -> None:
        self._ended = True
        self._socket.close()
        self._done(
            {
                "packets": self._sent,
                "unsent": self._unsent,
                "bytes": self._sent * (self._work.packet_bytes - UDP_HEADERS),
                "started_ns": self._started_ns,
                "finished_ns": self._context.since_epoch(self._loop.now()),
                "complete": error is None,
                "error": error,
            }
        )


class UdpReceiver:
    """Counts on/off UDP until told to end; `done` gets its result, once."""

    def __init__(self, context: Context, work: OnOffUdp, counter: Counter, done: Callable[[Result], None]) -> None:
        self._context, self._loop, self._counter, self._done = context, context.loop, counter, done
        self._packets = 0
        self._highest = -1
        self._delay_sum_ns = 0
        self._delay_max_ns = 0
        self._first_ns: int | None = None
        self._last_ns: int | None = None
        self._ended = False
        self._socket = listen(context.host, work.port, socket.SOCK_DGRAM)

    def start(self) -> None:
        """Begin to read; what came before waits in the socket."""
        self._loop.watch(self._socket, READ, self._read)

    def abort(self, reason: str | None) -> None:
        """End now, by `reason` or (None) because time is up; ignored when it has ended."""
        if self._ended:
            return
        self._ended = True
        now = self._loop.now()
        self._loop.forget(self._socket)
        self._socket.close()
        self._counter.report(now)
        mean_ns = self._delay_sum_ns / self._packets if self._packets else None
        self._done(
            {
                "packets": self._packets,
                "highest_sequence": self._highest,
                "bytes": self._counter.bytes,
                "first_byte_ns": self._first_ns,
                "last_byte_ns": self._last_ns,
                "finished_ns": self._context.since_epoch(now),
                "delay_ms_mean": None if mean_ns is None else mean_ns / 1e6,
                "delay_ms_max": self._delay_max_ns / 1e6 if self._packets else None,
                "complete": reason is None,
                "error": reason,
            }
        )

    def _read(self) -> None:
        for _ in range(64):
            try:
                payload = self._socket.recv(CHUNK)
            except OSError:
                return
            now = self._loop.now()
            if len(payload) < _UDP_PAYLOAD_HEADER.size:
                continue
            sequence, sent_at = _UDP_PAYLOAD_HEADER.unpack_from(payload)
            self._counter.start(now)
            self._counter.bytes += len(payload)
            self._packets += 1
            self._highest = max(self._highest, sequence)
            self._delay_sum_ns += now - sent_at
            self._delay_max_ns = max(self._delay_max_ns, now - sent_at)
            self._last_ns = self._context.since_epoch(now)
            self._first_ns = self._last_ns if self._first_ns is None else self._first_ns
