"""What the frames of a run tell of its packets: when each left the link, what protected it, and what came instead.

Rules kept

- When a packet left the link is known on tier `model`. Elsewhere it is the arrival of the frame that completed it, and
  not known where a combination of packets restored it.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

from common.sides import SIDES, Side, other
from testbed.exports.futures import Octets
from testbed.exports.story import Fate
from testbed.exports.timeline import Frame, Packet, Timeline

_NUMBERED: Final = frozenset("SFR")
_HALF: Final = 1 << 31


class Crossing(NamedTuple):
    """How a packet left the link."""

    time_ns: int
    #: whose arrival let it leave; None: not known
    frame: Frame | None
    #: whether from redundancy
    restored: bool
    #: since that arrival, in which the link held it; None: not known
    held_ns: int | None


class Evidence:
    """The frames of a timeline with passings, and what they tell of its packets."""

    def __init__(self, timeline: Timeline, octets: Octets) -> None:
        self._timeline = timeline
        self._packets = timeline.packets
        self._octets = octets
        self.end_ns = _end_ns(timeline)

    def packet_of(self, frame: Frame) -> Packet | None:
        """Return the packet that a frame carried, or a piece of."""
        return None if frame.packet is None else self._packets[frame.packet]

    def sent_ns(self, packet: Packet) -> int:
        """Return when a packet was sent, or first seen."""
        sent_ns = self._octets.sent_ns(packet.number)
        if sent_ns is not None:
            return sent_ns
        return min((frame.start_ns for frame in self._octets.frames_of(packet.number)), default=self.end_ns)

    def transmissions(self, packet: Packet) -> list[Packet]:
        """Return all transmissions of a SYN or FIN; of other packets without data the packet alone."""
        flags = numbered(packet)
        if not flags:
            return [packet]
        same = (packet.flow, packet.connection, packet.seq)
        return [
            each
            for each in self._packets
            if (each.flow, each.connection, each.seq) == same and flags <= set(each.flags or "")
        ]

    @cached_property
    def carriers(self) -> Mapping[Side, Sequence[Frame]]:
        """The frames that carried packets, of each direction."""
        frames = self._timeline.frames
        return {side: [each for each in frames if each.side == side and each.packet is not None] for side in SIDES}

    def fate(self, frame: Frame) -> Fate:
        """Return what became of what a lost frame carried."""
        packet = self.packet_of(frame)
        if packet is None:
            if is_redundancy(frame):
                return "not needed" if all(map(self.has_crossed, self.protected(frame))) else "lost"
            return "open" if self.successor(frame) is None else "by a later one"
        if packet.length and packet.offset is not None:
            return self._octets.life(packet.flow, packet.connection or 0, packet.offset).fate
        if self.has_crossed(packet.number):
            return "by the link"
        if packet.seq is None:
            return "lost"
        if any(self.has_crossed(each.number) for each in self.transmissions(packet)):
            return "by TCP"
        return "open" if self.later_ack(frame, packet) is None else "by a later one"

    def later_ack(self, frame: Frame, packet: Packet) -> Frame | None:
        """Return the next frame that brought an ACK of as much; None: none did, or the packet is no mere ACK."""
        if packet.ack is None or numbered(packet):
            return None
        for each in self._since(self.carriers[frame.side], frame.sent_ns):
            later = self.packet_of(each)
            if not self._arrives(each) or later is None or later.ack is None:
                continue
            if (later.flow, later.connection) != (packet.flow, packet.connection):
                continue
            if later.number != packet.number and not (later.ack - packet.ack) & _HALF:
                return each
        return None

    def successor(self, frame: Frame) -> Frame | None:
        """Return the next frame of the same kind that arrived."""
        for each in self._since(self._control[frame.side], frame.sent_ns):
            same = each.kind == frame.kind and each.fields.get("channel") == frame.fields.get("channel")
            if same and self._arrives(each) and each.number != frame.number:
                return each
        return None

    def protected(self, redundancy: Frame) -> set[int]:
        """Return the numbers of the packets that redundancy protects."""
        among: Iterable[Frame] = self.carriers[redundancy.side]
        if redundancy.fields.get("block") is not None:
            among = self._blocks[_block(redundancy)]
        return {each.packet for each in among if each.packet is not None and redundancy.protects(each)}

    def redundancy(self, carriers: Sequence[Frame]) -> list[Frame]:
        """Return the redundancy that was sent for the packet of these frames."""
        if not carriers:
            return []
        return [
            each
            for each in self._since(self._control[carriers[0].side], carriers[0].start_ns)
            if is_redundancy(each) and any(each.protects(carrier) for carrier in carriers)
        ]

    def has_crossed(self, packet: int) -> bool:
        """Whether a packet, by its number, left the link."""
        if self._timeline.crossed:
            return packet in self._crossings
        carriers = self._octets.frames_of(packet)
        return self._completed(carriers) is not None or any(
            said == "come" for _, said in self.link_acks(carriers, settled=False)
        )

    def crossing(self, packet: Packet) -> Crossing | None:
        """Return how a packet left the link, if it did and the time is known."""
        carriers = self._octets.frames_of(packet.number)
        if not carriers:
            return None
        completed = self._completed(carriers)
        crossed_ns = self._crossings.get(packet.number) if self._timeline.crossed else None
        if crossed_ns is None:
            if completed is None or self._timeline.crossed:
                return None
            frame, restored = completed
            return Crossing(arrival_ns(frame), frame, restored, None)
        if completed is None or arrival_ns(completed[0]) > crossed_ns:
            # combinations of packets, which only a decoder can tell
            arrived = [
                each for each in self.redundancy(carriers) if each.fate == "ok" and arrival_ns(each) <= crossed_ns
            ]
            last, restored = (arrived[-1] if arrived else None), True
        else:
            last, restored = completed
        return Crossing(crossed_ns, last, restored, None if last is None else crossed_ns - arrival_ns(last))

    def link_acks(self, carriers: Sequence[Frame], *, settled: bool = True) -> Iterator[tuple[Frame, str]]:
        """Yield the link's ACKs that first told that a frame was missing, and the one that settled the packet.

        Without `settled` only one that says that the packet has come.
        """
        if not carriers:
            return
        missing: set[int] = set()
        for ack in self._since(self._control[other(carriers[0].side)], carriers[0].sent_ns):
            if ack.kind != "ack" or not self._arrives(ack):
                continue
            said = {each.number: ack.tells(each) for each in carriers if each.sent_ns <= ack.start_ns}
            if "come" in said.values() or (settled and "settled" in said.values()):
                yield ack, "come" if "come" in said.values() else "settled"
                return
            new = {number for number, what in said.items() if what == "missing"} - missing
            if new and settled:
                missing |= new
                yield ack, "missing"

    @cached_property
    def _control(self) -> Mapping[Side, Sequence[Frame]]:
        frames = self._timeline.frames
        return {side: [each for each in frames if each.side == side and each.packet is None] for side in SIDES}

    @cached_property
    def _blocks(self) -> Mapping[tuple[Any, ...], Sequence[Frame]]:
        """The frames of each FEC block."""
        found: dict[tuple[Any, ...], list[Frame]] = {}
        for frame in self._timeline.frames:
            if frame.fields.get("block") is not None:
                found.setdefault(_block(frame), []).append(frame)
        return found

    @cached_property
    def _crossings(self) -> Mapping[int, int]:
        """The first time at which each packet left the link, where that was seen."""
        return {passing.packet: passing.time_ns for passing in reversed(self._timeline.crossed)}

    def _completed(self, carriers: Sequence[Frame]) -> tuple[Frame, bool] | None:
        """Return the frame whose arrival completed a packet, and whether from redundancy; None: none, or not known."""
        found = []
        if carriers:
            pieces = carriers[0].fields
            whole = _nth(carriers, pieces["data"]) if "total" in pieces else _nth(carriers, 1)
            if whole is not None:
                found.append((whole, "total" in pieces and whole.fields["index"] >= pieces["data"]))
        for block in {_block(each) for each in carriers if each.fields.get("block") is not None}:
            symbols = self._blocks[block]
            actual = next((each.fields["actual"] for each in symbols if "actual" in each.fields), None)
            restored = None if actual is None else _nth(symbols, actual)
            if restored is not None:
                found.append((restored, True))
        return min(found, key=lambda each: (arrival_ns(each[0]), each[1]), default=None)

    def _arrives(self, frame: Frame) -> bool:
        """Whether a frame arrived whole before the run ended: on tier model those on their way have a fate, too."""
        return frame.fate == "ok" and frame.arrived_ns is not None and frame.arrived_ns <= self.end_ns

    @staticmethod
    def _since(frames: Sequence[Frame], time_ns: int) -> Iterator[Frame]:
        """Yield the frames that were sent at a time or later."""
        for index in range(bisect_left(frames, time_ns, key=_sent_ns), len(frames)):
            yield frames[index]


def numbered(packet: Packet) -> frozenset[str]:
    """Return those flags of a segment that TCP repeats until they are acknowledged, and RST."""
    return _NUMBERED & set(packet.flags or "")


def is_redundancy(frame: Frame) -> bool:
    """Whether a frame has nothing but redundancy."""
    return frame.packet is None and (frame.kind == "fec" or "members" in frame.fields)


def arrival_ns(frame: Frame) -> int:
    """Return when a frame arrived that has."""
    assert frame.arrived_ns is not None
    return frame.arrived_ns


def _end_ns(timeline: Timeline) -> int:
    """Return when a run ended: with its last record or event."""
    passings = (*timeline.sent, *timeline.received, *timeline.crossed)
    times = [passing.time_ns for passing in passings]
    times += [rows[-1]["time_ns"] for rows in timeline.records.values() if rows]
    times += [frame.sent_ns for frame in timeline.frames[-1:]]
    if timeline.epoch_ns is not None:
        # in captures what has arrived has arrived before the end
        times += [frame.arrived_ns for frame in timeline.frames if frame.arrived_ns is not None]
    return max(times, default=0)


def _block(frame: Frame) -> tuple[Any, ...]:
    return frame.side, frame.fields.get("tag"), frame.fields.get("channel"), frame.fields["block"]


def _nth(frames: Iterable[Frame], count: int) -> Frame | None:
    """Return the frame with which `count` of different index have arrived; None: so many have not."""
    seen = set()
    for frame in sorted((each for each in frames if each.fate == "ok"), key=arrival_ns):
        seen.add(frame.fields.get("index", 0))
        if len(seen) >= count:
            return frame
    return None


def _sent_ns(frame: Frame) -> int:
    return frame.sent_ns
