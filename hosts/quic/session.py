"""One connection of aioquic on an engine's clock and a UDP port.

Read first: RFC 9000; aioquic's `quic/connection.py`, whose methods are called here and whose private fields are read
here alone; `hosts/engine/clock.py`.

Rules kept

- After each input all events go to the user, then all datagrams out, and then the wakeup is set; so ACKs are clocked
  datagram by datagram.
- aioquic counts time in s as a float. A wakeup is the first ns that is not before its deadline, and at least a µs
  ahead: by rounding, a packet may not count as lost yet at the very time that aioquic has named for it.
"""

from abc import ABC, abstractmethod
from math import ceil
from typing import Final, NamedTuple

from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection, QuicConnectionState
from aioquic.quic.events import ConnectionIdIssued, ConnectionIdRetired, QuicEvent

from hosts.engine.clock import Clock
from hosts.engine.ports import Address, UdpPort
from hosts.engine.probe import TcpInfo
from hosts.quic.counting import Counting
from hosts.quic.entropy import Entropy

_NEVER: Final = 1 << 61
_LEAST_SLEEP_NS: Final = 1_000
#: application error codes (RFC 9000 section 20.2)
_DONE: Final = 0
_ABORTED: Final = 1


class User(ABC):
    """The user of a connection."""

    @abstractmethod
    def handle_event(self, event: QuicEvent, now: int) -> None:
        """React to an event of aioquic's."""

    @abstractmethod
    def handle_progress(self) -> None:
        """All events have been told: write more, where there is room."""


class First(NamedTuple):
    """How a client began: the destination of its first packet, and of that which answered a Retry."""

    original: bytes
    retried: bytes | None = None


class Session:
    """A connection that the peer at an address has, or gets by `connect`.

    A user that calls `write` or `close` outside of its own methods must call `pump` afterwards.
    """

    def __init__(
        self,
        clock: Clock,
        port: UdpPort,
        configuration: QuicConfiguration,
        entropy: Entropy,
        user: User,
        first: First | None = None,
    ) -> None:
        self._clock, self._port, self._entropy = clock, port, entropy
        self.user = user
        with entropy:
            self._quic = QuicConnection(
                configuration=configuration,
                original_destination_connection_id=None if first is None else first.original,
                retry_source_connection_id=None if first is None else first.retried,
            )
        control = self._quic._loss._cc
        assert isinstance(control, Counting), "the transport's configurations name no other"
        self._control = control
        #: PTO expiries so far
        self._timeouts = 0
        self._pumping = self._left = False
        #: aioquic's deadline; each call of it ends in a new one
        self._due_s: float | None = None
        self._wake_at = _NEVER
        #: IDs by which the peer may address this end
        self.ids: set[bytes] = {self._quic.host_cid}

    @property
    def begun(self) -> bool:
        """Whether a packet of the peer's could be decrypted."""
        return self._quic._state is not QuicConnectionState.FIRSTFLIGHT

    @property
    def counts(self) -> Counting:
        """The counts of the sending side."""
        return self._control

    @property
    def cwnd(self) -> int:
        """The congestion window in octets."""
        return self._control.congestion_window

    @property
    def timeouts(self) -> int:
        """PTO expiries so far (RFC 9002 section 6.2)."""
        return self._timeouts

    def info(self, bytes_acked: int) -> TcpInfo:
        """Return the state of the sending side, in the terms of TCP."""
        loss, control = self._quic._loss, self._control
        pto_s = loss.get_probe_timeout() * 2**loss._pto_count
        return TcpInfo(
            cwnd_bytes=control.congestion_window,
            ssthresh_bytes=control.ssthresh,
            srtt_ms=loss._rtt_smoothed * 1e3 if loss._rtt_initialized else None,
            rto_ms=pto_s * 1e3,
            bytes_acked=bytes_acked,
            retransmits=control.lost_packets,
            timeouts=self._timeouts,
            bytes_sent=control.stream_bytes,
            in_flight_bytes=control.bytes_in_flight,
        )

    def connect(self, to: Address) -> None:
        """Begin the handshake."""
        with self._entropy:
            self._quic.connect(to, now=self._now_s())
        self.pump()

    def take(self, payload: bytes, source: Address) -> None:
        """Take a datagram."""
        with self._entropy:
            self._quic.receive_datagram(payload, source, now=self._now_s())
        # aioquic has no answer, and no place for one, to a first packet that it cannot read
        if self._quic.get_peer_address() is not None:
            self.pump()

    def open_stream(self) -> "SendingStream":
        """Open a bidirectional stream."""
        number = self._quic.get_next_available_stream_id()
        self._quic.send_stream_data(number, b"")
        return SendingStream(self._quic, number)

    def answer(self, stream: int) -> None:
        """Send FIN, and nothing before it, on a stream of the peer's, unless the peer has stopped it."""
        if self._quic._streams[stream].sender._reset_error_code is None:
            self._quic.send_stream_data(stream, b"", end_stream=True)

    def close(self, reason: str | None = None) -> None:
        """Close the connection, because everything is done or for a reason."""
        self._quic.close(error_code=_DONE if reason is None else _ABORTED, reason_phrase=reason or "")

    def leave(self) -> None:
        """Drop the connection without a word; the last call of a session."""
        self._left = True
        # the clock holds the session until its wakeup, and an attacker makes many
        del self._quic, self._control, self._entropy

    def pump(self) -> None:
        """Tell the events, send the datagrams, and set the wakeup; ignored within itself."""
        if self._pumping:
            return
        self._pumping = True
        try:
            while (event := self._quic.next_event()) is not None:
                if isinstance(event, ConnectionIdIssued):
                    self.ids.add(event.connection_id)
                elif isinstance(event, ConnectionIdRetired):
                    self.ids.discard(event.connection_id)
                self.user.handle_event(event, self._clock.now)
            self.user.handle_progress()
            with self._entropy:
                datagrams = self._quic.datagrams_to_send(now=self._now_s())
            for payload, to in datagrams:
                self._port.send(payload, to)
        finally:
            self._pumping = False
        self._due_s = self._quic.get_timer()
        self._arm()

    def _now_s(self) -> float:
        return self._clock.now / 1e9

    def _arm(self) -> None:
        if self._due_s is None:
            return
        at = ceil(self._due_s * 1e9)
        while at / 1e9 < self._due_s:
            at += 1
        at = max(at, self._clock.now + _LEAST_SLEEP_NS)
        if at < self._wake_at:
            self._wake_at = at
            self._clock.at(at, self._wake, at)

    def _wake(self, at: int) -> None:
        if self._left or at != self._wake_at:
            # or an earlier one has taken its place
            return
        self._wake_at = _NEVER
        if self._due_s is None or self._due_s > self._now_s():
            self._arm()
            return
        before = self._quic._loss._pto_count
        with self._entropy:
            self._quic.handle_timer(now=self._now_s())
        self._timeouts += self._quic._loss._pto_count > before
        self.pump()


class SendingStream:
    """A stream that this end has opened."""

    def __init__(self, quic: QuicConnection, number: int) -> None:
        self._quic = quic
        self.number = number
        # aioquic forgets a finished stream
        self._sender = quic._streams[number].sender
        self.written = 0
        self._ended = False

    @property
    def acknowledged(self) -> int:
        """Octets that the peer has acknowledged, up to the first that it has not."""
        acknowledged: int = self._sender._buffer_start
        return acknowledged

    def write(self, data: bytes) -> None:
        """Write octets; they are dropped when the peer has stopped the stream."""
        if self._sender._reset_error_code is None:
            self._quic.send_stream_data(self.number, data)
        self.written += len(data)

    def end(self) -> None:
        """Send FIN behind the octets; idempotent."""
        if not self._ended and self._sender._reset_error_code is None:
            self._ended = True
            self._quic.send_stream_data(self.number, b"", end_stream=True)
