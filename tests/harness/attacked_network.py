"""A network in virtual time of which one end of the link can be attacked, with valid flows about.

`Network` joins two hosts with real TCP connections, two ends of a link (each `Checked`) and a lossy hop. Hostile
packets leave the attacked end for nowhere: they take no time on the air, so what valid flows lose, they lose by what
the filters have made of the attack.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, NamedTuple

from typing_extensions import override

from common.units import MS, SECOND
from hosts.engine.stack import Application, Socket, Stack
from hosts.tcp.config import TcpConfig
from linklayer.filters.filter import End
from linklayer.filters.filtered import Filtered
from linklayer.link import Link
from linklayer.queues.drop_tail import DropTail
from tcpip.access import Access, Objects
from tcpip.segment import Segment
from tcpip.wire import emit, parse
from testbed.model.virtual_clock import VirtualClock
from tests.harness.attacker import FIXED, MOBILE, NOISE, Shot, as_object
from tests.harness.checked import Checked, Passed, tagged


class Victim(NamedTuple):
    """A valid flow: who connects to whom, with which TCPs, and what each end sends."""

    name: str
    config: TcpConfig
    #: octets from the fixed host, and from the mobile one; the one that sends more connects
    down: int
    up: int


_RENO = TcpConfig().but(recovery="reno", window_scaling=False, timestamps=False, mss=1400)
_SACK = TcpConfig().but(recovery="sack", receive_buffer=1 << 17, frto=True, mss=1400)
VICTIMS: Final = (
    Victim("reno down", _RENO, 120_000, 0),
    Victim(
        "newreno down", TcpConfig().but(recovery="newreno", timestamps=False, mss=1400, delayed_ack_ns=0), 120_000, 0
    ),
    Victim("sack down", _SACK, 120_000, 0),
    Victim("ECN down", TcpConfig().but(ecn=True, mss=536), 60_000, 0),
    Victim("large segments down", TcpConfig().but(mss=16_000, receive_buffer=1 << 18), 250_000, 0),
    Victim("sack up", _SACK, 0, 120_000),
    Victim("reno up", _RENO, 0, 60_000),
    Victim("both ways", _SACK, 60_000, 50_000),
    Victim("short", TcpConfig().but(mss=1400), 3000, 100),
)
_FIRST_PORT: Final = 5001
#: of the radio link, and of the wire behind the base station
_RATE_BPS, _DELAY_NS, _WIRED_DELAY_NS = 4_000_000, 5 * MS, 10 * MS


class _NearWrap(Random):
    """Initial sequence numbers that wrap within a transfer."""

    def getrandbits(self, k: int) -> int:
        return (1 << k) - 1 - super().getrandbits(15)


class _Application(Application):
    def __init__(self, data: bytes) -> None:
        self._left = memoryview(data)
        self.got = bytearray()
        self.socket: Socket | None = None
        self._closed = False

    @override
    def handle(self, now: int) -> None:
        socket = self.socket
        if socket is None:
            return
        connection = socket.connection
        if connection.readable:
            self.got += connection.read(connection.readable)
        if not connection.connected or self._closed or connection.error is not None:
            return
        while self._left and connection.write_room:
            self._left = self._left[connection.write(bytes(self._left[: connection.write_room])) :]
        if not self._left:
            self._closed = True
            connection.close(now)

    @property
    def over(self) -> bool:
        """Whether all was sent and all has come, or the connection is broken."""
        assert self.socket is not None
        connection = self.socket.connection
        return connection.error is not None or (self._closed and connection.at_end)


@dataclass(slots=True)
class Story:
    """What became of one victim's transfers."""

    #: when each transfer was over, its ends agreeing on every octet
    finished_at: list[int] = field(default_factory=list)
    #: what went wrong, in words
    broken: list[str] = field(default_factory=list)
    #: of the transfer that is under way
    octets: int = 0


class _Slot:
    def __init__(self, network: "Network", victim: Victim, number: int) -> None:
        self._network, self.victim, self._port = network, victim, _FIRST_PORT + number
        self.story = Story()
        self._client: _Application | None = None
        self._server: _Application | None = None
        self._ours, self._theirs = network.hosts[FIXED], network.hosts[MOBILE]
        self._lengths = victim.down, victim.up
        if victim.up > victim.down:
            self._ours, self._theirs = self._theirs, self._ours
            self._lengths = victim.up, victim.down
        self._data = [(NOISE * 2)[number : number + length] for length in self._lengths]
        self._theirs.listen(victim.config, self._port, self._accept)
        self.begin()

    def begin(self) -> None:
        self._server = None
        client = self._client = _Application(self._data[0])
        client.socket = self._ours.connect(self.victim.config, self._theirs.address, self._port, client)

    def _accept(self, socket: Socket) -> _Application:
        self._server = _Application(self._data[1])
        self._server.socket = socket
        return self._server

    def look(self) -> None:
        client, server, story = self._client, self._server, self.story
        assert client is not None
        assert client.socket is not None
        error = client.socket.connection.error
        if error is not None:
            story.broken.append(f"{self.victim.name}: {error}")
        elif server is None or not (client.over and server.over):
            story.octets = len(client.got) + (0 if server is None else len(server.got))
            return
        elif (bytes(server.got), bytes(client.got)) != (self._data[0], self._data[1]):
            story.broken.append(f"{self.victim.name}: the ends disagree on what was sent")
        else:
            story.finished_at.append(self._network.clock.now)
        story.octets = 0
        self.begin()


MakeEnd = Callable[[End, int], Link]


class _Side:
    def __init__(self, network: "Network", end: End) -> None:
        self._network, self._end = network, end
        self._clock = network.clock
        self.checked = Checked(network.make_end(end, 0), network.access, retries=network.retries)
        self._queue = DropTail(network.queue_bytes)
        #: packets that have left the link's end and wait for the transmitter
        self._ready: deque[Any] = deque()
        self._free_at = 0
        self._wake_at: int | None = None
        self._restarts = 0

    def restart(self) -> None:
        """Forget everything, but for what waits in the IP queue; every other time, the filters alone forget."""
        link, fresh = self.checked.link, self._network.make_end(self._end, self._clock.now)
        self._restarts += 1
        if self._restarts % 2 and isinstance(link, Filtered) and isinstance(fresh, Filtered):
            link.refit(fresh.filters)
        else:
            self.checked.link = fresh
        self._arm()

    def send(self, segment: Segment) -> None:
        if self._queue.push(tagged(self._network.packet(segment), "ip", mine=True), self._clock.now):
            self.pump()

    def pump(self, _: object = None) -> None:
        network, now = self._network, self._clock.now
        while self._free_at <= now:
            if not self._ready:
                packet = self._queue.pop(now)
                if packet is None:
                    break
                self._ready += _valid(self.checked.take(packet, now).to_link)
                self._arm()
                continue
            packet = self._ready.popleft()
            self._free_at = now + len(packet) * 8 * SECOND // _RATE_BPS
            self._clock.at(self._free_at, self.pump)
            far = network.stations["mobile" if self._end == "base" else "base"]
            for delay_ns in () if network.is_lost(packet) else network.delays_ns():
                self._clock.at(self._free_at + delay_ns, far.receive, packet)

    def receive(self, packet: Any) -> None:
        # a copy: one that was sent twice comes as two
        self._keep(self.checked.take(tagged(packet, "link", mine=True), self._clock.now))

    def attack(self, shot: Shot) -> None:
        """Take a hostile packet: what it makes of valid flows counts, it leaves for nowhere itself."""
        passed = self.checked.take(tagged(self._network.packet(shot.packet), shot.side), self._clock.now)
        to_link, to_ip = ([each for each in side if getattr(each, "mine", False)] for side in passed[:2])
        self._keep(Passed(tuple(to_link), tuple(to_ip), ()))

    def _keep(self, passed: Passed) -> None:
        """Deliver what leaves, and transmit what is put on the link again, of valid flows."""
        self._arm()
        for packet in _valid(passed.to_ip):
            self._network.to_host(packet if isinstance(packet, Segment) else parse(packet))
        found = [packet for packet in passed.to_link if getattr(packet, "mine", False)]
        if found:
            self._ready += found
            self.pump()

    def _arm(self) -> None:
        at = self.checked.link.next_deadline()
        if at is not None and (self._wake_at is None or at < self._wake_at):
            self._wake_at = at
            self._clock.at(max(at, self._clock.now), self._wake, at)

    def _wake(self, at: int) -> None:
        if at == self._wake_at:
            self._wake_at = None
            self._keep(self.checked.expire(self._clock.now))


def _valid(packets: Iterable[Any]) -> list[Any]:
    """Those of valid flows; a packet that a filter has changed does not say so, and is of the one just handed over."""
    return [packet for packet in packets if getattr(packet, "mine", True)]


class Network:
    """Two hosts, two stations, a lossy hop, valid flows on it, and one station that is attacked.

    Losses of valid flows' packets are drawn by `seed`, `loss` of data and half as many of pure ACKs; others come twice,
    `repeat` of them, or up to `jitter_ns` late.
    """

    def __init__(
        self,
        make_end: MakeEnd,
        access: Access,
        *,
        seed: int = 1,
        loss: float = 0.03,
        repeat: float = 0.0,
        jitter_ns: int = 0,
        victims: tuple[Victim, ...] = VICTIMS,
        attacked: End = "base",
        restart_every_ns: int | None = None,
        queue_bytes: int = 150_000,
        retries: int | None = None,
    ) -> None:
        self.make_end, self.access = make_end, access
        self.objects = isinstance(access, Objects)
        self.queue_bytes, self.retries = queue_bytes, retries
        self.clock = VirtualClock()
        self._losses, self._loss = Random(f"{seed} losses"), loss
        self._whims, self._repeat, self._jitter_ns = Random(f"{seed} whims"), repeat, jitter_ns
        self.stations = {"mobile": _Side(self, "mobile"), "base": _Side(self, "base")}
        self.hosts = {
            FIXED: Stack(self.clock, FIXED, self._to_base, _NearWrap(f"{seed} fixed")),
            MOBILE: Stack(self.clock, MOBILE, self.stations["mobile"].send, _NearWrap(f"{seed} mobile")),
        }
        #: segments of valid flows, the latest last
        self.seen: deque[Segment] = deque(maxlen=32)
        self.attacked = self.stations[attacked]
        self.slots = [_Slot(self, victim, number) for number, victim in enumerate(victims)]
        self._restart_every_ns = restart_every_ns
        if restart_every_ns is not None:
            self.clock.at(restart_every_ns, self._restart)

    def shoot(self, shot: Shot, gap_ns: int) -> None:
        self.clock.run(self.clock.now + gap_ns)
        self.attacked.attack(shot)

    def settle(self) -> int | None:
        """Let all deadlines of the attacked end pass; return when nothing was due any more, None if never."""
        checked, now = self.attacked.checked, self.clock.now
        for _ in range(1_000_000):
            at = checked.link.next_deadline()
            if at is None:
                return now
            now = max(at, now)
            checked.expire(now)
        return None

    def run_calm(self, duration_ns: int) -> None:
        self.clock.run(self.clock.now + duration_ns)

    @property
    def stories(self) -> dict[str, Story]:
        return {slot.victim.name: slot.story for slot in self.slots}

    @property
    def octets(self) -> int:
        """What valid flows have got across by now."""
        return sum(
            len(slot.story.finished_at) * (slot.victim.down + slot.victim.up) + slot.story.octets for slot in self.slots
        )

    def packet(self, packet: Segment | bytes) -> Segment | bytes:
        """Return a packet in the form in which the stations have packets, objects or octets."""
        if self.objects:
            return packet if isinstance(packet, Segment) else as_object(packet)
        return emit(packet) if isinstance(packet, Segment) else packet

    def is_lost(self, packet: Any) -> bool:
        return self._losses.random() < (self._loss if len(packet) > 100 else self._loss / 2)

    def delays_ns(self) -> list[int]:
        """Draw how long a packet takes to cross, and its copies if it comes more than once."""
        copies = 2 if self._whims.random() < self._repeat else 1
        return [_DELAY_NS + self._whims.randint(0, self._jitter_ns) for _ in range(copies)]

    def to_host(self, segment: Segment) -> None:
        self.seen.append(segment)
        if segment.flow.destination == MOBILE:
            self._arrive(segment)
        else:
            self.clock.at(self.clock.now + _WIRED_DELAY_NS, self._arrive, segment)

    def _arrive(self, segment: Segment) -> None:
        self.hosts[segment.flow.destination].take(segment)
        port = segment.flow.destination_port
        slot = (port if port < _FIRST_PORT + len(self.slots) else segment.flow.source_port) - _FIRST_PORT
        self.slots[slot].look()

    def _to_base(self, segment: Segment) -> None:
        self.clock.at(self.clock.now + _WIRED_DELAY_NS, self.stations["base"].send, segment)

    def _restart(self, _: object) -> None:
        assert self._restart_every_ns is not None
        self.attacked.restart()
        self.clock.at(self.clock.now + self._restart_every_ns, self._restart)
