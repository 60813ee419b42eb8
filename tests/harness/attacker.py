"""Hostile packets for packet filters.

`Attacker` draws packets: conversations that go deep (holes, dupack floods, retransmissions that overlap, SACK, SMART
and ELN options that lie), floods of flows, and octets that are no segment at all. The same seed gives the same packets
as octets and, where they are segments, as objects.
"""

from collections import deque
from random import Random
from typing import Final, NamedTuple

from common.sequence import MASK
from tcpip.options import ELN, SMART_EXID, SMART_PERMITTED, smart_option
from tcpip.segment import (
    ACK,
    CWR,
    ECE,
    FIN,
    MAX_OPTION_BYTES,
    PSH,
    RST,
    SYN,
    URG,
    Flow,
    Option,
    SackBlock,
    Segment,
    SynOptions,
    option_bytes,
)  # fmt: skip
from tcpip.wire import SegmentError, emit, parse
from tests.harness.checked import Side
from tests.harness.octets import with_checksums

_SACK: Final = 5
_MD5, _AO = 19, 29
_EXPERIMENTAL: Final = 253
#: hosts of the valid flows
MOBILE: Final = 0x0A00_0001
FIXED: Final = 0x0A00_0002


# -- the attacker --------------------------------------------------------------------------------------------


class Shot(NamedTuple):
    """A packet to be handed over on one side: a segment, or octets that are none."""

    side: Side
    packet: Segment | bytes


#: payloads are slices of it
NOISE: Final = Random(6).randbytes(1 << 17)
_SIZES: Final = (0, 0, 1, 1, 100, 536, 1400, 1400, 1400, 1400, 1448, 1460, 2800)
#: as large as a packet with all options can be
_TSO: Final = 65_535 - 40 - MAX_OPTION_BYTES
_EDGES: Final = (0, 1, 0x7FFF_FFFF, 0x8000_0000, 0x8000_0001, 0xFFFF_FFFE, 0xFFFF_FFFF)
_FLAGS: Final = (
    0, SYN, RST, FIN, SYN | FIN, SYN | RST, RST | PSH, FIN | PSH | URG, 0xFF, SYN | ACK, FIN | ACK, RST | ACK,
    ACK | URG, ACK | ECE, ACK | CWR, ACK | ECE | CWR, PSH,
)  # fmt: skip
_PLANS: Final = (
    "data", "data", "data", "data", "hole", "again", "shift", "ack", "ack", "ack", "dup", "dup", "dup", "flood",
    "sack", "sack", "smart", "smart", "eln", "window", "datack", "flags", "back", "far", "middle", "wild", "stale",
    "fill", "open", "open",
)  # fmt: skip
#: conversations that go on at the same time
_TALKS: Final = 200
#: how many segments a plan has, where it is more than a few
_LENGTHS: Final = {"flood": (20, 400), "stale": (20, 80), "fill": (10, 40)}


def _payload(rng: Random, length: int) -> bytes | None:
    if not length:
        return None
    at = int(rng.random() * ((1 << 17) - length))
    return NOISE[at : at + length]


def _word(rng: Random) -> int:
    return rng.choice(_EDGES) if rng.random() < 0.2 else rng.getrandbits(32)


class Talk:
    """A conversation on one flow, down from the IP side, as no two TCPs would ever have it."""

    def __init__(self, rng: Random, flow: Flow) -> None:
        self.flow = flow
        self.back = flow.reversed()
        near_wrap = rng.random() < 0.3
        self.nxt = (0x1_0000_0000 - rng.randrange(1, 20_000)) if near_wrap else rng.getrandbits(32)
        self.nxt &= MASK
        self.una = self.nxt
        self.up = rng.getrandbits(32)
        #: what was sent down lately: number and length
        self.sent: deque[tuple[int, int]] = deque(maxlen=64)
        self.window = rng.choice((0, 1, 1000, 65_535, 65_535))
        self.ts = rng.getrandbits(32) if rng.random() < 0.5 else None
        self.tso = rng.random() < 0.03
        #: what every segment of it carries besides
        self.signature: tuple[Option, ...] = (Option(_MD5, NOISE[:16]),) if rng.random() < 0.05 else ()
        self.plan = "data"
        self.left = rng.randrange(1, 8)

    def next(self, rng: Random) -> Shot:
        if not self.left:
            self.plan = rng.choice(_PLANS)
            self.left = rng.randrange(*_LENGTHS.get(self.plan, (1, 12)))
        self.left -= 1
        return getattr(self, f"_{self.plan}")(rng)

    def _down(self, rng: Random, seq: int, length: int, flags: int = ACK, extra: tuple[Option, ...] = ()) -> Shot:
        extra = (*self.signature, *extra)[:2]
        ecn = int(rng.random() * 4) if rng.random() < 0.1 else 0
        segment = Segment(
            self.flow, seq & MASK, self.up, flags, 65_535, length, _payload(rng, length),
            timestamps=self._timestamps(rng), extra=extra, ecn=ecn,
        )  # fmt: skip
        return Shot("ip", segment)

    def _answer(
        self,
        rng: Random,
        ack: int,
        *,
        sack: tuple[SackBlock, ...] = (),
        extra: tuple[Option, ...] = (),
        flags: int = ACK,
        length: int = 0,
    ) -> Shot:
        timestamps = self._timestamps(rng)
        extra = (*self.signature, *extra)
        while option_bytes(sack, timestamps, None, extra) > MAX_OPTION_BYTES:
            sack, extra = (sack[:-1], extra) if sack else (sack, extra[:-1])
        if not sack:
            # a second SACK option would be the first
            extra = tuple(option for option in extra if option.kind != _SACK)
        segment = Segment(
            self.back, self.up, ack & MASK, flags, self.window, length, _payload(rng, length), sack, timestamps,
            extra=extra,
        )  # fmt: skip
        return Shot("link", segment)

    def _timestamps(self, rng: Random) -> tuple[int, int] | None:
        if self.ts is None:
            return None
        if rng.random() < 0.05:
            # they go back, or far ahead
            self.ts = _word(rng)
        self.ts = self.ts + 1 & MASK
        return self.ts, self.ts - 100 & MASK

    def _size(self, rng: Random) -> int:
        return rng.choice((_TSO, 64_000, 20_000)) if self.tso else rng.choice(_SIZES)

    def _edge(self, rng: Random) -> int:
        """A number that is the end or the beginning of something sent."""
        if not self.sent:
            return self.una
        seq, length = rng.choice(self.sent)
        return seq + (length if rng.random() < 0.5 else 0)

    def _data(self, rng: Random) -> Shot:
        length = self._size(rng)
        shot = self._down(rng, self.nxt, length, ACK | PSH if rng.random() < 0.2 else ACK)
        self.sent.append((self.nxt, length))
        self.nxt = self.nxt + length & MASK
        return shot

    def _hole(self, rng: Random) -> Shot:
        self.nxt = self.nxt + self._size(rng) & MASK
        return self._data(rng)

    def _again(self, rng: Random) -> Shot:
        return self._down(rng, *(rng.choice(self.sent) if self.sent else (self.nxt, 1400)))

    def _stale(self, rng: Random) -> Shot:
        """What was acknowledged long ago, or lies further ahead than any window."""
        away = 1 << rng.randrange(17, 31)
        return self._down(rng, self.una - away if rng.random() < 0.5 else self.nxt + away, 1400)

    def _fill(self, rng: Random) -> Shot:
        """As large as can be, more than anybody acknowledges."""
        self.nxt = self.nxt + _TSO & MASK
        return self._down(rng, self.nxt - _TSO, _TSO)

    def _shift(self, rng: Random) -> Shot:
        """Sent again otherwise: shrunk, grown, overlapping, in other pieces."""
        seq, _ = rng.choice(self.sent) if self.sent else (self.nxt, 0)
        return self._down(rng, seq + rng.randrange(-1400, 1400), rng.choice(_SIZES))

    def _ack(self, rng: Random) -> Shot:
        self.una = self._edge(rng) & MASK
        return self._answer(rng, self.una)

    def _dup(self, rng: Random) -> Shot:
        return self._answer(rng, self.una)

    def _flood(self, rng: Random) -> Shot:
        return self._answer(rng, self.una, flags=ACK | ECE if rng.random() < 0.02 else ACK)

    def _sack(self, rng: Random) -> Shot:
        blocks = []
        for _ in range(rng.randrange(1, 5)):
            left = self._edge(rng) if rng.random() < 0.8 else _word(rng)
            right = self._edge(rng) if rng.random() < 0.8 else _word(rng)
            blocks.append((left & MASK, right & MASK))
        extra = (Option(_SACK, NOISE[:8]),) if rng.random() < 0.1 else ()
        return self._answer(rng, self.una, sack=tuple(blocks), extra=extra)

    def _smart(self, rng: Random) -> Shot:
        seq, length = rng.choice(self.sent) if self.sent and rng.random() < 0.8 else (_word(rng), rng.getrandbits(16))
        extra = [smart_option(seq, min(length, 0xFFFF))]
        if rng.random() < 0.1:
            extra.append(smart_option(_word(rng), rng.getrandbits(16)))
        if rng.random() < 0.1:
            extra.insert(0, Option(_EXPERIMENTAL, (SMART_EXID + NOISE)[: rng.randrange(12)]))
        return self._answer(rng, self.una, extra=tuple(extra))

    def _eln(self, rng: Random) -> Shot:
        extra = (ELN, ELN) if rng.random() < 0.2 else (ELN,)
        if rng.random() < 0.2:
            return self._down(rng, self.nxt, rng.choice(_SIZES), extra=(*extra, SMART_PERMITTED))
        return self._answer(rng, self.una, extra=extra)

    def _window(self, rng: Random) -> Shot:
        self.window = rng.getrandbits(16)
        return self._answer(rng, self.una)

    def _datack(self, rng: Random) -> Shot:
        length = rng.choice(_SIZES)
        shot = self._answer(rng, self.una, length=length)
        if rng.random() < 0.8:
            # otherwise it comes again, or with a hole before it
            self.up = self.up + length & MASK
        elif rng.random() < 0.5:
            self.up = self.up + 3 * length & MASK
        return shot

    def _flags(self, rng: Random) -> Shot:
        flags = rng.choice(_FLAGS)
        if rng.random() < 0.5:
            return self._down(rng, self._edge(rng), rng.choice(_SIZES), flags)
        return self._answer(rng, self.una, flags=flags, length=rng.choice(_SIZES))

    def _back(self, rng: Random) -> Shot:
        return self._answer(rng, self.una - rng.randrange(1, 1 << rng.randrange(1, 31)))

    def _far(self, rng: Random) -> Shot:
        """What was never sent is acknowledged, or something far off is sent."""
        if rng.random() < 0.5:
            return self._answer(rng, self.nxt + rng.randrange(1, 1 << rng.randrange(1, 31)))
        return self._down(rng, _word(rng), rng.choice(_SIZES))

    def _middle(self, rng: Random) -> Shot:
        """An acknowledgement that ends within a segment."""
        self.una = self._edge(rng) + rng.randrange(-700, 700) & MASK
        return self._answer(rng, self.una)

    def _open(self, rng: Random) -> Shot:
        """A SYN-ACK and its acknowledgement, by turns."""
        if self.left % 2:
            self.una = self.nxt + 1 & MASK
            return self._answer(rng, self.una)
        syn = SynOptions(rng.choice((None, 1, 536, 1460)), rng.choice((None, 0, 7, 14, 255)), True)
        return Shot("ip", Segment(self.flow, self.nxt, self.up, SYN | ACK, 65_535, syn=syn))

    def _wild(self, rng: Random) -> Shot:
        side: Side = "ip" if rng.random() < 0.5 else "link"
        return Shot(side, any_segment(rng, self.flow if side == "ip" else self.back))


def any_segment(rng: Random, flow: Flow) -> Segment:
    """A segment with anything in it that can be emitted and parsed again."""
    flags = rng.choice(_FLAGS) if rng.random() < 0.5 else rng.getrandbits(8)
    length = rng.choice(_SIZES)
    sack = tuple((_word(rng), _word(rng)) for _ in range(rng.choice((0, 0, 0, 1, 3, 4))))
    timestamps = (_word(rng), _word(rng)) if rng.random() < 0.3 else None
    syn = None
    if flags & SYN and rng.random() < 0.8:
        syn = SynOptions(rng.randrange(1, 1 << 16), rng.getrandbits(8), True)
    extra: tuple[Option, ...] = ()
    if rng.random() < 0.3:
        kind = rng.choice((6, 28, 34, _MD5, _AO, _EXPERIMENTAL, _EXPERIMENTAL, 254))
        exid = rng.choice((b"", ELN.data, SMART_EXID))
        extra = (Option(kind, exid + NOISE[: rng.randrange(12)]), rng.choice((ELN, SMART_PERMITTED)))
    while option_bytes(sack, timestamps, syn, extra) > MAX_OPTION_BYTES:
        sack, extra = (sack[:-1], extra) if sack else (sack, extra[:-1])
    return Segment(
        flow, _word(rng), _word(rng), flags, rng.choice((0, 1, 0xFFFF, rng.getrandbits(16))), length,
        _payload(rng, length), sack, timestamps, syn, extra, rng.getrandbits(2), rng.getrandbits(16),
    )  # fmt: skip


def any_flow(rng: Random) -> Flow:
    return Flow(0x0B00_0000 | rng.getrandbits(24), rng.getrandbits(16), 0x0C00_0000 | rng.getrandbits(24), 80)


def no_segment(rng: Random, segment: Segment) -> bytes:
    """Octets that began as a segment and are not one, or hardly, any more; or never were one."""
    octets = bytearray(emit(segment))
    how = rng.randrange(14)
    if how == 0:
        return rng.randbytes(rng.randrange(120))
    if how == 1:
        return bytes(octets[: rng.randrange(len(octets))])
    if how == 2:
        at = rng.randrange(len(octets))
        octets[at] ^= 1 << rng.randrange(8)
    elif how == 3:
        octets[rng.choice((2, 3, 10, 11, 36, 37))] = rng.getrandbits(8)
    elif how == 4:
        octets[6:8] = rng.choice((0x2000, 0x2001, 0x0010, 0x1FFF, 0x8000)).to_bytes(2, "big")
    elif how == 5:
        words = rng.randrange(1, 11)
        octets[20:20] = rng.randbytes(4 * words)
        octets[0] = 0x45 + words
        octets[2:4] = min(len(octets), 0xFFFF).to_bytes(2, "big")
    elif how == 6:
        return bytes((0x60, 0, 0, 0)) + len(octets[20:]).to_bytes(2, "big") + b"\x06\x40" + bytes(octets[:32] + octets)
    elif how == 7:
        # UDP, ESP, AH, ICMP, IP in IP, anything
        octets[9] = rng.choice((17, 50, 51, 1, 4, 47, rng.getrandbits(8)))
    elif how == 8:
        octets[32] = rng.getrandbits(8)
    elif how == 9:
        # any octets where options go
        nbytes = 4 * rng.randrange(1, 11)
        octets = octets[:40] + rng.randbytes(nbytes) + octets[40:1000]
        octets[32] = (20 + nbytes) << 2
        octets[2:4] = len(octets).to_bytes(2, "big")
    elif how == 10:
        # what no field of ours stands for, with right checksums: DSCP, hops, reserved bits, urgent pointer
        octets[1] = rng.getrandbits(8)
        octets[8] = rng.getrandbits(8)
        octets[32] |= rng.getrandbits(4)
        octets[38:40] = rng.randbytes(2)
    elif how == 11:
        return bytes(octets) + rng.randbytes(rng.randrange(1, 40))
    elif how == 12:
        octets[2:4] = rng.getrandbits(16).to_bytes(2, "big")
    else:
        octets[0] = rng.getrandbits(8)
    return with_checksums(bytes(octets)) if how in (4, 5, 7, 8, 9, 10, 12) else bytes(octets)


class Attacker:
    """Draws packets for both sides of an end; `forge` gives segments of others' flows to forge in, newest last.

    `forge_data`: whether forged segments carry data, which would reach a receiver like anybody's.
    """

    def __init__(self, rng: Random, *, forge: deque[Segment] | None = None, forge_data: bool = False) -> None:
        self.rng = rng
        self._talks = [Talk(rng, self._known_flow()) for _ in range(_TALKS)]
        self._forge = forge
        self._forge_data = forge_data

    def next(self) -> Shot:
        rng = self.rng
        kind = rng.random()
        if self._forge and kind < 0.3:
            return self._forged(rng)
        if kind < 0.6:
            at = int(rng.random() * len(self._talks))
            if rng.random() < 0.002:
                self._talks[at] = Talk(rng, self._known_flow())
            return self._talks[at].next(rng)
        if kind < 0.8:
            # floods of flows: SYNs, data out of nowhere, ACKs of nothing
            flow = any_flow(rng)
            what = rng.random()
            side: Side = "ip" if rng.random() < 0.7 else "link"
            if what < 0.5:
                return Shot(side, Segment(flow, rng.getrandbits(32), 0, SYN, 65_535, syn=SynOptions(1460, 7, True)))
            if what < 0.8:
                length = rng.choice(_SIZES)
                return Shot(side, Segment(flow, rng.getrandbits(32), 1, ACK, 65_535, length, _payload(rng, length)))
            return Shot(side, any_segment(rng, flow))
        side = "ip" if rng.random() < 0.5 else "link"
        talk = rng.choice(self._talks)
        segment = any_segment(rng, talk.flow if side == "ip" else talk.back)
        return Shot(side, no_segment(rng, segment) if kind < 0.95 else segment)

    def _known_flow(self) -> Flow:
        """A flow among a few thousand, so that they come back; sometimes one to oneself."""
        rng = self.rng
        host = rng.getrandbits(4)
        if rng.random() < 0.02:
            return Flow(0x0D00_0001, 7, 0x0D00_0001, 7)
        return Flow(0x0D00_0000 | host, rng.getrandbits(8), 0x0E00_0000 | rng.getrandbits(2), rng.getrandbits(2))

    def _forged(self, rng: Random) -> Shot:
        """A segment in somebody's flow, about where that flow is."""
        assert self._forge is not None
        seen = rng.choice(self._forge)
        down = seen.flow.destination_port > seen.flow.source_port
        flow = seen.flow
        if rng.random() < 0.5:
            flow, down = flow.reversed(), not down
        near = rng.choice((0, 1, -1, 1400, -1400, rng.randrange(-70_000, 70_000)))
        own, far = (seen.seq, seen.ack) if flow == seen.flow else (seen.ack, seen.seq + seen.length)
        length = rng.choice(_SIZES) if self._forge_data else 0
        flags = rng.choice(_FLAGS) if rng.random() < 0.1 else ACK
        if not self._forge_data:
            flags &= ~(SYN | FIN | RST)
        sack: tuple[SackBlock, ...] = ()
        if rng.random() < 0.2:
            left = far + rng.randrange(-3000, 70_000) & MASK
            sack = ((left, left + rng.randrange(-3000, 3000) & MASK),)
        extra = (smart_option(far + rng.randrange(-3000, 70_000) & MASK, 1400),) if rng.random() < 0.2 else ()
        if rng.random() < 0.1:
            extra = (ELN,)
        segment = Segment(
            flow, own + (0 if rng.random() < 0.5 else near) & MASK, far + near & MASK, flags,
            seen.window if rng.random() < 0.7 else rng.getrandbits(16), length, _payload(rng, length), sack,
            extra=extra,
        )  # fmt: skip
        return Shot("ip" if flow.destination == MOBILE else "link", segment)


def as_object(octets: bytes) -> Segment | bytes:
    """The segment in octets, or, where there is none, the octets as something unknown."""
    try:
        return parse(octets)
    except SegmentError:
        return octets
