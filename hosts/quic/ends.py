"""The two ends of a transfer over QUIC.

Read first: `hosts/engine/streams.py` for the ends of any transport; `session.py` for the connection below.

Rules kept

- The sender opens all streams, and the receiver answers the FIN of each with a FIN, once it has read everything. The
  sender closes the connection when all answers are there.
- The sender writes ahead two congestion windows, `_AHEAD_BYTES` at least, as our TCP does.
"""

from collections.abc import Callable
from typing import Final

from aioquic.quic.events import (
    ConnectionTerminated,
    HandshakeCompleted,
    QuicEvent,
    StopSendingReceived,
    StreamDataReceived,
    StreamReset,
)
from typing_extensions import override

from hosts.engine.content import Incoming
from hosts.engine.context import Context
from hosts.engine.probe import ConnectionProbe, FlowCounter, TcpInfo
from hosts.engine.streams import HasReceived, HasSent, ReceivingEnd, SendingEnd, Transfer
from hosts.quic.content import IncomingStreams, OutgoingStreams
from hosts.quic.session import SendingStream, Session, User
from hosts.workloads.quic import Quic

_AHEAD_BYTES: Final = 65_536
#: least room for which the sender writes
_WRITE_BYTES: Final = 8_192
#: client-initiated bidirectional streams have every fourth number (RFC 9000 section 2.1)
_STEP: Final = 4
_STOPPED: Final = "the peer has stopped a stream"


class QuicSender(SendingEnd, User):
    """The client. `begin` makes its session; `let_go` is called when the connection is no longer needed."""

    def __init__(
        self,
        context: Context,
        transfer: Transfer,
        paused: bool,
        done: HasSent,
        *,
        work: Quic,
        content: OutgoingStreams,
        probe: ConnectionProbe,
        begin: Callable[[User], Session],
        port: int,
    ) -> None:
        super().__init__(context, transfer, paused, done, content, probe)
        self._work, self._octets, self._port = work, content, port
        self._streams: list[SendingStream] = []
        #: streams without an answer
        self._open: set[int] = set()
        self._may_write = False
        self._session = begin(self)
        probe.watch(transfer.flow, self._info_if_connected)
        self._session.connect(transfer.address)

    @override
    def handle_event(self, event: QuicEvent, now: int) -> None:
        if self.ended:
            return
        match event:
            case HandshakeCompleted():
                self._streams = [self._session.open_stream() for _ in range(self._work.streams)]
                self._open = {stream.number for stream in self._streams}
                self._has_connected()
            case StreamDataReceived() if event.end_stream:
                self._open.discard(event.stream_id)
                if not self._open and not self._writing:
                    self._session.close()
                    self._finish(None)
            case StopSendingReceived() | StreamReset():
                self._session.close(_STOPPED)
                self._finish(_STOPPED)
            case ConnectionTerminated():
                self._finish(reason_of(event))

    @override
    def handle_progress(self) -> None:
        if not self.ended and self._writing and self._may_write:
            self._write()

    def _info_if_connected(self) -> TcpInfo | None:
        return self._info() if self.connected and not self.ended else None

    def _info(self) -> TcpInfo:
        # an answer says that everything has been read, whatever has become of the ACKs
        return self._session.info(
            sum(stream.acknowledged if stream.number in self._open else stream.written for stream in self._streams)
        )

    def _let_write(self, may: bool) -> None:
        self._may_write = may
        if may:
            self._session.pump()

    def _write(self) -> None:
        count = len(self._streams)
        ahead = max(2 * self._session.cwnd, _AHEAD_BYTES) // count
        unfinished = False
        for index, stream in enumerate(self._streams):
            room = ahead - (stream.written - stream.acknowledged)
            left = room if self._limit is None else self._work.stream_bytes(self._limit, index) - stream.written
            if min(room, left) < min(left, _WRITE_BYTES // count):
                unfinished = True
                continue
            most = min(room, left)
            while most > 0:
                data = self._octets.take(index, most)
                stream.write(data)
                most -= len(data)
                left -= len(data)
            if left <= 0 and self._limit is not None:
                stream.end()
            else:
                unfinished = True
        if not unfinished:
            self._end_writing()

    def _shut_down(self) -> None:
        for stream in self._streams:
            stream.end()
        self._session.pump()

    def _reset(self) -> None:
        self._session.close("the sender gave up")
        self._session.pump()

    def _let_go(self) -> tuple[int, TcpInfo]:
        self.delays = self._session.counts.round_trips
        return self._port, self._info()


class QuicReceiver(ReceivingEnd, User):
    """The server."""

    def __init__(
        self,
        context: Context,
        session: Session,
        work: Quic,
        content: Incoming,
        counter: FlowCounter,
        done: HasReceived,
    ) -> None:
        super().__init__(context, content, counter, done)
        assert isinstance(content, IncomingStreams), "the transport makes no other"
        self._octets, self._session, self._work = content, session, work
        self._open = work.streams
        session.user = self

    @override
    def handle_event(self, event: QuicEvent, now: int) -> None:
        if self.ended:
            return
        match event:
            case StreamDataReceived():
                number, kind = divmod(event.stream_id, _STEP)
                if kind or number >= self._work.streams:
                    self._refuse("the peer has opened another stream")
                    return
                if event.data:
                    self._octets.streams[number].add(event.data)
                    self._count(len(event.data), now)
                if event.end_stream:
                    self._session.answer(event.stream_id)
                    self._open -= 1
                    if not self._open:
                        self._finish(None)
            case StopSendingReceived() | StreamReset():
                self._refuse(_STOPPED)
            case ConnectionTerminated():
                self._finish(reason_of(event))

    def _refuse(self, reason: str) -> None:
        self._session.close(reason)
        self._finish(reason)

    @override
    def handle_progress(self) -> None:
        """Nothing to write."""

    def arrived(self, sent_at: int) -> None:
        """A datagram has arrived that left the peer then (ns; -1: not known)."""
        if sent_at >= 0:
            self.delays.add(self._context.clock.now - sent_at)

    def _reset(self) -> None:
        self._session.close("the receiver gave up")
        self._session.pump()

    def _let_go(self) -> None:
        """The connection ends when the peer closes it."""


def reason_of(event: ConnectionTerminated) -> str:
    """Return in words why a connection has ended before its transfer."""
    if event.reason_phrase:
        return f"connection ended: {event.reason_phrase}"
    return f"connection ended: error {event.error_code:#x}" if event.error_code else "connection closed by the peer"
