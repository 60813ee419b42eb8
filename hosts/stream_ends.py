"""The two ends of one TCP transfer, whoever's TCP it is.

Read first: `hosts/flows.py`; `hosts/agent.py` for who drives them; `hosts/tcp_flows.py` (the kernel's TCP) and
`hosts/user_flows.py` (ours) for what is below.

Rules kept
- A transfer lasts from before connecting (the first SYN) until the sender has seen the receiver's FIN, which the
  receiver sends once it has read everything.
- Ends by itself or by `abort`; what is still unsent then goes with a RST, so that nothing lingers.

Left out: which transfers there are, and when (`hosts/agent.py`).
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from hosts.flows import CHUNK, Context, Counter, Result, Stream
from hosts.tcp_info import TcpInfo

#: called with the result of an end, once
Done = Callable[[Result], None]


@dataclass(frozen=True, slots=True)
class Transfer:
    """What one connection is to carry.

    `limit` is in octets, `end_at` on the loop's clock; after that the far side has `drain_ns` to read what was written.
    """

    flow: str
    #: of the connection within its flow
    index: int
    #: IPv4 address and port
    address: tuple[str, int]
    limit: int | None = None
    end_at: int | None = None
    drain_ns: int | None = None
    #: a kernel's, by its name there; None: what connections have by themselves
    congestion_control: str | None = None


class SendingEnd(ABC):
    """One connection's sending end, which writes unless `paused`; `done` gets its result, once."""

    def __init__(self, context: Context, transfer: Transfer, paused: bool, done: Done) -> None:
        self._context, self._loop, self._transfer = context, context.loop, transfer
        self._stream = Stream(context.seed, f"{transfer.flow}/{transfer.index}")
        self._done = done
        self._connected_ns: int | None = None
        self._writing = True
        self._paused = paused
        self._ended = False
        self._started_ns = context.since_epoch(self._loop.now())
        if transfer.end_at is not None:
            self._loop.call_at(transfer.end_at, self._stop_writing)

    def pause(self, paused: bool) -> None:
        """Write nothing more for now, or go on; the end of the flow's time comes all the same."""
        self._paused = paused
        if self._connected_ns is not None and self._writing and not self._ended:
            self._let_write(not paused)

    def abort(self, reason: str) -> None:
        """End now with a RST; ignored when it has ended."""
        if not self._ended:
            self._reset()
            self._finish(reason)

    # For the TCP below.

    def _has_connected(self) -> None:
        self._connected_ns = self._context.since_epoch(self._loop.now())
        self._let_write(not self._paused)

    def _more(self) -> memoryview:
        """What to write next: nothing when all has been written."""
        limit = self._transfer.limit
        left = CHUNK if limit is None else min(CHUNK, limit - self._stream.taken)
        return self._stream.peek(left) if left else memoryview(b"")

    def _stop_writing(self) -> None:
        if self._ended or not self._writing:
            return
        self._writing = False
        if self._connected_ns is None:
            self.abort("not connected within the duration")
            return
        self._shut_down()
        drain_ns = self._transfer.drain_ns
        if drain_ns is not None:
            self._loop.call_at(self._loop.now() + drain_ns, lambda: self.abort("not drained in time"))

    def _finish(self, error: str | None) -> None:
        if self._ended:
            return
        self._ended = True
        now = self._context.since_epoch(self._loop.now())
        local_port, info = self._let_go()
        # The kernel counts our FIN as a byte, and a closed connection's state no longer tells whether it did.
        info = replace(info, bytes_acked=min(info.bytes_acked, self._stream.taken))
        if self._connected_ns is not None:
            self._context.emit(self._context.probe.retire(now, self._transfer.flow, local_port, info))
        self._done(
            {
                "bytes": self._stream.taken,
                "sha256": self._stream.sha256(),
                "started_ns": self._started_ns,
                "connected_ns": self._connected_ns,
                "finished_ns": now,
                "bytes_acked": info.bytes_acked,
                "bytes_sent": info.bytes_sent,
                "retransmits": info.retransmits,
                "timeouts": info.timeouts,
                "complete": error is None,
                "error": error,
            }
        )

    @abstractmethod
    def _let_write(self, may: bool) -> None:
        """Write `_more` whenever there is room, or no longer; `_stop_writing` when there is no more."""

    @abstractmethod
    def _shut_down(self) -> None:
        """Send FIN behind what was written; `_finish` at the peer's FIN."""

    @abstractmethod
    def _reset(self) -> None:
        """Let the connection end with a RST."""

    @abstractmethod
    def _let_go(self) -> tuple[int, TcpInfo]:
        """Be done with the connection; its local port and its last state."""


class ReceivingEnd(ABC):
    """One accepted connection's receiving end; `done` gets its result, once."""

    def __init__(self, context: Context, flow: str, index: int, counter: Counter, done: Done) -> None:
        self._context, self._loop, self._counter = context, context.loop, counter
        self._stream = Stream(context.seed, f"{flow}/{index}")
        self._hash = hashlib.sha256()
        self._done = done
        self.bytes = 0
        self._intact = True
        self._accepted_ns = context.since_epoch(self._loop.now())
        self._first_ns: int | None = None
        self._last_ns: int | None = None
        #: whether `done` has been called
        self.ended = False
        counter.start(self._loop.now())

    def abort(self, reason: str) -> None:
        """End now; ignored when it has ended."""
        if not self.ended:
            self._reset()
            self._finish(reason)

    # For the TCP below.

    def _take(self, data: bytes) -> None:
        self._last_ns = self._context.since_epoch(self._loop.now())
        self._first_ns = self._last_ns if self._first_ns is None else self._first_ns
        self.bytes += len(data)
        self._counter.bytes += len(data)
        self._hash.update(data)
        self._intact = self._stream.agrees(data) and self._intact

    def _finish(self, error: str | None) -> None:
        if self.ended:
            return
        self.ended = True
        now = self._loop.now()
        self._let_go()
        self._counter.report(now)
        self._done(
            {
                "bytes": self.bytes,
                "sha256": self._hash.hexdigest(),
                "intact": self._intact,
                "accepted_ns": self._accepted_ns,
                "first_byte_ns": self._first_ns,
                "last_byte_ns": self._last_ns,
                "finished_ns": self._context.since_epoch(now),
                "complete": error is None,
                "error": error,
            }
        )

    @abstractmethod
    def _reset(self) -> None:
        """Let the connection end with a RST."""

    @abstractmethod
    def _let_go(self) -> None:
        """Be done with the connection."""


def never_connected() -> Result:
    """Return the result of a receiving end to which no connection has come."""
    return {
        "bytes": 0,
        "sha256": hashlib.sha256().hexdigest(),
        "intact": True,
        "accepted_ns": None,
        "first_byte_ns": None,
        "last_byte_ns": None,
        "finished_ns": None,
        "complete": False,
        "error": "never connected",
    }


#: makes the receiving end of a connection that has come, for a flow, its index, counter and done
Receive = Callable[[str, int, Counter, Done], ReceivingEnd]


class Tcp(Protocol):
    """A TCP as an agent uses it."""

    def bind(self, port: int) -> None:
        """Take a port, and no connection yet. Raises HostError when it is taken."""

    def accept(self, port: int, came: Callable[[Receive], None]) -> None:
        """From now on call `came` with every connection to the port."""

    def send(self, transfer: Transfer, paused: bool, done: Done) -> SendingEnd:
        """Connect and send."""

    def check(self) -> None:
        """Raise HostError when what was measured is not to be believed."""

    def close(self) -> None:
        """Let go of everything; idempotent."""
