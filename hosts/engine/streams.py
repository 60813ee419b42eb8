"""The two ends of one transfer, over any reliable transport.

Read first: `agent.py`, which drives them; `own_tcp.py` (our TCP), `hosts/kernel/tcp_flows.py` (the kernel's) and
`hosts/quic/` (QUIC), the transports below.

Rules kept

- A transfer lasts from the first SYN (of QUIC: the first Initial packet) until the sender has received the receiver's
  FIN, which the receiver sends once it has read everything.
- It ends by itself or by `abort`, which sends a RST (CONNECTION_CLOSE) and drops unsent data, so that no connection
  lingers.
- Times in results are ns since the run's start.

Left out: the choice and the times of transfers (`hosts/workloads/`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

from mypy_extensions import mypyc_attr

from hosts.engine.content import Contents, Incoming, Outgoing
from hosts.engine.context import Context
from hosts.engine.delays import Delays
from hosts.engine.probe import FlowCounter, Probe, TcpInfo
from hosts.engine.results import TcpReceived, TcpSent
from telemetry.records import TcpRecord

#: called with the result of an end, once
HasSent = Callable[[TcpSent], None]
HasReceived = Callable[[TcpReceived], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """The task of one connection: send `limit` octets (None: without end), until `end_at` on the clock.

    Data that the receiver has not read `drain_ns` after `end_at` is dropped.
    """

    flow: str
    #: number of the connection among those of its flow that came about, as its receiver counts them
    index: int
    #: IPv4 address and port
    address: tuple[str, int]
    limit: int | None = None
    end_at: int | None = None
    drain_ns: int | None = None
    #: for the kernel's TCP, by its kernel name; None: the default
    congestion_control: str | None = None

    @property
    def content(self) -> str:
        """The name of its content."""
        return f"{self.flow}/{self.index}"


@mypyc_attr(allow_interpreted_subclasses=True)
class SendingEnd(ABC):
    """One connection's sending end, which writes unless `paused`; `done` gets its result, once.

    `content` and `probe` are the context's unless the transport has its own.
    """

    def __init__(
        self,
        context: Context,
        transfer: Transfer,
        paused: bool,
        done: HasSent,
        content: Outgoing | None = None,
        probe: Probe | None = None,
    ) -> None:
        self._context, self._clock, self._transfer, self._done = context, context.clock, transfer, done
        self._content = context.contents.outgoing(transfer.content) if content is None else content
        self._probe = context.probe if probe is None else probe
        self._limit = transfer.limit
        self._connected_ns: int | None = None
        self._writing = True
        self._paused = paused
        #: whether `done` has been called
        self.ended = False
        self._started_ns = context.time_ns
        #: round trips of the packets, for a TCP that times them
        self.delays = Delays()
        if transfer.end_at is not None:
            self._clock.at(transfer.end_at, self._handle_end)

    @property
    def connected(self) -> bool:
        """Whether the connection has been open."""
        return self._connected_ns is not None

    def pause(self, paused: bool) -> None:
        """Stop writing, or go on; the duration of the flow goes on in any case."""
        self._paused = paused
        if self._connected_ns is not None and self._writing and not self.ended:
            self._let_write(not paused)

    def abort(self, reason: str) -> None:
        """End now with a RST; ignored when it has ended."""
        if not self.ended:
            self._reset()
            self._finish(reason)

    # -- for the transport below -----------------------------------------------------------------------------

    def _has_connected(self) -> None:
        self._connected_ns = self._context.time_ns
        self._let_write(not self._paused)

    def _end_writing(self) -> None:
        """Send FIN behind the octets that were written: there are no more."""
        self._writing = False
        self._shut_down()

    def _handle_end(self, _: object) -> None:
        """The flow's time is over."""
        if self.ended:
            return
        if self._connected_ns is None:
            self.abort("not connected within the duration")
            return
        if self._writing:
            self._end_writing()
        if self._transfer.drain_ns is not None:
            self._clock.at(self._clock.now + self._transfer.drain_ns, self.abort, "not drained in time")

    def _finish(self, error: str | None) -> None:
        if self.ended:
            return
        self.ended = True
        context, content = self._context, self._content
        local_port, info = self._let_go()
        # the kernel counts the FIN as an octet, and the state of a closed connection does not tell whether it has
        info = replace(info, bytes_acked=min(info.bytes_acked, content.taken))
        if self._connected_ns is not None:
            record = self._probe.retire(context.time_ns, self._transfer.flow, local_port, info)
            if record is not None:
                context.emit(record)
        self._done(
            TcpSent(
                bytes=content.taken,
                sha256=content.sha256(),
                started_ns=self._started_ns,
                connected_ns=self._connected_ns,
                finished_ns=context.time_ns,
                bytes_acked=info.bytes_acked,
                bytes_sent=info.bytes_sent,
                retransmits=info.retransmits,
                timeouts=info.timeouts or 0,
                fallback=info.fallback,
                subflows=info.subflows,
                round_trips=self.delays.counts(),
                error=error,
            )
        )

    @abstractmethod
    def _let_write(self, may: bool) -> None:
        """Write octets of the content whenever there is room, up to the limit and then `_end_writing`; or stop."""

    @abstractmethod
    def _shut_down(self) -> None:
        """Send FIN behind the written octets; call `_finish` at the peer's FIN."""

    @abstractmethod
    def _reset(self) -> None:
        """End the connection with a RST."""

    @abstractmethod
    def _let_go(self) -> tuple[int, TcpInfo]:
        """Release the connection; return its local port and its last state."""


@mypyc_attr(allow_interpreted_subclasses=True)
class ReceivingEnd(ABC):
    """One accepted connection's receiving end; `done` gets its result, once."""

    def __init__(self, context: Context, content: Incoming, counter: FlowCounter, done: HasReceived) -> None:
        self._context, self._content, self._counter, self._done = context, content, counter, done
        self._epoch = context.epoch
        self.nbytes = 0
        self._accepted_ns = context.time_ns
        self._first_ns: int | None = None
        self._last_ns: int | None = None
        #: one-way delays of the packets, for a TCP that times them
        self.delays = Delays()
        #: whether `done` has been called
        self.ended = False
        counter.start(context.time_ns)

    def abort(self, reason: str) -> None:
        """End now; ignored when it has ended."""
        if not self.ended:
            self._reset()
            self._finish(reason)

    # -- for the transport below -----------------------------------------------------------------------------

    def _count(self, nbytes: int, now: int) -> None:
        self._last_ns = time_ns = now - self._epoch
        if self._first_ns is None:
            self._first_ns = time_ns
        self.nbytes += nbytes
        self._counter.add(nbytes, time_ns)

    def _finish(self, error: str | None) -> None:
        if self.ended:
            return
        self.ended = True
        self._let_go()
        now = self._context.time_ns
        self._counter.report(now)
        self._done(
            TcpReceived(
                bytes=self.nbytes,
                sha256=self._content.sha256(),
                intact=self._content.intact(),
                accepted_ns=self._accepted_ns,
                first_byte_ns=self._first_ns,
                last_byte_ns=self._last_ns,
                finished_ns=now,
                delays=self.delays.counts(),
                error=error,
            )
        )

    @abstractmethod
    def _reset(self) -> None:
        """End the connection with a RST."""

    @abstractmethod
    def _let_go(self) -> None:
        """Release the connection."""


def never_connected(content: Incoming) -> TcpReceived:
    """Return the result of a receiving end without a connection."""
    return TcpReceived(
        bytes=0,
        sha256=content.sha256(),
        intact=content.intact(),
        accepted_ns=None,
        first_byte_ns=None,
        last_byte_ns=None,
        finished_ns=None,
        error="never connected",
    )


#: makes the receiving end of an accepted connection, for this content
Receive = Callable[[Incoming, FlowCounter, HasReceived], ReceivingEnd]


@mypyc_attr(allow_interpreted_subclasses=True)
class Transport(ABC):
    """A host's TCP, or another reliable transport, as an agent uses it."""

    @property
    def contents(self) -> Contents | None:
        """The contents of its transfers; None: the context's."""
        return None

    def sample(self, time_ns: int) -> list[TcpRecord]:
        """Return the records of its senders that are not in the context's probe; `time_ns` is their time."""
        return []

    @abstractmethod
    def bind(self, port: int) -> None:
        """Reserve a port without accepting connections. Raises HostError when the port is taken."""

    @abstractmethod
    def accept(self, port: int, accepted: Callable[[Receive], ReceivingEnd]) -> None:
        """Call `accepted` with every connection to the port from now on."""

    @abstractmethod
    def send(self, transfer: Transfer, paused: bool, done: HasSent) -> SendingEnd:
        """Connect and send."""

    @abstractmethod
    def check(self) -> None:
        """Raise HostError when the measurement is not valid."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources; idempotent."""
