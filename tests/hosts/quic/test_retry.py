"""Many connections without a complete handshake at a port: who comes then proves its address (RFC 9000 section 8.1.2).

The clients are aioquic's.
"""

from dataclasses import dataclass, field

import pytest
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import HandshakeCompleted
from typing_extensions import override

from common.units import MS, SECOND
from hosts.engine.content import Numbers
from hosts.engine.context import Context
from hosts.engine.ports import Address, Take, UdpPort, UdpPorts
from hosts.engine.probe import ConnectionProbe, FlowCounter
from hosts.engine.results import TcpReceived
from hosts.engine.streams import Receive, ReceivingEnd
from hosts.quic.transport import QuicTransport
from hosts.workloads.quic import Quic
from testbed.model.virtual_clock import VirtualClock
from tests.harness.attack.quic import begun_client

PORT, SERVER = 5901, ("10.0.2.2", 5901)
#: that the server takes without a proof
UNPROVEN = 32


@dataclass
class Port(UdpPort):
    sent: list[tuple[bytes, Address]] = field(default_factory=list)
    takes: list[Take] = field(default_factory=list)

    @override
    def start(self, take: Take) -> None:
        self.takes.append(take)

    @override
    def send(self, payload: bytes, to: Address) -> None:
        self.sent.append((payload, to))

    @override
    def close(self) -> None:
        pass


class Server(UdpPorts):
    """A port on which QUIC is received, and its answers."""

    def __init__(self) -> None:
        self.clock, self.port = VirtualClock(), Port()
        work = Quic(bytes=1000)
        self.ends: list[TcpReceived] = []
        self.accepted = 0
        context = Context(
            clock=self.clock, host=SERVER[0], seed=1, contents=Numbers(), probe=ConnectionProbe(SERVER[0])
        )
        transport = QuicTransport(context, self, [work], None)

        def accept(receive: Receive) -> ReceivingEnd:
            self.accepted += 1
            return receive(
                transport.contents.incoming(f"{work.flow}/0"), FlowCounter("h2", work.flow), self.ends.append
            )

        transport.bind(PORT)
        transport.accept(PORT, accept)

    @override
    def open(self, port: int) -> UdpPort:
        return self.port

    @override
    def payload_bytes(self, address: str) -> int:
        return 1472

    def answers(self, client: QuicConnection, source: Address) -> list[bytes]:
        """What comes back for all that a client has to send now."""
        self.port.sent.clear()
        for payload, _ in client.datagrams_to_send(now=self.clock.now / 1e9):
            self.port.takes[0](payload, source, self.clock.now)
        assert all(to == source for _, to in self.port.sent)
        return [payload for payload, _ in self.port.sent]


def is_retry(payload: bytes) -> bool:
    """RFC 9000 section 17.2.5."""
    return payload[0] & 0xF0 == 0xF0


def has_shaken_hands(server: Server, made: QuicConnection, source: Address, answers: list[bytes]) -> bool:
    for _ in range(5):
        server.clock.run(server.clock.now + 10 * MS)
        for payload in answers:
            made.receive_datagram(payload, SERVER, now=server.clock.now / 1e9)
        answers = server.answers(made, source)
        while (event := made.next_event()) is not None:
            if isinstance(event, HandshakeCompleted):
                return True
    return False


@pytest.fixture
def crowded() -> Server:
    """A server on which as many connections are half open as it takes unproven."""
    server = Server()
    for number in range(UNPROVEN):
        answers = server.answers(begun_client(SERVER, server.clock), (f"10.1.0.{number}", 4433))
        assert answers
        assert not any(map(is_retry, answers))
    return server


def test_the_next_client_is_asked_for_a_proof_and_then_served(crowded: Server) -> None:
    made, source = begun_client(SERVER, crowded.clock), ("10.2.0.1", 4433)
    [retry] = crowded.answers(made, source)
    assert is_retry(retry)
    # no amplifier of forged addresses
    assert len(retry) < 1200 / 8
    assert has_shaken_hands(crowded, made, source, [retry])
    assert crowded.accepted == 1


@pytest.mark.parametrize(
    ("source", "after_ns"),
    [
        pytest.param(("10.2.0.2", 4433), 0, id="of another address"),
        pytest.param(("10.2.0.1", 4433), 31 * SECOND, id="old"),
    ],
)
def test_a_proof_that_does_not_hold_is_not_answered(crowded: Server, source: Address, after_ns: int) -> None:
    made = begun_client(SERVER, crowded.clock)
    [retry] = crowded.answers(made, ("10.2.0.1", 4433))
    crowded.clock.run(crowded.clock.now + after_ns)
    made.receive_datagram(retry, SERVER, now=crowded.clock.now / 1e9)
    assert crowded.answers(made, source) == []
    assert crowded.accepted == 0


def test_a_client_that_came_before_the_crowd_keeps_its_place() -> None:
    server = Server()
    made, source = begun_client(SERVER, server.clock), ("10.2.0.1", 4433)
    answers = server.answers(made, source)
    for number in range(3 * UNPROVEN):
        server.answers(begun_client(SERVER, server.clock), (f"10.1.0.{number}", 4433))
    assert has_shaken_hands(server, made, source, answers)
