"""Two runs with one past: what each made of the octets whose frames the other lost.

Rules kept

- The past is compared, not assumed: frames, packets and records up to the time must be equal. Of a frame that is on its
  way at the time, what becomes of it is no past.
- Of a run on a live tier the captures know when stations had a packet, and not when hosts had it: it is sent when its
  first frame begins, and an ACK is received when a frame with it first arrives.
- A loss is a frame with TCP's data that did not arrive whole. Its first octet stands for it: the other run may have cut
  the stream into other packets.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from common.sequence import MASK
from common.sides import Side
from testbed.errors import FadelabError
from testbed.exports.timeline import Frame, Packet, Timeline

#: what became of an octet: it crossed at once, the link repaired it, TCP sent it again, it was not acknowledged when
#: the run ended, or TCP did not come to send it
Fate = Literal["at once", "by the link", "by TCP", "open", "not sent"]
FATES: Final[tuple[Fate, ...]] = ("at once", "by the link", "by TCP", "open", "not sent")
_HALF: Final = 1 << 31
#: records of TCP and of the link; those of a receiver are means of what has been compared already
_KINDS: Final = ("tcp", "link")


@dataclass(frozen=True, slots=True)
class Life:
    """What became of an octet."""

    fate: Fate
    #: times that TCP sent it, and frames with it that did not arrive whole
    transmissions: int
    lost_frames: int
    #: from its first transmission by TCP to its acknowledgement; None: unknown, or not acknowledged
    acked_ms: float | None


@dataclass(frozen=True, slots=True)
class Loss:
    """A frame with data that one run lost, and what became of its first octet in both."""

    time_s: float
    side: Side
    flow: str
    connection: int
    octet: int
    length: int
    here: Life
    there: Life


class Octets:
    """The octets of TCP in a timeline with passings."""

    def __init__(self, timeline: Timeline) -> None:
        self._packets = timeline.packets
        self._frames: dict[int, list[Frame]] = {}
        for frame in timeline.frames:
            if frame.packet is not None:
                self._frames.setdefault(frame.packet, []).append(frame)
        self._sent = {passing.packet: passing.time_ns for passing in timeline.sent}
        #: packets with data by offset, and the longest one, by connection
        self._data: dict[tuple[str, int], list[Packet]] = {}
        self._longest: dict[tuple[str, int], int] = {}
        #: sequence number of octet 0, by connection
        bases: dict[tuple[str, int], int] = {}
        for packet in timeline.packets:
            if packet.length and packet.offset is not None and packet.connection is not None:
                assert packet.seq is not None
                key = packet.flow, packet.connection
                self._data.setdefault(key, []).append(packet)
                self._longest[key] = max(self._longest.get(key, 0), packet.length)
                bases.setdefault(key, packet.seq - packet.offset & MASK)
        for packets in self._data.values():
            packets.sort(key=_offset)
        #: ACKs that reached the host of the data sender, as time, octets acknowledged and packet, by connection
        self._answers: dict[tuple[str, int], list[tuple[int, int, Packet]]] = {}
        #: times, and the octets acknowledged by then, by connection
        self._acked: dict[tuple[str, int], tuple[list[int], list[int]]] = {}
        for passing in timeline.received:
            packet = timeline.packets[passing.packet]
            key = packet.flow, packet.connection or 0
            if packet.ack is None or key not in bases:
                continue
            acked = packet.ack - bases[key] & MASK
            if acked >= _HALF:
                continue
            self._answers.setdefault(key, []).append((passing.time_ns, acked, packet))
            times, octets = self._acked.setdefault(key, ([], []))
            if acked > (octets[-1] if octets else 0):
                times.append(passing.time_ns)
                octets.append(acked)

    def losses(self, from_ns: int) -> Iterator[tuple[Frame, Packet]]:
        """Yield the frames with data, sent at that time or later, that did not arrive whole, and their packets."""
        lost = [
            frame for frames in self._frames.values() for frame in frames if frame.lost and frame.sent_ns >= from_ns
        ]
        for frame in sorted(lost, key=lambda frame: frame.sent_ns):
            assert frame.packet is not None
            packet = self._packets[frame.packet]
            if packet.length and packet.offset is not None:
                yield frame, packet

    def life(self, flow: str, connection: int, octet: int) -> Life:
        """Return what became of an octet."""
        with_it = self.packets_with(flow, connection, octet)
        sent = [self._sent[packet.number] for packet in with_it if packet.number in self._sent]
        lost = sum(frame.lost for packet in with_it for frame in self._frames.get(packet.number, ()))
        acked_ns = self.acked_ns(flow, connection, octet)
        acked_ms = None if acked_ns is None or not sent else (acked_ns - min(sent)) / 1e6
        return Life(self._fate(len(with_it), lost, acked_ns), len(with_it), lost, acked_ms)

    def packets_with(self, flow: str, connection: int, octet: int) -> list[Packet]:
        """Return the packets with an octet, by number."""
        packets = self._data.get((flow, connection), [])
        first = bisect_right(packets, octet - self._longest.get((flow, connection), 0), key=_offset)
        last = bisect_right(packets, octet, key=_offset)
        return sorted((each for each in packets[first:last] if each.has(octet)), key=lambda packet: packet.number)

    def frames_of(self, packet: int) -> Sequence[Frame]:
        """Return the frames that carried a packet, by number, in the order of their ends."""
        return self._frames.get(packet, ())

    def sent_ns(self, packet: int) -> int | None:
        """Return when a host sent a packet; None: none of the data's senders did."""
        return self._sent.get(packet)

    def answers(self, flow: str, connection: int) -> Sequence[tuple[int, int, Packet]]:
        """Return the ACKs that reached the data's sender, as time, octets acknowledged and packet, in order of time."""
        return self._answers.get((flow, connection), ())

    def acked(self, until_ns: int | None = None) -> int:
        """Return the octets of all connections that were acknowledged up to a time, or to the end."""
        total = 0
        for times, octets in self._acked.values():
            at = len(times) if until_ns is None else bisect_right(times, until_ns)
            total += octets[at - 1] if at else 0
        return total

    def acked_ns(self, flow: str, connection: int, octet: int) -> int | None:
        """Return when an octet was acknowledged; None: it was not."""
        times, octets = self._acked.get((flow, connection), ((), ()))
        at = bisect_right(octets, octet)
        return times[at] if at < len(times) else None

    @staticmethod
    def _fate(transmissions: int, lost: int, acked_ns: int | None) -> Fate:
        if not transmissions:
            return "not sent"
        if acked_ns is None:
            return "open"
        if transmissions > 1:
            return "by TCP"
        return "by the link" if lost else "at once"


def _offset(packet: Packet) -> int:
    assert packet.offset is not None
    return packet.offset


@dataclass(frozen=True)
class Futures:
    """Two runs from a time on. `here` is the run that was, `there` the one that might have been."""

    #: frames, packets and records that are equal up to the time
    equal: Mapping[str, int]
    #: losses of the one, and what the other made of the same octets
    here: Sequence[Loss]
    there: Sequence[Loss]
    #: octets acknowledged from the time on
    acked_here: int
    acked_there: int

    def table(self) -> Counter[tuple[Fate, Fate]]:
        """Return the losses of the run that was, by what became of them here and there."""
        return Counter((loss.here.fate, loss.there.fate) for loss in self.here)


def futures(here: Timeline, there: Timeline, at_ns: int) -> Futures:
    """Return the futures of two runs that differ from a time on. Raises FadelabError when they differ before."""
    here, there = here.with_passings(), there.with_passings()
    equal = {
        "frames": _equal("frame", _frames(here, at_ns), _frames(there, at_ns)),
        "packets": _equal("packet", _packets(here, at_ns), _packets(there, at_ns)),
        "records": _equal("record", _records(here, at_ns), _records(there, at_ns)),
    }
    ours, theirs = Octets(here), Octets(there)
    return Futures(
        equal=equal,
        here=_losses(ours, theirs, at_ns),
        there=_losses(theirs, ours, at_ns),
        acked_here=ours.acked() - ours.acked(at_ns),
        acked_there=theirs.acked() - theirs.acked(at_ns),
    )


def _losses(ours: Octets, theirs: Octets, at_ns: int) -> list[Loss]:
    found = []
    for frame, packet in ours.losses(at_ns):
        assert packet.offset is not None
        flow, connection = packet.flow, packet.connection or 0
        found.append(
            Loss(
                time_s=frame.sent_ns / 1e9,
                side=frame.side,
                flow=flow,
                connection=connection,
                octet=packet.offset,
                length=packet.length or 0,
                here=ours.life(flow, connection, packet.offset),
                there=theirs.life(flow, connection, packet.offset),
            )
        )
    return found


def _frames(timeline: Timeline, until_ns: int) -> list[Any]:
    return [_until(frame, until_ns) for frame in timeline.frames if frame.sent_ns < until_ns]


def _until(frame: Frame, until_ns: int) -> Frame:
    """Return what is known of a frame by a time."""
    if frame.arrived_ns is not None and frame.arrived_ns < until_ns:
        # the recording's clock is fitted to the whole run
        return replace(frame, heard_ns=None)
    return replace(frame, arrived_ns=None, heard_ns=None, fate="", samples=None)


def _packets(timeline: Timeline, until_ns: int) -> list[Any]:
    passings = [*timeline.sent, *timeline.received]
    return [
        # numbers count in the order of the frames' ends, which may come after the time
        (passing.time_ns, replace(timeline.packets[passing.packet], number=0))
        for passing in sorted(passings, key=lambda passing: passing.time_ns)
        if passing.time_ns < until_ns
    ]


def _records(timeline: Timeline, until_ns: int) -> list[Any]:
    return [(kind, dict(row)) for kind in _KINDS for row in timeline.records[kind] if row["time_ns"] < until_ns]


def _equal(what: str, here: Sequence[Any], there: Sequence[Any]) -> int:
    """Return the number of equal entries. Raises FadelabError at the first that differs."""
    if here != there:
        index = next((i for i, pair in enumerate(zip(here, there, strict=False)) if pair[0] != pair[1]), None)
        differs = f"{what} {min(len(here), len(there)) if index is None else index}"
        raise FadelabError(f"the runs differ before the time: {differs} is another; their past is not one")
    return len(here)
