"""Hostile datagrams at both ends of a QUIC transfer (RFC 9000).

Three attackers. A `blind` one knows addresses and ports: random octets, headers of every form, and Initial packets that
decrypt, with any frames, as anybody can make them (RFC 9001 section 5.2). One that `sees` the flow changes, cuts, joins
and repeats its datagrams, also from other addresses. Both leave the flow intact, and memory bounded. A `peer` has
completed a handshake, and sends any frames under the connection's keys: no exception.
"""

import logging
import ssl
from random import Random
from typing import Final

from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.crypto import CryptoPair
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import Epoch
from typing_extensions import override

from common.units import MS, SECOND
from hosts.engine.content import Incoming, Numbers
from hosts.engine.context import Context
from hosts.engine.ports import Address, Take, UdpPort, UdpPorts
from hosts.engine.probe import ConnectionProbe, FlowCounter
from hosts.engine.results import TcpReceived, TcpSent
from hosts.engine.streams import Receive, ReceivingEnd, Transfer
from hosts.quic.transport import QuicTransport
from hosts.workloads.quic import LEAST_PAYLOAD_BYTES, Quic
from testbed.model.virtual_clock import VirtualClock
from tests.harness.attack.door import Door, require
from tests.harness.checked import footprint

ATTACKERS: Final = ("blind", "sees", "peer")
CLIENT: Final = "10.0.1.1"
SERVER: Final = "10.0.2.2"
PORT: Final = 5901
NBYTES, STREAMS = 50_000, 2
DELAY_NS = 20 * MS
#: share of the valid datagrams that the path loses
LOSS = 0.05
#: hostile datagrams in a step of the flow, and its length
PER_STEP, STEP_NS = 100, 10 * MS
#: a flow of 50 kB takes less: a handshake, a slow start and some probe timeouts
LONGEST_NS = 120 * SECOND
#: octets that both ends may hold: 64 half-open connections, and one whole one
MOST_HELD = 4 << 20
#: a peer's connection gets so many hostile packets
PER_PEER = 200
_INITIAL, _HANDSHAKE_TYPES, _FIXED = 0xC0, (0xC0, 0xD0, 0xE0, 0xF0), 0x40
_VERSION = bytes((0, 0, 0, 1))
_ID_BYTES = 8
_TAG_BYTES = 16
# aioquic warns of each packet that breaks its rules
logging.getLogger("quic").addHandler(logging.NullHandler())


class _Wire(UdpPorts):
    """The UDP of one host; a datagram takes `DELAY_NS` to the other, or is lost."""

    def __init__(self, clock: VirtualClock, address: str, loss: Random) -> None:
        self.clock, self.address, self.loss = clock, address, loss
        self.peer = self
        self.takes: dict[int, Take] = {}
        #: the last datagrams that came
        self.seen: list[bytes] = []

    @override
    def open(self, port: int) -> UdpPort:
        return _Port(self, port)

    @override
    def payload_bytes(self, address: str) -> int:
        return 1472

    def arrive(self, datagram: tuple[int, bytes, Address, int]) -> None:
        """Take a datagram: port, payload, source and time of sending."""
        port, payload, source, sent_at = datagram
        self.seen = [*self.seen[-31:], payload]
        self.hand_over(port, payload, source, sent_at)

    def hand_over(self, port: int, payload: bytes, source: Address, sent_at: int) -> None:
        """Give a datagram to the port's user, if there is one."""
        take = self.takes.get(port)
        if take is not None:
            take(payload, source, sent_at)


class _Port(UdpPort):
    def __init__(self, wire: _Wire, port: int) -> None:
        self._wire, self._port = wire, port

    @override
    def start(self, take: Take) -> None:
        self._wire.takes[self._port] = take

    @override
    def send(self, payload: bytes, to: Address) -> None:
        wire = self._wire
        if to[0] == wire.peer.address and wire.loss.random() >= LOSS:
            source = (wire.address, self._port)
            wire.clock.at(wire.clock.now + DELAY_NS, wire.peer.arrive, (to[1], payload, source, wire.clock.now))

    @override
    def close(self) -> None:
        self._wire.takes.pop(self._port, None)


class _Flow:
    """A transfer between two hosts of their own."""

    def __init__(self, seed: int) -> None:
        self.clock, loss = VirtualClock(), Random(seed)
        self.client, self.server = _Wire(self.clock, CLIENT, loss), _Wire(self.clock, SERVER, loss)
        self.client.peer, self.server.peer = self.server, self.client
        self.work = Quic(bytes=NBYTES, streams=STREAMS)
        self.sent: TcpSent | None = None
        self.received: list[TcpReceived] = []
        self.sending, self.receiving = self._transport(self.client, seed), self._transport(self.server, seed)
        #: connections with a complete handshake
        self.accepted = 0
        self.receiving.bind(PORT)
        self.receiving.accept(PORT, self._accepted)
        transfer = Transfer(flow=self.work.flow, index=0, address=(SERVER, PORT), limit=NBYTES)
        self.sender = self.sending.send(transfer, False, self._has_sent)

    def _transport(self, wire: _Wire, seed: int) -> QuicTransport:
        host = wire.address
        context = Context(clock=self.clock, host=host, seed=seed, contents=Numbers(), probe=ConnectionProbe(host))
        return QuicTransport(context, wire, [self.work], None)

    def _accepted(self, receive: Receive) -> ReceivingEnd:
        self.accepted += 1
        content: Incoming = self.receiving.contents.incoming(f"{self.work.flow}/0")
        return receive(content, FlowCounter(SERVER, self.work.flow), self.received.append)

    def _has_sent(self, sent: TcpSent) -> None:
        self.sent = sent


class QuicDoor(Door):
    """A flow of QUIC under attack; where it has ended, another begins."""

    def __init__(self, kind: str, seed: int) -> None:
        self._kind, self._seed, self._shots = kind, seed, 0
        self._shot = {"blind": self._blind, "sees": self._forged, "peer": self._frames}[kind]
        self._peer: QuicConnection | None = None
        self._peers = 0
        self._begin()

    def _begin(self) -> None:
        self._seed += 1
        self._flow = _Flow(self._seed)
        self._peer = None

    @override
    def shoot(self, rng: Random) -> None:
        flow = self._flow
        if self._shots % PER_STEP == 0:
            flow.clock.run(flow.clock.now + STEP_NS)
            if flow.sent is not None:
                self._look()
                self._begin()
                return
            require(flow.clock.now < LONGEST_NS, "the flow has no end")
        self._shots += 1
        self._shot(rng)

    def _look(self) -> None:
        """Look at a flow that has ended."""
        flow = self._flow
        assert flow.sent is not None
        if self._kind == "peer":
            return
        require(flow.sent.error is None, f"the flow ended: {flow.sent.error}")
        whole = [end for end in flow.received if end.bytes == NBYTES and end.intact and end.sha256 == flow.sent.sha256]
        require(len(whole) == 1, f"the octets that came: {[end.bytes for end in flow.received]}")

    @override
    def check(self) -> None:
        held = footprint(self._flow.sending, self._flow.receiving)
        require(self._kind == "peer" or held <= MOST_HELD, f"{held} octets are held")

    @override
    def finish(self) -> None:
        flow = self._flow
        while flow.sent is None and flow.clock.now < LONGEST_NS:
            flow.clock.run(flow.clock.now + SECOND)
        require(flow.sent is not None, "the flow has no end")
        self._look()

    def _hand_over(self, rng: Random, wire: _Wire, payload: bytes) -> None:
        """Give a hostile datagram to a host, from its peer's address or another."""
        address = wire.peer.address if rng.random() < 0.7 else f"10.0.3.{rng.randrange(256)}"
        wire.hand_over(PORT, payload, (address, rng.choice((PORT, 4433))), -1)

    # -- the attackers ---------------------------------------------------------------------------------------

    def _blind(self, rng: Random) -> None:
        wire = rng.choice((self._flow.client, self._flow.server))
        kind = rng.random()
        if kind < 0.1:
            payload = rng.randbytes(rng.choice((0, 1, 7, 30, 1200, rng.randrange(1500))))
        elif kind < 0.6:
            payload = _header(rng, rng.randbytes(_ID_BYTES)) + rng.randbytes(rng.choice((0, 20, 1200)))
        else:
            payload = _initial(rng, rng.randbytes(rng.choice((8, 8, 8, 20, rng.randrange(1, 21)))))
        self._hand_over(rng, wire, payload)

    def _forged(self, rng: Random) -> None:
        wire = rng.choice((self._flow.client, self._flow.server))
        if not wire.seen:
            return
        octets = bytearray(rng.choice(wire.seen))
        kind = rng.random()
        if kind < 0.4:
            for _ in range(rng.choice((1, 1, 2, 8))):
                octets[rng.randrange(len(octets))] ^= 1 << rng.randrange(8)
        elif kind < 0.5:
            # the header's last bits, ID and length
            octets[rng.randrange(min(30, len(octets)))] = rng.getrandbits(8)
        elif kind < 0.6:
            del octets[rng.randrange(len(octets)) :]
        elif kind < 0.75:
            octets += rng.choice(wire.seen)
        elif kind < 0.9:
            known = bytes(octets[1 : 1 + _ID_BYTES])
            octets = bytearray(_header(rng, known) + rng.randbytes(rng.choice((0, 21, 1200))))
        self._hand_over(rng, wire, bytes(octets))

    def _frames(self, rng: Random) -> None:
        """Send any frames as a peer that has keys, with a handshake before where there is none."""
        peer = self._peer
        if peer is None or self._shots % PER_PEER == 0 or not _has_keys(peer):
            peer = self._peer = self._handshake(rng)
            if peer is None:
                return
        pair = peer._cryptos[Epoch.ONE_RTT]
        number, peer._packet_number = peer._packet_number, peer._packet_number + 1
        head = bytes((_FIXED | 3,)) + peer._peer_cid.cid + (number & 0xFFFF_FFFF).to_bytes(4, "big")
        payload = pair.encrypt_packet(head, _frames(rng) + bytes(4), number)
        self._flow.server.hand_over(PORT, payload, (CLIENT, 4433), -1)

    def _handshake(self, rng: Random) -> QuicConnection | None:
        """Return a further client of the server with the keys of a connection; None where there is none."""
        server, clock = self._flow.server, self._flow.clock
        answers: list[bytes] = []
        client = server.peer.takes
        before = client.get(4433)
        client[4433] = lambda payload, source, sent_at: answers.append(payload)
        self._peers += 1
        peer = begun_client((SERVER, PORT), clock)
        for _ in range(20):
            for payload, _ in peer.datagrams_to_send(now=clock.now / 1e9):
                server.hand_over(PORT, payload, (CLIENT, 4433), -1)
            clock.run(clock.now + 2 * DELAY_NS)
            for payload in answers:
                peer.receive_datagram(payload, (SERVER, PORT), now=clock.now / 1e9)
            answers.clear()
            if _has_keys(peer):
                return peer
        if before is None:
            del client[4433]
        return None


def begun_client(server: Address, clock: VirtualClock) -> QuicConnection:
    """Return a client of aioquic's whose first packet waits to be sent."""
    configuration = QuicConfiguration(
        alpn_protocols=["fadelab"],
        is_client=True,
        supported_versions=[QuicProtocolVersion.VERSION_1],
        verify_mode=ssl.CERT_NONE,
    )
    made = QuicConnection(configuration=configuration)
    made.connect(server, now=clock.now / 1e9)
    return made


def _has_keys(peer: QuicConnection) -> bool:
    return peer._handshake_complete and peer._cryptos[Epoch.ONE_RTT].send.is_valid()


def _header(rng: Random, destination: bytes) -> bytes:
    """Return a header to a connection ID: short, or long of any type and version, with any length field."""
    if rng.random() < 0.4:
        return bytes((_FIXED | rng.getrandbits(6),)) + destination
    version = rng.choice((_VERSION, bytes(4), rng.randbytes(4)))
    token = rng.choice((b"\0", b"\x40\x20", rng.randbytes(2)))
    length = rng.choice((b"\x44\x90", rng.randbytes(rng.choice((1, 2, 4, 8)))))
    first = rng.choice(_HANDSHAKE_TYPES) | rng.getrandbits(4)
    size = rng.choice((len(destination), len(destination), rng.getrandbits(8)))
    return bytes((first,)) + version + bytes((size,)) + destination + bytes((0,)) + token + length


def _initial(rng: Random, destination: bytes) -> bytes:
    """Return an Initial packet of a client's that decrypts, with any frames (RFC 9001 section 5.2), of 1200 octets."""
    source = rng.randbytes(8)
    head = bytes((_INITIAL | 3,)) + _VERSION + bytes((len(destination),)) + destination + bytes((8,)) + source + b"\0"
    size = LEAST_PAYLOAD_BYTES - len(head) - 2
    frames = _frames(rng)[: size - 4 - _TAG_BYTES]
    plain = frames + bytes(size - 4 - _TAG_BYTES - len(frames))
    pair = CryptoPair()
    pair.setup_initial(cid=destination, is_client=True, version=QuicProtocolVersion.VERSION_1)
    return pair.encrypt_packet(head + (0x4000 | size).to_bytes(2, "big") + bytes(4), plain, 0)


def _number(rng: Random) -> bytes:
    """Return an integer of variable length (RFC 9000 section 16)."""
    bits = rng.choice((6, 6, 6, 14, 30, 62))
    size = {6: 1, 14: 2, 30: 4, 62: 8}[bits]
    return (rng.getrandbits(bits) | {1: 0, 2: 1, 4: 2, 8: 3}[size] << (8 * size - 2)).to_bytes(size, "big")


def _frames(rng: Random) -> bytes:
    """Return some frames of any type (RFC 9000 section 19), mostly with as many numbers as they need, and others."""
    octets = b""
    for _ in range(rng.randrange(1, 5)):
        kind = rng.choice((*range(0x1F), 0x30, 0x31, rng.getrandbits(6)))
        if kind in (0x06, *range(0x08, 0x10)):
            # CRYPTO, STREAM
            stream = b"" if kind == 0x06 else bytes((rng.choice((0, 4, 4, 1, 2, 3, 8, rng.getrandbits(6))),))
            offset = _number(rng) if kind == 0x06 or kind & 4 else b""
            data = rng.randbytes(rng.randrange(60))
            octets += (
                bytes((kind,)) + stream + offset + (bytes((len(data),)) if kind == 0x06 or kind & 2 else b"") + data
            )
        else:
            octets += (
                bytes((kind,))
                + b"".join(_number(rng) for _ in range(rng.randrange(5)))
                + rng.randbytes(rng.choice((0, 0, 0, 8, 16)))
            )
    return octets
