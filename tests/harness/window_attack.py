"""Packets that know the filter `window`: handshakes, resets and jumps in few flows, whole and mutated.

Read first: `linklayer/filters/window.py`. `attacker.py` draws packets for any filter; few of those open a connection.

`assault` raises `RuleBrokenError` unless each packet leaves once, on the other side; as the very object that came, or
with a smaller window that is not closed and is otherwise the same; and unless a valid connection beside them keeps its
share of a segment at least, its edges and its place.
"""

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from common.sequence import MASK
from common.units import MS
from linklayer.filters.window import MAX_FLOWS, MAX_OPENING, SharedWindow
from tcpip.access import Access, Octets
from tcpip.segment import ACK, FIN, RST, SYN, Flow, Segment, SynOptions
from tcpip.wire import emit
from tests.harness.checked import RuleBrokenError, fields, footprint

SHARED_BYTES: Final = 8000
_IDLE_NS: Final = 500 * MS
#: share of whole handshakes among the packets
_HANDSHAKES: Final = 0.2
#: packets between two of the valid connection's
_BETWEEN: Final = 50
_VALID: Final = Flow(9, 5001, 8, 80)
_MSS, _SCALE, _ISS, _IRS = 1000, 3, 2**32 - 5, 2**32 - 90_000
#: by how often: an ACK, a SYN, a SYN-ACK, FIN, RST, nonsense
_FLAGS: Final = (ACK, ACK, ACK, SYN, SYN | ACK, FIN | ACK, RST, RST | ACK, 0, SYN | FIN, 0xFF)
_WINDOWS: Final = (0, 1, 500, 8000, 65_535)
_NUMBERS: Final = (0, 1, 2, 1000, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF)
#: octets held beside the connections, and for each of them, at most
_MOST_HELD: Final = 100_000 + 1000 * (2 * MAX_FLOWS + MAX_OPENING)


def _segment(rng: Random) -> Segment:
    """One of some two thousand flows; numbers that often fit those of the same flow before."""
    if rng.random() < 0.3:
        # of those that have opened
        flow = Flow(1, 5002, 3, rng.getrandbits(12))
    else:
        flow = Flow(1, 5001, 2, rng.getrandbits(11) if rng.random() < 0.5 else rng.getrandbits(3))
    flags = rng.choice(_FLAGS)
    syn = SynOptions(rng.choice((None, 1, 536, 65_535)), rng.choice((None, 0, 7, 14, 255))) if flags & SYN else None
    seq, ack = (rng.choice(_NUMBERS) if rng.random() < 0.9 else rng.getrandbits(32) for _ in range(2))
    length = rng.choice((0, 0, 1000))
    return Segment(flow, seq, ack, flags, rng.choice(_WINDOWS), length, bytes(length) or None, syn=syn)


def _mutated(rng: Random, packet: bytes) -> bytes:
    octets = bytearray(packet)
    for _ in range(rng.choice((1, 2, 8))):
        octets[rng.randrange(len(octets))] ^= 1 << rng.randrange(8)
    return bytes(octets[: rng.randrange(len(octets) + 1)]) if rng.random() < 0.2 else bytes(octets)


class _Valid:
    """A connection with a peer that sends all that it may, as fast as can be."""

    def __init__(self, assault: "_Assault") -> None:
        self._assault = assault
        self.acked = self.edge = 0
        syn = SynOptions(_MSS, _SCALE)
        opened = self._send(Segment(_VALID, _ISS, self._number(0), SYN | ACK, 65_535, syn=syn))
        self.edge = opened.window
        self._come(ACK)

    def _number(self, octets: int) -> int:
        return (_IRS + 1 + octets) & MASK

    def _come(self, flags: int) -> None:
        back = _VALID.reversed()
        self._assault.offer(Segment(back, self._number(self.acked), (_ISS + 1) & MASK, flags, 99), from_host=False)

    def _send(self, segment: Segment) -> Segment:
        return self._assault.offer(segment, from_host=True)

    def step(self) -> None:
        """All that was offered comes, and the host acknowledges it with its whole buffer."""
        self.acked = self.edge
        left = self._send(Segment(_VALID, (_ISS + 1) & MASK, self._number(self.acked), ACK, 65_535))
        window = left.window << _SCALE
        if not _MSS <= window <= SHARED_BYTES:
            raise RuleBrokenError(f"the valid connection was offered {window} octets")
        self.edge = self.acked + window


class _Assault:
    def __init__(self, access: Access, rng: Random) -> None:
        self.filter = SharedWindow(access, SHARED_BYTES, _IDLE_NS)
        self._access, self._rng, self._octets = access, rng, isinstance(access, Octets)
        self.now = 0
        self.changed = 0
        self.valid = _Valid(self)

    def handshake(self) -> None:
        """A connection that a peer of the attacker's opens, one of as many as are remembered several times over."""
        rng = self._rng
        flow, iss = Flow(1, 5002, 3, rng.getrandbits(12)), rng.getrandbits(32)
        syn = SynOptions(rng.choice((536, 1000)), rng.randrange(15))
        self.offer(Segment(flow, iss, rng.getrandbits(32), SYN | ACK, 65_535, syn=syn), from_host=True)
        self.offer(Segment(flow.reversed(), rng.getrandbits(32), iss + 1 & MASK, ACK, 65_535), from_host=False)

    def offer(self, segment: Segment, *, from_host: bool, mutate: bool = False) -> Segment:
        """Hand over a packet and check it; return the segment that leaves, or the one that came."""
        packet: Any = segment
        if self._octets:
            packet = emit(segment)
            if mutate:
                packet = _mutated(self._rng, packet)
        filter_, before = self.filter, None if self._octets else fields(segment)
        if from_host:
            filter_.handle_to_link(packet, 0, self.now)
        else:
            filter_.handle_from_link(packet, 0, self.now)
        outs = filter_.poll_to_link(), filter_.poll_from_link()
        if filter_.poll_to_link() is not None or filter_.poll_from_link() is not None or filter_.next_deadline():
            raise RuleBrokenError(f"{segment} left twice, or something is due")
        passed, other = outs if from_host else outs[::-1]
        if passed is None or other is not None:
            raise RuleBrokenError(f"{segment} left on the wrong side or not at all")
        if passed[0] is packet:
            return segment
        self.changed += 1
        old, new = self._access.view(packet), self._access.view(passed[0])
        if old is None or new is None or not from_host or new.window > old.window or (old.window and not new.window):
            raise RuleBrokenError(f"{segment} became {new}")
        if before is not None and fields(segment) != before:
            raise RuleBrokenError(f"{segment} was changed in place")
        if fields(self._access.view(self._access.with_window(passed[0], old.window)) or segment) != fields(old):
            raise RuleBrokenError(f"{old} became {new}: more than its window changed")
        return new


def assault(access: Access, packets: int, seed: int) -> Iterator[tuple[int, int]]:
    """Attack a filter; yield the octets that it holds and the windows that it has changed, after each tenth."""
    rng = Random(seed)
    attack = _Assault(access, rng)
    for part in range(10):
        for number in range(packets // 10):
            # so that thousands open before the first is idle, and a pause now and then in which all are
            attack.now += rng.randrange(MS // 10) if rng.random() < 0.9999 else 2 * _IDLE_NS
            if rng.random() < _HANDSHAKES:
                attack.handshake()
            segment, from_host = _segment(rng), rng.random() < 0.5
            if not from_host:
                segment = Segment(
                    segment.flow.reversed(), segment.seq, segment.ack, segment.flags, segment.window, segment.length,
                    segment.payload, syn=segment.syn,
                )  # fmt: skip
            attack.offer(segment, from_host=from_host, mutate=rng.random() < 0.3)
            if number % _BETWEEN == 0:
                attack.valid.step()
        held = footprint(attack.filter)
        if held > _MOST_HELD:
            raise RuleBrokenError(f"{held} octets are held in part {part}")
        yield held, attack.changed
