"""Hostile packets for a base station's packet filters, and a harness that checks what a filter may never do.

Read first: `linklayer/filters/filter.py` for the contract; RFC 9293 (segments), RFC 5681 section 2 (what a dupack is).

- `Attacker` draws packets: conversations that go deep (holes, dupack floods, retransmissions that overlap, SACK, SMART
  and ELN options that lie), floods of flows, and octets that are no segment at all. The same seed gives the same
  packets as octets and, where they are segments, as objects.
- `Checked` is one end of a link whose every input and output is looked at; it raises `RuleBrokenError`.

`assault.py` brings them together with valid flows.

What is checked of each packet: it leaves at once, in its direction, as the very object that came; or it has an ELN or
SMART option more or less, or fewer SACK blocks, and is otherwise the same, not signed, and no longer than before if it
carries data; or it is a pure dupack and was held back. What else leaves for the link came from that side before, and is
unchanged. A deadline that was handled is over; one that is handled early changes nothing.
"""

import gc
import struct
import sys
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final, Literal, NamedTuple

from linklayer.filters.filter import Guess
from linklayer.link import Link
from linklayer.plain import PlainFrame
from tcpip.access import Access
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
)
from tcpip.sequence import MASK
from tcpip.wire import SegmentError, emit, parse

#: where a packet comes from, seen from the end under attack: the IP side or the link
Side = Literal["ip", "link"]

_SACK: Final = 5
_MD5, _AO = 19, 29
_EXPERIMENTAL: Final = 253
#: flows of which the harness remembers the latest ACKs, and how many
_REMEMBERED_FLOWS: Final = 1 << 16
_REMEMBERED_ACKS: Final = 256
#: what a deadline may take until it is over
_MOST_EXPIRIES: Final = 64


class RuleBrokenError(AssertionError):
    """A filter did what no filter may do."""


# -- packets that know where they came from ------------------------------------------------------------------


class TaggedOctets(bytes):
    """Octets that came from `side`; `again`: how often they were put on the link again."""

    side: Side
    again: int
    said: None
    mine: bool


class TaggedSegment(Segment):
    """A segment that came from `side`; `said`: its fields then."""

    __slots__ = ("again", "mine", "said", "side")

    side: Side
    again: int
    said: tuple[Any, ...]
    mine: bool


def tagged(packet: bytes | Segment, side: Side, mine: bool = False) -> Any:
    """Return a copy of a packet that says where it came from, and whether it is of a valid flow."""
    copy: Any
    if isinstance(packet, Segment):
        copy = TaggedSegment(
            packet.flow, packet.seq, packet.ack, packet.flags, packet.window, packet.length, packet.payload,
            packet.sack, packet.timestamps, packet.syn, packet.extra, packet.ecn, packet.number,
        )  # fmt: skip
        copy.said = fields(copy)
    else:
        copy = TaggedOctets(packet)
        copy.said = None
    copy.side, copy.again, copy.mine = side, 0, mine
    return copy


def fields(segment: Segment) -> tuple[Any, ...]:
    """Everything a segment says."""
    return tuple(getattr(segment, name) for name in Segment.__slots__)


# -- one end, with all that goes in and out of it looked at --------------------------------------------------


class Passed(NamedTuple):
    """What became of one packet, or of one deadline."""

    #: for the link, in order, retransmissions included
    to_link: tuple[Any, ...]
    to_ip: tuple[Any, ...]
    guesses: tuple[Guess, ...]


@dataclass(slots=True)
class Volume:
    """What went through an end."""

    packets: int = 0
    nbytes: int = 0
    #: packets that are no segment for this end
    unknown: int = 0
    held_back: int = 0
    changed: int = 0
    retransmissions: int = 0
    retransmitted_bytes: int = 0
    guesses: int = 0
    expiries: int = 0
    #: the most that one packet, or one deadline, has put on the link again
    most_bytes_at_once: int = 0
    #: the most often that one packet was put on the link again
    most_often: int = 0


class Checked:
    """One end of a link. `probe` is how often (1 in n) a deadline is handled early, to see that nothing happens."""

    def __init__(self, link: Link, access: Access, *, probe: int = 64, retries: int | None = None) -> None:
        self.link = link
        self.access = access
        self.volume = Volume()
        #: how often one packet may be put on the link again; None: any number of times
        self.retries = retries
        self._probe = probe
        #: by flow: acknowledgement numbers and windows of what came over the link lately, the latest last
        self._acks: OrderedDict[Flow, OrderedDict[tuple[int, int | None], None]] = OrderedDict()

    def from_ip(self, packet: Any, now: int) -> Passed:
        """Hand over a tagged packet of the IP side."""
        volume = self.volume
        volume.packets += 1
        volume.nbytes += len(packet)
        self.link.handle_packet(packet, 0)
        passed = self._drain(now)
        if passed.to_ip:
            raise RuleBrokenError(f"a packet of the IP side made {passed.to_ip} leave there")
        fresh = self._sort_out(passed.to_link, packet)
        if len(fresh) != 1:
            raise RuleBrokenError(f"{self._words(packet)} of the IP side came out {len(fresh)} times")
        self._check_same(packet, fresh[0])
        self._maybe_probe(now)
        return passed

    def from_link(self, packet: Any, now: int) -> Passed:
        """Hand over a tagged packet that has crossed the link."""
        volume = self.volume
        volume.packets += 1
        volume.nbytes += len(packet)
        view = self.access.view(packet)
        self.link.handle_frame(PlainFrame(packet), now)
        passed = self._drain(now)
        if self._sort_out(passed.to_link, None):
            raise RuleBrokenError(f"{self._words(packet)} of the link made something new leave there")
        if len(passed.to_ip) > 1:
            raise RuleBrokenError(f"{self._words(packet)} of the link came out {len(passed.to_ip)} times")
        if passed.to_ip:
            self._check_same(packet, passed.to_ip[0])
        else:
            volume.held_back += 1
            self._check_pure_dupack(packet, view)
        if view is None:
            volume.unknown += 1
        elif view.flags & ACK:
            self._remember(view)
        self._maybe_probe(now)
        return passed

    def expire(self, now: int) -> Passed:
        """Handle all that is due."""
        to_link: list[Any] = []
        guesses: list[Guess] = []
        for _ in range(_MOST_EXPIRIES):
            at = self.link.next_deadline()
            if at is None or at > now:
                return Passed(tuple(to_link), (), tuple(guesses))
            self.volume.expiries += 1
            self.link.handle_deadline(now)
            passed = self._drain(now)
            if passed.to_ip:
                raise RuleBrokenError(f"a deadline made {passed.to_ip} leave")
            if self._sort_out(passed.to_link, None):
                raise RuleBrokenError("a deadline made something new leave for the link")
            to_link += passed.to_link
            guesses += passed.guesses
        raise RuleBrokenError(f"next_deadline is still {at} at {now}, handled {_MOST_EXPIRIES} times: it would spin")

    def _drain(self, now: int) -> Passed:
        link = self.link
        to_link, to_ip, guesses = [], [], []
        while (frame := link.poll_frame(now)) is not None:
            to_link.append(frame.payload)
        while (found := link.poll_packet()) is not None:
            to_ip.append(found[0])
        while link.poll_given_up() is not None:
            pass
        poll_guess = getattr(link, "poll_guess", None)
        if poll_guess is not None:
            while (guess := poll_guess()) is not None:
                guesses.append(guess)
                if guess.at > now or not 0 <= guess.seq <= MASK:
                    raise RuleBrokenError(f"at {now}: {guess}")
        self.volume.guesses += len(guesses)
        return Passed(tuple(to_link), tuple(to_ip), tuple(guesses))

    def _sort_out(self, packets: Iterable[Any], own: Any) -> list[Any]:
        """Return what leaves for the link and is not sent again; check and count what is."""
        fresh = []
        nbytes = 0
        volume = self.volume
        for packet in packets:
            if packet is own and own is not None:
                own = None
                fresh.append(packet)
                continue
            if not isinstance(packet, TaggedOctets | TaggedSegment):
                fresh.append(packet)
                continue
            if packet.side != "ip":
                raise RuleBrokenError(f"{self._words(packet)} came over the link and goes back there")
            self._check_untouched(packet)
            view = self.access.view(packet)
            if view is None or view.flags & RST or not (view.length or view.flags & (SYN | FIN)):
                raise RuleBrokenError(f"{self._words(packet)} was put on the link again")
            packet.again += 1
            if self.retries is not None and packet.again > self.retries:
                raise RuleBrokenError(f"{self._words(packet)} was put on the link again {packet.again} times")
            volume.retransmissions += 1
            nbytes += len(packet)
            volume.most_often = max(volume.most_often, packet.again)
        volume.retransmitted_bytes += nbytes
        volume.most_bytes_at_once = max(volume.most_bytes_at_once, nbytes)
        return fresh

    def _check_same(self, came: Any, leaves: Any) -> None:
        """A packet leaves as it came, but for an option of ours."""
        self._check_untouched(came)
        if leaves is came:
            return
        self.volume.changed += 1
        old, new = self.access.view(came), self.access.view(leaves)
        if old is None or new is None:
            raise RuleBrokenError(f"{self._words(came)} became {self._words(leaves)}")
        if any(option.kind in (_MD5, _AO) for option in old.extra):
            raise RuleBrokenError(f"{self._words(came)} is signed and was changed")
        if old.length and new.nbytes > old.nbytes:
            raise RuleBrokenError(f"{self._words(came)} carries data and grew")
        if _others(old) != _others(new) or not set(new.sack) <= set(old.sack):
            raise RuleBrokenError(f"{self._words(came)} became {self._words(leaves)}")
        if isinstance(came, bytes) and _beyond_segment(came) != _beyond_segment(leaves):
            raise RuleBrokenError(f"{self._words(came)}: its header was changed")

    def _check_untouched(self, packet: Any) -> None:
        if packet.said is not None and packet.said != fields(packet):
            raise RuleBrokenError(f"{packet.said} was changed in place: {self._words(packet)}")

    def _remember(self, view: Segment) -> None:
        acks = self._acks.get(view.flow)
        if acks is None:
            acks = self._acks[view.flow] = OrderedDict()
            if len(self._acks) > _REMEMBERED_FLOWS:
                self._acks.popitem(last=False)
        # a SYN's window is of another scale
        window = None if view.flags & SYN else view.window
        acks[view.ack, window] = None
        acks.move_to_end((view.ack, window))
        if len(acks) > _REMEMBERED_ACKS:
            acks.popitem(last=False)
        self._acks.move_to_end(view.flow)

    def _check_pure_dupack(self, packet: Any, view: Segment | None) -> None:
        """Only a pure ACK that repeats number and window of one that has passed may be held back (RFC 5681 section 2).

        With SACK blocks it is the number alone, and the news is in the blocks (RFC 6675 section 2); of a SYN it is the
        number, too, since its window is of another scale.
        """
        if view is None:
            raise RuleBrokenError(f"{self._words(packet)} was swallowed")
        if view.length or view.flags & (SYN | FIN | RST) or not view.flags & ACK:
            raise RuleBrokenError(f"{view} was swallowed")
        acks = self._acks.get(view.flow, ())
        if {(view.ack, view.window), (view.ack, None)}.isdisjoint(acks) and not (
            view.sack and any(view.ack == ack for ack, _ in acks)
        ):
            raise RuleBrokenError(f"{view} was swallowed: the ACKs before were {list(acks)[-5:]}")

    def _maybe_probe(self, now: int) -> None:
        """Handle a deadline early, now and then."""
        if self.volume.packets % self._probe:
            return
        at = self.link.next_deadline()
        if at is not None and at <= now:
            return
        self.link.handle_deadline(now)
        passed = self._drain(now)
        if any(passed) or self.link.next_deadline() != at:
            raise RuleBrokenError(
                f"handle_deadline at {now}, early for {at}: {passed}, then {self.link.next_deadline()}"
            )

    def _words(self, packet: Any) -> str:
        view = self.access.view(packet)
        if view is not None:
            return f"{view.flow} {view}"
        return packet[:80].hex() if isinstance(packet, bytes) else repr(packet)


def _others(segment: Segment) -> tuple[Any, ...]:
    """What no filter may change."""
    return (
        segment.flow, segment.seq, segment.ack, segment.flags, segment.window, segment.length, segment.payload,
        segment.timestamps, segment.syn, segment.ecn, segment.number,
        tuple(option for option in segment.extra if not _is_ours(option) and option.kind != _SACK),
    )  # fmt: skip


def _is_ours(option: Option) -> bool:
    return option == ELN or (option.kind == _EXPERIMENTAL and option.data.startswith(SMART_EXID))


def _beyond_segment(octets: bytes) -> tuple[int, ...]:
    """What of a packet is in no segment: DSCP, the fragment field, TTL, reserved bits, the urgent pointer."""
    return (octets[0], octets[1], octets[6], octets[7], octets[8], octets[32] & 15, octets[38], octets[39])


def footprint(*roots: object) -> int:
    """Return the octets of all that can be reached from `roots`, code apart; a packet's size counts in full."""
    seen: set[int] = set()
    waiting: list[Any] = list(roots)
    total = 0
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, type | ModuleType | FunctionType | BuiltinFunctionType):
            continue
        seen.add(id(item))
        total += len(item) if isinstance(item, Segment) else sys.getsizeof(item)
        waiting += gc.get_referents(item)
    return total


#: hosts of the valid flows
MOBILE: Final = 0x0A00_0001
FIXED: Final = 0x0A00_0002


# -- the attacker --------------------------------------------------------------------------------------------


class Shot(NamedTuple):
    """A packet to be handed over on one side: a segment, or octets that are none."""

    side: Side
    packet: Segment | bytes


def checksum(octets: bytes) -> int:
    """The Internet checksum (RFC 1071), word by word."""
    total: int = sum(struct.unpack(f">{(len(octets) + 1) // 2}H", octets + bytes(len(octets) % 2)))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def with_checksums(octets: bytes) -> bytes:
    """Return the packet with both checksums made right, wherever its header says they are."""
    packet = bytearray(octets)
    ihl = (packet[0] & 15) * 4
    packet[10:12] = b"\0\0"
    packet[10:12] = checksum(bytes(packet[:ihl])).to_bytes(2, "big")
    packet[ihl + 16 : ihl + 18] = b"\0\0"
    tcp = bytes(packet[ihl:])
    pseudo = bytes(packet[12:20]) + bytes((0, packet[9])) + len(tcp).to_bytes(2, "big")
    packet[ihl + 16 : ihl + 18] = checksum(pseudo + tcp).to_bytes(2, "big")
    return bytes(packet)


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
    "fill",
)  # fmt: skip
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
        """Return the next segment of the conversation."""
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
        """Old news."""
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
    """A flow that has hardly been seen before."""
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
        return with_checksums(bytes(octets))
    elif how == 5:
        words = rng.randrange(1, 11)
        octets[20:20] = rng.randbytes(4 * words)
        octets[0] = 0x45 + words
        octets[2:4] = min(len(octets), 0xFFFF).to_bytes(2, "big")
        return with_checksums(bytes(octets))
    elif how == 6:
        return bytes((0x60, 0, 0, 0)) + len(octets[20:]).to_bytes(2, "big") + b"\x06\x40" + bytes(octets[:32] + octets)
    elif how == 7:
        # UDP, ESP, AH, ICMP, IP in IP, anything
        octets[9] = rng.choice((17, 50, 51, 1, 4, 47, rng.getrandbits(8)))
        return with_checksums(bytes(octets))
    elif how == 8:
        octets[32] = rng.getrandbits(8)
        return with_checksums(bytes(octets))
    elif how == 9:
        # any octets where options go
        nbytes = 4 * rng.randrange(1, 11)
        octets = octets[:40] + rng.randbytes(nbytes) + octets[40:1000]
        octets[32] = (20 + nbytes) << 2
        octets[2:4] = len(octets).to_bytes(2, "big")
        return with_checksums(bytes(octets))
    elif how == 10:
        # what no field of ours stands for, with right checksums: DSCP, hops, reserved bits, urgent pointer
        octets[1] = rng.getrandbits(8)
        octets[8] = rng.getrandbits(8)
        octets[32] |= rng.getrandbits(4)
        octets[38:40] = rng.randbytes(2)
        return with_checksums(bytes(octets))
    elif how == 11:
        return bytes(octets) + rng.randbytes(rng.randrange(1, 40))
    elif how == 12:
        octets[2:4] = rng.getrandbits(16).to_bytes(2, "big")
        return with_checksums(bytes(octets))
    else:
        octets[0] = rng.getrandbits(8)
    return bytes(octets)


class Attacker:
    """Draws packets for both sides of an end; `forge` gives segments of others' flows to forge in, newest last.

    `forge_data`: whether forged segments carry data, which would reach a receiver like anybody's.
    """

    def __init__(
        self, rng: Random, *, talks: int = 200, forge: deque[Segment] | None = None, forge_data: bool = False
    ) -> None:
        self._rng = rng
        self._talks = [Talk(rng, self._known_flow()) for _ in range(talks)]
        self._forge = forge
        self._forge_data = forge_data

    def next(self) -> Shot:
        """Return the next packet."""
        rng = self._rng
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
        rng = self._rng
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
