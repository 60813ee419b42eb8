"""Hostile input at packet filters, link ARQ, slacp-adaptive, LT-TCP and accurate ECN, beside valid flows.

The valid flows must not feel it.

A `Door` is a thing under attack. `siege` makes a Hypothesis state machine of it, which draws how often it is shot at
and when it forgets everything, checks its rules after every step, and shrinks what broke one to a short reproducer.
`tests/conformance/test_attacks.py` runs each for a moment, `benchmarks.fuzz` for millions of shots.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any, Final, Literal, NamedTuple, cast

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from typing_extensions import override

from common.sequence import MASK
from common.units import MS, SECOND
from hosts.tcp.accecn import ACCECN0, ACCECN1, FIRST_CEP, Echo, Feedback, ace_flags, ace_of, counters_of
from hosts.tcp.config import TcpConfig
from hosts.tcp.connection import Connection
from hosts.tcp.growth.prague import Prague
from hosts.tcp.profiles import USER_PROFILES
from linklayer.adaptive import frames as adaptive
from linklayer.adaptive.code import Field
from linklayer.adaptive.endpoint import Adaptive
from linklayer.arq.endpoint import Arq
from linklayer.arq.frames import Ack, Data, Frame, emit, parse
from linklayer.filters import FILTERS
from linklayer.filters.filter import End, Filter, FilterPlugin
from linklayer.filters.filtered import Filtered
from linklayer.link import FrameError, Link, LinkContext
from linklayer.plain import Plain, PlainFrame
from linklayer.schemes import SCHEMES
from tcpip.access import Access, Objects, Octets
from tcpip.options import EXPERIMENTAL, LT_EXID, fec_option, report_option
from tcpip.segment import (
    ACK,
    AE,
    CE,
    CWR,
    ECE,
    MAX_OPTION_BYTES,
    NOT_ECT,
    RST,
    Option,
    Segment,
    option_bytes,
)  # fmt: skip
from tcpip.wire import SegmentError
from tcpip.wire import emit as emit_segment
from tcpip.wire import parse as parse_segment
from tests.harness.attacked_network import MakeEnd, Network
from tests.harness.attacker import Attacker
from tests.harness.checked import RuleBrokenError, footprint
from tests.harness.octets import with_checksums
from tests.hosts.tcp.pair import Drop, Pair, Path

#: local retransmissions of one packet, and seconds after the last packet until nothing is due: limits of any filter
MOST_OFTEN: Final = 16
LONGEST_S: Final = 3600
#: share of the octets without the attack that valid flows get at least, and how long both are compared
LEAST_OCTETS, COMPARED_S = 0.8, 4
#: hostile packets from which that is worth its time
WORTH_COMPARING: Final = 200
#: octets that an end of a link may hold: the base station's 16 MB and what the harness notes on each packet; link
#: ARQ's 4096 packets of 1500, twice; slacp-adaptive's 16384, and a decoder's equations
MOST_HELD, ARQ_MOST_HELD, ADAPTIVE_MOST_HELD = 64 << 20, 16 << 20, 64 << 20


class Door(ABC):
    """One thing under attack; any method raises RuleBrokenError."""

    @abstractmethod
    def shoot(self, rng: Random) -> None:
        """Hand over one hostile input, and let the valid flows go on for a moment."""

    def forget(self) -> None:  # noqa: B027 (a restart may cost data)
        """Restart it, if a restart costs no data."""

    @abstractmethod
    def check(self) -> None:
        """Check its bounds."""

    def finish(self) -> None:  # noqa: B027 (a door may have no valid flow)
        """Check the octets that the valid flows have got in the end."""


def require(holds: bool, what: object) -> None:
    if not holds:
        raise RuleBrokenError(str(what))


# -- packet filters ------------------------------------------------------------------------------------------


class Target(NamedTuple):
    filters: tuple[str, ...]
    end: End = "base"
    #: whether the link reports lost packets
    reports: bool = False

    def __str__(self) -> str:
        return f"{' + '.join(self.filters)}{', reports' if self.reports else ''}, {self.end} end"


def _does_anything(plugin: FilterPlugin, end: End) -> bool:
    """Whether a filter with its default options does anything at an end."""
    context = LinkContext(end=end, access=Octets(), sized=False, rng=Random(1), now=0, frame_ms=5.0)
    return type(plugin.make(plugin.options(), context)) is not Filter


#: each registered filter alone at each of its ends, unless it does nothing there; the filters of each scheme with a
#: marker; and markers with reports
TARGETS: Final = (
    *(Target((name,), end) for name in FILTERS for end in FILTERS[name].ends if _does_anything(FILTERS[name], end)),
    *(Target((*(each.name for each in scheme.filters), "eln-base")) for scheme in SCHEMES.values() if scheme.resends),
    Target(("snoop-smart", "tagger", "eln-ends"), "mobile"),
    Target(("eln-base",), reports=True),
)


class _Reporting(Plain):
    """A link that reports now and then one of its latest packets as lost for good, true or not."""

    def __init__(self) -> None:
        super().__init__()
        self._rng = Random(1)
        self._lately: deque[Any] = deque(maxlen=32)

    @override
    def poll_frame(self, now: int) -> PlainFrame | None:
        frame = super().poll_frame(now)
        if frame is not None:
            self._lately.append(frame.payload)
        return frame

    @override
    def poll_given_up(self) -> Any | None:
        return self._rng.choice(self._lately) if self._lately and self._rng.random() < 0.05 else None


def make_ends(target: Target, *, sized: bool, options: dict[str, Any] | None = None) -> MakeEnd:
    """Return a function that makes either end of the link; `options` of filters by key, in place of the defaults."""
    chosen = options or {}

    def make_end(end: End, now: int) -> Link:
        access = Objects() if sized else Octets()
        context = LinkContext(
            end=end, access=access, sized=sized, rng=Random(1), now=now, frame_ms=5.0, reports=target.reports
        )
        plugins = [plugin for name in target.filters if end in (plugin := FILTERS[name]).ends]
        filters = [plugin.make(chosen.get(plugin.options_key, plugin.options()), context) for plugin in plugins]
        return Filtered(_Reporting() if target.reports else Plain(), filters)

    return make_end


#: hostile packets of other flows; forged ACKs in valid flows, too; forged data, too
Kind = Literal["others", "forged ACKs", "forged data"]
KINDS: Final[tuple[Kind, ...]] = ("others", "forged ACKs", "forged data")


class FilterDoor(Door):
    """The filters of one end, beside nine real connections; with packets as octets and as objects, which agree."""

    def __init__(self, target: Target, kind: Kind, seed: int) -> None:
        self.kind = kind
        self._seed, self._target = seed, target
        self.networks = tuple(self._network(access) for access in (Octets(), Objects()))
        forge = None if kind == "others" else self.networks[0].seen
        self._attacker = Attacker(Random(f"{seed} attack"), forge=forge, forge_data=kind == "forged data")
        self._shots, self._forgotten = 0, False
        plugins = [FILTERS[name] for name in target.filters if target.end in FILTERS[name].ends]
        self._guesses, self._resends = (any(getattr(p, name) for p in plugins) for name in ("guesses", "resends"))

    def _network(self, access: Access) -> Network:
        ends = make_ends(self._target, sized=isinstance(access, Objects))
        return Network(ends, access, seed=self._seed, attacked=self._target.end, retries=MOST_OFTEN)

    @override
    def shoot(self, rng: Random) -> None:
        self._attacker.rng = rng
        self._shots += 1
        shot = self._attacker.next()
        # long pauses now and then, in which timers expire
        gap_ns = int(rng.expovariate(1 / (2 * MS * (50 if rng.random() < 0.002 else 1))))
        for network in self.networks:
            network.shoot(shot, gap_ns)

    @override
    def forget(self) -> None:
        self._forgotten = True
        for network in self.networks:
            network.attacked.restart()

    @override
    def check(self) -> None:
        octets, objects = (network.attacked.checked.volume for network in self.networks)
        require(octets == objects, f"octets: {octets}, objects: {objects}")
        require(self._guesses or not octets["guesses"], "a filter guesses that declares no guesses")
        require(self._resends or not octets["retransmissions"], "a filter resends that declares no resending")
        for network in self.networks:
            held = footprint(network.attacked.checked.link)
            require(held <= MOST_HELD, f"{held} octets are held")
            broken = [what for story in network.stories.values() for what in story.broken]
            require(self.kind == "forged data" or not broken, broken)

    @override
    def finish(self) -> None:
        octets, objects = self.networks
        for network in self.networks if self._shots > WORTH_COMPARING else ():
            network.run_calm(max(0, COMPARED_S * SECOND - network.clock.now))
        self.check()
        require(octets.octets == objects.octets, "valid flows differ with octets and with objects")
        if self.kind == "others" and self._shots > WORTH_COMPARING and not self._forgotten:
            calm = self._network(Objects())
            calm.run_calm(octets.clock.now)
            got = f"valid flows got {octets.octets} octets, {calm.octets} without the attack"
            require(octets.octets > LEAST_OCTETS * calm.octets > 0, got)
        if self.kind != "forged data" and self._shots > WORTH_COMPARING:
            require(sum(len(story.finished_at) for story in octets.stories.values()) > 5, "too few transfers ended")
        for network in self.networks:
            idle_at = network.settle()
            require(idle_at is not None, "something is due for ever after the attack")
            assert idle_at is not None
            require(idle_at - network.clock.now < LONGEST_S * SECOND, "something is due an hour after the attack")


# -- link ARQ ------------------------------------------------------------------------------------------------


def mutated(rng: Random, octets: bytes) -> bytes:
    """Return octets with a few bits flipped, cut, or other ones."""
    kind = rng.random()
    if kind < 0.1:
        return rng.randbytes(rng.randrange(80))
    if kind < 0.3:
        return octets[: rng.randrange(len(octets))]
    broken = bytearray(octets)
    for _ in range(rng.choice((1, 2, 4, 8))):
        broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
    return bytes(broken)


class ArqDoor(Door):
    """Damaged frames between those of a valid flow, and frames with a right CRC that lie to an end of their own."""

    def __init__(self, seed: int) -> None:
        # packets in order are held, which is the harder case
        self._sender, self._receiver, self._alone = (
            Arq(
                resend_after_ns=40 * MS,
                retries=2,
                window=1024,
                in_order=True,
                rng=Random(seed + number),
                cutter=None,
                combine=True,
            )
            for number in range(3)
        )
        self._now = self._given = self._got = self._lies = 0

    @override
    def shoot(self, rng: Random) -> None:
        if rng.random() < 0.5:
            self._lie(rng)
            return
        self._now += MS
        if self._sender.wants_packet(0) and self._given - self._got < 64:
            self._sender.handle_packet(self._given.to_bytes(8, "big"), 0)
            self._given += 1
        while (frame := self._sender.poll_frame(self._now)) is not None:
            octets = emit(frame)
            try:
                found = emit(parse(mutated(rng, octets)))
            except FrameError:
                found = octets
            # bits that were flipped twice
            require(found == octets, "a damaged frame was taken for a whole one")
            self._receiver.handle_frame(parse(octets), self._now)
        while (ack := self._receiver.poll_frame(self._now)) is not None:
            self._sender.handle_frame(ack, self._now)
        while (packet := self._receiver.poll_packet()) is not None:
            require(packet[0] == self._got.to_bytes(8, "big"), f"packet {self._got} is {packet[0]!r}")
            self._got += 1

    def _lie(self, rng: Random) -> None:
        link, self._lies = self._alone, self._lies + 1
        now = self._now + self._lies * MS // 2
        if link.wants_packet(0):
            link.handle_packet(bytes(1400), 0)
        near = rng.choice((self._lies, 1 << 31, 0xFFFF_F000, rng.getrandbits(32)))
        seq = near + rng.randrange(5000) & MASK
        frame: Frame = Data(rng.choice((1, 1, 1, rng.getrandbits(16))), self._lies & 1, seq, near & MASK, bytes(1400))
        if rng.random() < 0.3:
            frame = Ack(rng.choice((rng.getrandbits(16), 7)), seq, rng.getrandbits(64))
        link.handle_frame(parse(emit(frame)), now)
        link.handle_deadline(now)
        while link.poll_frame(now) is not None:
            pass
        for poll in (link.poll_packet, link.poll_given_up):
            while poll() is not None:
                pass

    @override
    def check(self) -> None:
        held = footprint(self._alone)
        require(held <= ARQ_MOST_HELD, f"{held} octets are held")
        require(self._given - self._got <= 64, f"{self._given - self._got} packets of the valid flow are missing")


# -- slacp-adaptive ------------------------------------------------------------------------------------------


class AdaptiveDoor(Door):
    """Damaged frames between those of a valid flow, a tenth of which is lost, and frames with a right CRC that lie to
    an end of their own.
    """

    def __init__(self, seed: int) -> None:
        self._sender, self._receiver, self._alone = (
            Adaptive(round_trips=3, budget_ns=0, frame_ns=MS, code=Field(), rng=Random(seed + number), now=0)
            for number in range(3)
        )
        self._now = self._given = self._gone = self._lies = 0
        #: the number of the packet that came last
        self._last = -1
        #: octets under way, a step long
        self._forth: list[bytes] = []
        self._back: list[bytes] = []

    @override
    def shoot(self, rng: Random) -> None:
        if rng.random() < 0.5:
            self._lie(rng)
            return
        self._now += MS
        forth, self._forth, back, self._back = self._forth, [], self._back, []
        for link, came in ((self._receiver, forth), (self._sender, back)):
            for octets in came:
                link.handle_frame(adaptive.parse(octets), self._now)
            self._expire(link, self._now)
        if self._sender.wants_packet(0) and rng.random() < 0.7:
            self._sender.handle_packet(self._given.to_bytes(8, "big"), self._given & 1)
            self._given += 1
        for link, leaving in ((self._sender, self._forth), (self._receiver, self._back)):
            while (frame := link.poll_frame(self._now)) is not None:
                octets = adaptive.emit(frame)
                self._damage(rng, octets)
                if rng.random() >= 0.1:
                    leaving.append(octets)
        while (found := self._receiver.poll_packet()) is not None:
            number, channel = int.from_bytes(cast(bytes, found[0]), "big"), found[1]
            require(number < self._given, f"packet {found[0]!r} was never sent")
            require(channel == number & 1, f"packet {number} came on channel {channel}")
            if not channel:
                require(number > self._last, f"packet {number} came behind {self._last}")
                self._last = number
        while self._sender.poll_given_up() is not None:
            self._gone += 1

    def _damage(self, rng: Random, octets: bytes) -> None:
        try:
            found = adaptive.emit(adaptive.parse(mutated(rng, octets)))
        except FrameError:
            return
        # bits that were flipped twice
        require(found == octets, "a damaged frame was taken for a whole one")

    def _expire(self, link: Adaptive, now: int) -> None:
        link.handle_deadline(now)
        at = link.next_deadline()
        require(at is None or at > now, f"at {now}: a deadline at {at} would spin")

    def _lie(self, rng: Random) -> None:
        link, self._lies = self._alone, self._lies + 1
        now = self._now + self._lies * MS // 2
        if link.wants_packet(0):
            link.handle_packet(bytes(1400), 0)
        near = rng.choice((self._lies, 1 << 31, 0xFFFF_F000, rng.getrandbits(32)))
        tx, ahead = near + rng.randrange(3000) & MASK, rng.randrange(5000)
        session = rng.choice((1, 1, 1, 1, 1, 1, rng.getrandbits(16)))
        head = session, rng.randrange(2), tx, near & MASK, rng.choice((0, 180, 0xFFFF)), rng.getrandbits(8)
        kind = rng.random()
        frame: adaptive.Frame
        if kind < 0.5:
            frame = adaptive.Data(*head, near + ahead & MASK, bytes(1400))
        elif kind < 0.75:
            members = rng.choice((1, rng.getrandbits(8), rng.getrandbits(64))) | 1
            payload = rng.randbytes(rng.choice((2, 40, 1402)))
            frame = adaptive.Coded(*head, near + ahead & MASK, members, rng.randrange(128), payload)
        elif kind < 0.8:
            frame = adaptive.Mark(*head)
        else:
            # who knows the session may settle packets, and no more
            known = link.sender._session if rng.random() < 0.5 else session
            bits = rng.choice((0, 64, adaptive.MAX_BITS))
            sent = rng.choice((tx, rng.randrange(max(1, link.sender._next_tx))))
            bitmaps = [rng.getrandbits(bits) if bits else 0 for _ in range(2)]
            frame = adaptive.Ack(known, rng.getrandbits(8), sent, bitmaps[0], sent - 5 & MASK, bitmaps[1])
        link.handle_frame(adaptive.parse(adaptive.emit(frame)), now)
        self._expire(link, now)
        for _ in range(4):
            link.poll_frame(now)
        for poll in (link.poll_packet, link.poll_given_up):
            while poll() is not None:
                pass

    @override
    def check(self) -> None:
        held = footprint(self._alone)
        require(held <= ADAPTIVE_MOST_HELD, f"{held} octets are held")
        counters = self._receiver.counters()
        settled = counters.delivered + self._gone
        require(self._given - settled <= 64, f"{self._given - settled} packets of the valid flow are missing")
        require(counters.delivered > 0.9 * self._given - 64, f"{counters.delivered} of {self._given} packets came")


# -- TCP -----------------------------------------------------------------------------------------------------


class TcpDoor(Door):
    """Hostile segments at both ends of a connection that carries octets across a lossy path.

    A `blind` attacker draws the flow's numbers, and hits no window; the flow must not feel it. Another knows them: its
    forgeries can end up in the data, as forged data can, and only the rules of memory and exceptions are checked.
    """

    #: of both ends
    CONFIG: TcpConfig
    #: octets of a flow; hostile segments between two events of it, and the least time between two such events
    NBYTES, PER_EVENT, STEP_NS = 50_000, 10, 0
    #: how long a flow with forged segments lasts at most
    FORGED_NS = 5 * SECOND
    #: of the goodput that a flow has in peace: the ACKs that answer strays (RFC 9293 section 3.10.7.4) share its path
    LEAST_GOODPUT = 0.6
    #: flows that are compared together: of one without FEC a lost tail makes several times the length
    COMPARED = 1

    def __init__(self, blind: bool, seed: int) -> None:
        self._blind, self._seed = blind, seed
        self._data = Random(7).randbytes(self.NBYTES)
        #: how long flows took, and without the attack
        self._took: list[tuple[int, int]] = []
        self._begin()

    def _begin(self) -> None:
        self._seed += 1
        self._pair, self._seen, self._events, self._shots = self._flow(), ([], []), 0, 0

    #: recent segments of the flow, by the end that has sent them
    _seen: tuple[list[Segment], list[Segment]]

    def _flow(self) -> Pair:
        up = Path(drop=self._drop(), delay_ns=20 * MS)
        pair = Pair(self.CONFIG, up=up, down=Path(delay_ns=20 * MS), octets=True)
        pair.send(0, self._data)
        return pair

    def _drop(self) -> Drop:
        """Return what the way of the data does to a new flow: it loses a fifth."""
        loss = Random(self._seed)
        return lambda segment: segment.length > 0 and loss.random() < 0.2

    @property
    def _ended(self) -> bool:
        pair = self._pair
        # forged data can end in a war of ACKs
        too_long = not self._blind and pair.now > self.FORGED_NS
        return len(pair.octets[1]) >= self.NBYTES or pair.client.closed or pair.server.closed or too_long

    @override
    def shoot(self, rng: Random) -> None:
        if self._shots % self.PER_EVENT == 0:
            self._go_on()
        self._shots += 1
        target = rng.randrange(2)
        victim = self._pair.ends[target]
        hostile = self._segment(rng, 1 - target)
        if self._blind and (hostile.seq - victim._receiver.nxt) & MASK < self.CONFIG.buffers.receive_buffer:
            # its number is right by chance
            return
        self._hand_over(rng, victim, hostile)
        if rng.random() < 0.01:
            victim.handle_deadline(self._pair.now)

    def _hand_over(self, rng: Random, victim: Connection, hostile: Segment) -> None:
        victim.handle_segment(hostile, self._pair.now)

    def _go_on(self) -> None:
        """Let the next event of the flow happen; where it has ended, look at it and begin another."""
        if self._ended:
            self._look()
            self._begin()
        pair, before, until = self._pair, self._events, self._pair.now + self.STEP_NS

        def watch() -> None:
            self._events += 1

        def sent(end: int, segment: Segment) -> None:
            self._check_sent(segment)
            self._seen[end].append(segment)
            del self._seen[end][:-32]

        pair.watch, pair.sent = watch, sent
        try:
            pair.run_until(lambda: self._events > before and pair.now >= until, 600 * SECOND)
        except AssertionError:
            if self._blind:
                raise
            self._begin()

    def _check_sent(self, segment: Segment) -> None:
        """Check a segment that an end under attack has sent."""

    @override
    def finish(self) -> None:
        if self._blind:
            self._pair.run_until(lambda: self._ended, 600 * SECOND)
            self._look()

    def _look(self) -> None:
        """Look at what a flow has got that has ended."""
        if not self._blind:
            return
        pair = self._pair
        require(pair.octets[1] == self._data, f"the flow has {len(pair.octets[1])} octets, or others")
        calm = self._flow()
        calm.run_until(lambda: len(calm.octets[1]) >= self.NBYTES, 600 * SECOND)
        self._took.append((pair.now, calm.now))
        if len(self._took) == self.COMPARED:
            took, calmly = map(sum, zip(*self._took, strict=True))
            self._took.clear()
            said = f"{self.COMPARED} flows took {took / SECOND:.1f} s, {calmly / SECOND:.1f} s without the attack"
            require(calmly >= self.LEAST_GOODPUT * took, said)

    def _segment(self, rng: Random, sender: int) -> Segment:
        flow = self._pair.ends[1 - sender].flow.reversed()
        model = rng.choice(self._seen[sender] or [Segment(flow, 0, 0, ACK, 1000)])
        length = rng.choice((0, 1, 150, 500, 1408, rng.randrange(1500)))
        seq, ack = rng.getrandbits(32), rng.getrandbits(32)
        if not self._blind:
            seq = (model.seq + rng.choice((0, 0, -length, rng.randrange(-3000, 3000)))) & MASK
            ack = (model.ack + rng.choice((0, 0, rng.randrange(-3000, 3000)))) & MASK
        flags = ACK if self._blind or rng.random() < 0.98 else rng.getrandbits(8) & ~RST
        stamps = model.timestamps
        if stamps is not None and (self._blind or rng.random() < 0.1):
            stamps = rng.getrandbits(32), rng.getrandbits(32)
        payload = rng.randbytes(length)
        if not self._blind and model.payload is not None and rng.random() < 0.5:
            payload, length = model.payload, model.length
        sack = ((seq, (seq + length) & MASK),) if rng.random() < 0.1 else ()
        return Segment(
            flow, seq, ack, flags, rng.getrandbits(16), length, payload, sack, stamps, None,
            self._options(rng, model), rng.randrange(4),
        )  # fmt: skip

    @abstractmethod
    def _options(self, rng: Random, model: Segment) -> tuple[Option, ...]:
        """Draw the options of a hostile segment; `model` is a real one."""


class LtTcpDoor(TcpDoor):
    """LT-TCP: mutated options of real segments, random options, FEC segments and reports with plausible numbers."""

    CONFIG = USER_PROFILES["lt-tcp"].config.but(receive_buffer=1 << 18, send_buffer=1 << 18, data_retries=40)

    @override
    def _options(self, rng: Random, model: Segment) -> tuple[Option, ...]:
        kind = rng.randrange(6)
        if kind == 0 and model.extra:
            # a bit of a real one
            option = model.extra[0]
            octets = bytearray(option.data)
            octets[rng.randrange(len(octets))] ^= 1 << rng.randrange(8)
            return (Option(option.kind, bytes(octets)),)
        if kind == 1:
            return (Option(EXPERIMENTAL, LT_EXID + rng.randbytes(rng.randrange(20))),)
        if kind == 2:
            return (report_option(rng.getrandbits(16), rng.getrandbits(16), rng.getrandbits(8)),)
        start = rng.getrandbits(32) if self._blind else (model.seq + rng.randrange(-5000, 50_000)) & MASK
        members = rng.choice((1, 2, 10, rng.getrandbits(8)))
        return (fec_option(start, members, rng.choice((0, 1, rng.getrandbits(8))), rng.getrandbits(11), 1),)

    @override
    def check(self) -> None:
        most = self.CONFIG.buffers.receive_buffer
        for end in self._pair.ends:
            receiver, protection = end._receiver, end._sender.protection
            decoder, recent = receiver.decoder, receiver._reassembly.recent
            if decoder is not None:
                held = (
                    f"a decoder holds {decoder._stored} + {len(decoder._kept)} octets in {len(decoder._blocks)} blocks"
                )
                require(decoder._stored <= most and len(decoder._kept) <= 2 * most and len(decoder._blocks) <= 32, held)
            edge = max(receiver._advertised, receiver.nxt)
            require(all(stop <= edge for _, stop in recent), "octets behind the window are kept")
            require(protection is None or 0 <= protection.estimate.rate <= 1, "the estimate is no share")


class AccEcnDoor(TcpDoor):
    """Accurate ECN and Prague: any ACE and ECN field, options of kinds 172 and 174 of any length, counters that jump.

    Of a fifth of the packets an octet of TCP's header is another. The way of the data marks a tenth beside what it
    loses. Counters without a connection get the same segments, with acknowledgements of any size.
    """

    CONFIG = USER_PROFILES["prague"].config.but(receive_buffer=1 << 18, send_buffer=1 << 18, data_retries=40)
    #: else all events were answers to strays, and the handshake had no end
    STEP_NS = 2 * MS
    FORGED_NS = SECOND
    COMPARED = 32
    #: octets that both ends may hold: four buffers, and their bookkeeping
    MOST_HELD = 2 << 20

    #: CE that has passed the way of the present flow's data: packets, octets
    _truth = 0, 0

    def __init__(self, blind: bool, seed: int) -> None:
        super().__init__(blind, seed)
        self._feedback, self._echo = Feedback(), Echo()

    @override
    def _drop(self) -> Drop:
        chance = Random(self._seed)
        self._truth = 0, 0

        def drop(segment: Segment) -> bool:
            if segment.length and chance.random() < 0.2:
                return True
            if segment.ecn != NOT_ECT and chance.random() < 0.1:
                segment.ecn = CE
                self._truth = self._truth[0] + 1, self._truth[1] + segment.length
            return False

        return drop

    @override
    def _options(self, rng: Random, model: Segment) -> tuple[Option, ...]:
        kind = rng.random()
        if kind < 0.1:
            return ()
        if kind < 0.2 and model.extra:
            return model.extra
        counters = rng.choice((0, 1, 0xFF_FFFF, rng.getrandbits(24))).to_bytes(3) + rng.randbytes(6)
        data: tuple[bytes, ...] = (counters[: rng.choice((9, 9, 6, 6, 3, 0, rng.randrange(10)))],)
        if kind > 0.9:
            # as long as there is room beside timestamps and a SACK block; or two
            data = (rng.randbytes(rng.randrange(17)),) if kind < 0.95 else (rng.randbytes(6), rng.randbytes(3))
        return tuple(Option(rng.choice((ACCECN0, ACCECN1)), each) for each in data)

    @override
    def _segment(self, rng: Random, sender: int) -> Segment:
        segment = super()._segment(rng, sender)
        segment.flags = segment.flags & ~(AE | CWR | ECE) | ace_flags(rng.randrange(8))
        return segment

    @override
    def _hand_over(self, rng: Random, victim: Connection, hostile: Segment) -> None:
        self._count(rng, hostile)
        if rng.random() < 0.2:
            octets = bytearray(emit_segment(hostile))
            # of the header of TCP behind its numbers, options and their lengths included
            at = rng.randrange(12, min(60, len(octets) - 20))
            # a SYN without ACK needs no number (RFC 9293 section 3.5, simultaneous open)
            if not (self._blind and at == 13):
                octets[20 + at] = rng.getrandbits(8)
            try:
                hostile = parse_segment(with_checksums(bytes(octets)))
            except SegmentError:
                return
        echo = victim._receiver.accecn
        before = 0 if echo is None else echo.cep
        victim.handle_segment(hostile, self._pair.now)
        require(echo is None or echo.cep - before <= 1, "a segment counts as more than one packet")

    def _count(self, rng: Random, segment: Segment) -> None:
        """Hand a segment over to counters of its own."""
        feedback, mss = self._feedback, rng.choice((52, 536, 1448, 65_483))
        newly = rng.choice((0, 1, mss, 8 * mss, rng.getrandbits(20), rng.getrandbits(31)))
        before, believes = (feedback.cep, feedback.ceb), feedback._believes
        packets, octets = feedback.handle_ack(segment, newly, mss)
        told = counters_of(segment) if believes else None
        require(feedback.cep % 8 == ace_of(segment), "s.cep is not ACE modulo 8")
        require(told is None or told[0] is None or feedback.ceb % (1 << 24) == told[0], "s.ceb is not ECEB modulo 2^24")
        risen = feedback.ceb - before[1]
        require(0 <= risen < 1 << 24, f"s.ceb rises by {risen}")
        most = max(-(-newly // mss), -(-risen // mss)) + 7
        require(0 <= packets == feedback.cep - before[0] <= most, f"{packets} packets of {most} at most")
        require(0 <= octets <= max(newly, risen), f"{octets} octets of {max(newly, risen)} at most")
        self._echo.handle_packet(segment.ecn, segment.length, rng.random() < 0.5)
        require(len(self._echo.option().data) <= 9, "an option of more than three fields")
        if rng.random() < 0.01:
            feedback.check_option(segment)
            feedback.handle_first_ack(ace_of(segment))
            self._feedback = Feedback()

    @override
    def _check_sent(self, segment: Segment) -> None:
        size = option_bytes(segment.sack, segment.timestamps, segment.syn, segment.extra)
        require(size <= MAX_OPTION_BYTES, f"options of {size} octets")

    @override
    def _look(self) -> None:
        if self._blind:
            # what the attacker sends is not acceptable, and counts as nothing
            truth, echo = self._truth, self._pair.server._receiver.accecn
            assert echo is not None
            require((echo.cep - FIRST_CEP, echo.ceb) == truth, f"{echo.cep}, {echo.ceb}: {truth} came with CE")
        super()._look()

    @override
    def check(self) -> None:
        held = footprint(self._pair.ends)
        require(held <= self.MOST_HELD, f"{held} octets are held")
        for end in self._pair.ends:
            growth, feedback = end._sender.growth, end._sender.accecn
            assert isinstance(growth, Prague)
            require(growth.alpha == -1 or 0 <= growth.alpha <= 1, f"an average of {growth.alpha}")
            require(not end.connected or growth.cwnd >= end.smss, f"a window of {growth.cwnd}")
            require(growth.pacing_rate_bps is None or growth.pacing_rate_bps > 0, "a rate of 0")
            if feedback is not None:
                require(feedback.cep >= FIRST_CEP and feedback.ceb >= 0, "a counter that has fallen")


# -- the siege -----------------------------------------------------------------------------------------------


def doors() -> Iterator[tuple[str, Callable[[int], Door]]]:
    """All doors by name; a door is made of a seed."""
    for target in TARGETS:
        for kind in KINDS:
            yield f"filters {target}, {kind}", partial(FilterDoor, target, kind)
    yield "arq", ArqDoor
    yield "adaptive", AdaptiveDoor
    for blind in (True, False):
        yield f"lt_tcp, {'blind' if blind else 'forged'}", partial(LtTcpDoor, blind)
        yield f"accecn, {'blind' if blind else 'forged'}", partial(AccEcnDoor, blind)


_SEEDS = st.integers(0, MASK)


def siege(make: Callable[[int], Door], most: int, count: Callable[[int], None] = lambda shots: None) -> type[Any]:
    """Return the state machine that attacks a door with up to `most` shots a step; `count` is told of each step's."""

    class Siege(RuleBasedStateMachine):
        door: Door | None = None

        @initialize(seed=_SEEDS)
        def begin(self, seed: int) -> None:
            self.door = make(seed)

        @rule(seed=_SEEDS, shots=st.integers(1, most))
        def shoot(self, seed: int, shots: int) -> None:
            door, self.door = self.door, None
            assert door is not None
            rng = Random(seed)
            for _ in range(shots):
                door.shoot(rng)
            count(shots)
            # a door that broke a rule is not looked at again
            self.door = door

        @rule()
        def forget(self) -> None:
            if self.door is not None:
                self.door.forget()

        @invariant()
        def hold(self) -> None:
            door, self.door = self.door, None
            if door is not None:
                door.check()
                self.door = door

        def teardown(self) -> None:
            if self.door is not None:
                self.door.finish()

    return Siege
