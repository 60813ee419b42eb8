"""A host's QUIC: a client for each transfer that it sends, a server for each port that it receives on.

Read first: `hosts/engine/streams.py` for transports; `session.py`, `ends.py`; docs/quic.md.

Rules kept

- Only QUIC version 1 is spoken, so that no version is negotiated. Nothing is resumed: each connection has a full
  handshake, and no tickets are sent.
- Both ends use the workload's port, so that probes and captures can name flows.
- A port holds `_MOST_WAITING` connections without a complete handshake at most. Whoever comes then proves its address
  by a Retry (RFC 9000 section 8.1.2); there is room for as many such connections, and the oldest makes room for more.
  A packet that cannot be decrypted begins none.
- Random numbers follow from the run's seed, the flow, the number of its connection and the end. The octets of Retry
  tokens do not, and their length is fixed.

Left out: connections that change their address, 0-RTT, datagram frames, ECN.
"""

import ssl
from collections.abc import Callable, Iterable
from functools import partial
from random import Random
from typing import Final, TextIO
from urllib.parse import quote

from aioquic.buffer import Buffer  # type: ignore[attr-defined] # it is there for others
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import HandshakeCompleted, QuicEvent
from aioquic.quic.packet import QuicHeader, QuicProtocolVersion, encode_quic_retry, pull_quic_header
from aioquic.quic.retry import QuicRetryTokenHandler
from typing_extensions import override

from hosts.engine.context import Context
from hosts.engine.ports import Address, OpenLog, UdpPort, UdpPorts
from hosts.engine.probe import ConnectionProbe
from hosts.engine.streams import HasSent, Receive, ReceivingEnd, SendingEnd, Transfer, Transport
from hosts.errors import HostError
from hosts.quic.certificate import make_certificate
from hosts.quic.content import QuicContents
from hosts.quic.counting import counting
from hosts.quic.ends import QuicReceiver, QuicSender
from hosts.quic.entropy import Entropy
from hosts.quic.qlog import Qlog
from hosts.quic.session import First, Session, User
from hosts.workloads.quic import LEAST_PAYLOAD_BYTES, Quic
from telemetry.records import TcpRecord

_ALPN: Final = "fadelab"
_ID_BYTES: Final = 8
#: flow control that limits no link of ours, as the buffers of the kernel's TCP
_WINDOW_BYTES: Final = 16_777_216
#: an idle connection lives on, as TCP's does
_IDLE_S: Final = 3600.0
#: connections of a port whose handshake is not complete: anybody can begin one
_MOST_WAITING: Final = 32
#: of a first Initial packet of version 1 (RFC 9000 section 17.2.2): form, fixed bit and type
_INITIAL: Final = 0b1100_0000
_INITIAL_MASK: Final = 0b1111_0000
_VERSION: Final = bytes((0, 0, 0, 1))


class QuicTransport(Transport):
    """QUIC on the UDP ports of one host. Raises HostError: a path that is too narrow, or logs without a folder."""

    def __init__(self, context: Context, ports: UdpPorts, workloads: Iterable[Quic], open_log: OpenLog | None) -> None:
        self._context, self._ports = context, ports
        self._works = {port: work for work in workloads for port in work.ports()}
        self._contents = QuicContents(
            context.seed, {flow: work for work in self._works.values() for flow in work.ports().values()}
        )
        self._probe = ConnectionProbe(context.host)
        self._certificate, self._key = make_certificate(Random(f"{context.seed}/quic/certificate"))
        self._open: dict[int, UdpPort] = {}
        self._logs = {work.flow: _Logs(context, work, open_log) for work in self._works.values()}

    @property
    @override
    def contents(self) -> QuicContents:
        return self._contents

    @override
    def sample(self, time_ns: int) -> list[TcpRecord]:
        return self._probe.sample(time_ns)

    @override
    def bind(self, port: int) -> None:
        self._open[port] = self._ports.open(port)

    @override
    def accept(self, port: int, accepted: Callable[[Receive], ReceivingEnd]) -> None:
        work = self._works[port]

        def begin(peer: Address, first: First, number: int, user: User) -> Session:
            configuration = self._configuration(work, work.ports()[port], peer, is_client=False)
            entropy = self._entropy(work.ports()[port], number, "server")
            return Session(self._context.clock, self._open[port], configuration, entropy, user, first)

        server = _Server(self._context, work, self._open[port], begin, accepted)
        self._open[port].start(server.take)

    @override
    def send(self, transfer: Transfer, paused: bool, done: HasSent) -> SendingEnd:
        port = transfer.address[1]
        work = self._works[port]
        if (before := self._open.pop(port, None)) is not None:
            before.close()
        opened = self._open[port] = self._ports.open(port)
        configuration = self._configuration(work, transfer.flow, transfer.address, is_client=True)
        entropy = self._entropy(transfer.flow, transfer.index, "client")

        def begin(user: User) -> Session:
            session = Session(self._context.clock, opened, configuration, entropy, user)
            opened.start(lambda payload, source, sent_at: session.take(payload, source))
            return session

        return QuicSender(
            self._context,
            transfer,
            paused,
            done,
            work=work,
            content=self._contents.outgoing(transfer.content),
            probe=self._probe,
            begin=begin,
            port=port,
        )

    @override
    def check(self) -> None:
        """Always valid."""

    @override
    def close(self) -> None:
        for opened in self._open.values():
            opened.close()
        for logs in self._logs.values():
            logs.close()

    def _entropy(self, flow: str, number: int, end: str) -> Entropy:
        return Entropy(Random(f"{self._context.seed}/quic/{flow}/{number}/{end}"))

    def _configuration(self, work: Quic, flow: str, peer: Address, *, is_client: bool) -> QuicConfiguration:
        payload_bytes = self._ports.payload_bytes(peer[0])
        if payload_bytes < LEAST_PAYLOAD_BYTES:
            raise HostError(
                f"flow {flow}: the path to {peer[0]} carries UDP payloads of {payload_bytes} bytes: QUIC needs"
                f" {LEAST_PAYLOAD_BYTES} (RFC 9000 section 14), an mtu of {work.least_mtu_bytes}"
            )
        logs = self._logs[work.flow]
        configuration = QuicConfiguration(
            alpn_protocols=[_ALPN],
            congestion_control_algorithm=counting(work.congestion_control),
            connection_id_length=_ID_BYTES,
            idle_timeout=_IDLE_S,
            is_client=is_client,
            max_data=_WINDOW_BYTES,
            max_stream_data=_WINDOW_BYTES,
            max_datagram_size=payload_bytes,
            quic_logger=logs.qlog(flow),
            # the client knows all of them
            secrets_log_file=logs.secrets(flow) if is_client else None,
            supported_versions=[QuicProtocolVersion.VERSION_1],
            verify_mode=ssl.CERT_NONE,
        )
        if not is_client:
            configuration.certificate, configuration.private_key = self._certificate, self._key
        return configuration


class _Logs:
    """The files that one workload asks for, each opened once."""

    def __init__(self, context: Context, work: Quic, open_log: OpenLog | None) -> None:
        wanted = [name for name, given in (("qlog", work.qlog), ("keylog", work.keylog)) if given]
        if wanted and open_log is None:
            raise HostError(f"flow {work.flow}: {wanted[0]} needs the folder of a run, and there is none: leave it out")
        self._context, self._work, self._open_log = context, work, open_log
        self._files: dict[str, TextIO] = {}

    def qlog(self, flow: str) -> Qlog | None:
        """Return the log of a flow's events at this host."""
        if not self._work.qlog:
            return None
        return Qlog(self._context, flow, self._file("qlog", f"{flow}-{self._context.host}.sqlog"))

    def secrets(self, flow: str) -> TextIO | None:
        """Return the file of a flow's TLS secrets."""
        return self._file("keylog", f"{flow}.txt") if self._work.keylog else None

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def _file(self, kind: str, rest: str) -> TextIO:
        # a flow may have any name
        name = f"{kind}-{quote(rest, safe='')}"
        if name not in self._files:
            assert self._open_log is not None
            self._files[name] = self._open_log(name)
        return self._files[name]


class _Server:
    """The connections to one port."""

    def __init__(
        self,
        context: Context,
        work: Quic,
        port: UdpPort,
        begin: Callable[[Address, First, int, User], Session],
        accepted: Callable[[Receive], ReceivingEnd],
    ) -> None:
        self._context, self._work, self._port, self._begin, self._accepted = context, work, port, begin, accepted
        #: by the destination of the packet that began them
        self._sessions: dict[bytes, Session] = {}
        #: those of them without a complete handshake, the oldest first: whose address is not proven, and is
        self._waiting: dict[bytes, Session] = {}
        self._proven: dict[bytes, Session] = {}
        self._retry = QuicRetryTokenHandler()
        self._rng = Random(f"{context.seed}/quic/retry")
        #: connections so far
        self._count = 0
        #: the one that took the last datagram, which mostly takes the next as well
        self._last: Session | None = None

    def take(self, payload: bytes, source: Address, sent_at: int) -> None:
        """Take a datagram."""
        session = self._session_of(payload, source)
        if session is None:
            return
        self._last = session
        if isinstance(session.user, QuicReceiver):
            session.user.arrived(sent_at)
        session.take(payload, source)
        if not session.begun:
            self._forget(destination_of(payload))

    def _session_of(self, payload: bytes, source: Address) -> Session | None:
        destination = destination_of(payload)
        if self._last is not None and destination in self._last.ids:
            return self._last
        for session in self._sessions.values():
            if destination in session.ids:
                return session
        if not destination or not is_first(payload):
            return None
        # the session of a first packet that comes twice stays the same, also when it is over
        if destination not in self._sessions:
            self._welcome(payload, source)
        return self._sessions.get(destination)

    def _welcome(self, payload: bytes, source: Address) -> None:
        """Begin a connection, or ask for a proof of its address. Who brings a wrong one gets no answer."""
        try:
            header = pull_quic_header(Buffer(data=payload), host_cid_length=_ID_BYTES)
            first = self._first(header, source)
        except ValueError:
            return
        waiting = self._waiting if first.retried is None else self._proven
        if len(waiting) == _MOST_WAITING:
            if first.retried is None:
                self._ask(header, source)
                return
            self._forget(next(iter(waiting)))
        destination = header.destination_cid
        session = self._begin(source, first, self._count, _Waiting(partial(self._accept, destination)))
        self._sessions[destination] = waiting[destination] = session
        self._count += 1

    def _first(self, header: QuicHeader, source: Address) -> First:
        """Return how a connection began. Raises ValueError: a token that is not of ours, or of another address."""
        destination = header.destination_cid
        if not header.token:
            return First(destination)
        original = self._retry.validate_token(
            address=source, destination_cid=destination, token=header.token, now=self._context.clock.now / 1e9
        )
        return First(original, retried=destination)

    def _ask(self, header: QuicHeader, source: Address) -> None:
        """Send a Retry, which is a tenth as long as the packet that it answers."""
        identity = self._rng.randbytes(_ID_BYTES)
        token = self._retry.create_token(
            address=source,
            original_destination_connection_id=header.destination_cid,
            retry_source_connection_id=identity,
            now=self._context.clock.now / 1e9,
        )
        answer = encode_quic_retry(
            version=QuicProtocolVersion.VERSION_1,
            source_cid=identity,
            destination_cid=header.source_cid,
            original_destination_cid=header.destination_cid,
            retry_token=token,
        )
        self._port.send(answer, source)

    def _forget(self, destination: bytes) -> None:
        session = self._leave_waiting(destination)
        del self._sessions[destination]
        session.leave()
        if self._last is session:
            self._last = None

    def _leave_waiting(self, destination: bytes) -> Session:
        return (self._waiting if destination in self._waiting else self._proven).pop(destination)

    def _accept(self, destination: bytes) -> None:
        session = self._leave_waiting(destination)
        self._accepted(partial(QuicReceiver, self._context, session, self._work))


class _Waiting(User):
    """Stands in for the user of a server's connection until its handshake is complete."""

    def __init__(self, accept: Callable[[], None]) -> None:
        self._accept = accept

    @override
    def handle_event(self, event: QuicEvent, now: int) -> None:
        if isinstance(event, HandshakeCompleted):
            self._accept()

    @override
    def handle_progress(self) -> None:
        """Nothing to write."""


def destination_of(payload: bytes) -> bytes:
    """Return the destination connection ID of a datagram's first packet, empty for none (RFC 8999 section 5)."""
    if not payload:
        return b""
    if payload[0] & 0x80:
        return payload[6 : 6 + payload[5]] if len(payload) > 6 else b""
    return payload[1 : 1 + _ID_BYTES]


def is_first(payload: bytes) -> bool:
    """Whether a datagram may begin a connection (RFC 9000 sections 14.1, 17.2.2)."""
    return len(payload) >= LEAST_PAYLOAD_BYTES and payload[0] & _INITIAL_MASK == _INITIAL and payload[1:5] == _VERSION
