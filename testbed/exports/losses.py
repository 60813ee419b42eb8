"""The lost frames of a run, and the story of each, hop by hop.

Rules kept

- A loss is a frame that did not arrive whole, whatever it carried.
- A frame with data leads to its first octet, and the story is that of the octet: all packets with it, all frames of
  these, and the redundancy that protects them. What became of it is `Octets.life`.
- When a packet left the link is known on tier `model`. Elsewhere it is the arrival of the frame that completed it, and
  not known where a combination of packets restored it.
- A dupack is an ACK without data that repeats the acknowledgement number before it, at a packet with the octet.
- TCP's windows, and its reason to send again, are those of its records: the last before, the first after.

Left out: packets that a queue dropped, which were never on the air; a story has them as transmissions without frames.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from common.sides import SENDERS, SIDES, STATIONS, Side, other
from testbed.errors import FadelabError
from testbed.exports.futures import Octets
from testbed.exports.story import (
    Acknowledged,
    Carried,
    Crossed,
    Dropped,
    Dupacks,
    Ended,
    Event,
    Fate,
    Loss,
    Reason,
    Replaced,
    Sent,
    Story,
    Told,
    Window,
    content_of,
    octets_of,
    way_of,
    words_of,
)
from testbed.exports.timeline import Frame, Packet, Timeline

#: of the flags of a segment those that TCP repeats until they are acknowledged, and RST
_NUMBERED: Final = frozenset("SFR")
_HALF: Final = 1 << 31

_Row = Mapping[str, Any]


class Losses:
    """The losses of a run."""

    def __init__(self, timeline: Timeline) -> None:
        #: packets that a host is known to have sent, and their connections
        self._of_hosts = {passing.packet for passing in timeline.sent}
        self._at_hosts = {_connection(timeline.packets[packet]) for packet in self._of_hosts}
        self._timeline = timeline = timeline.with_passings()
        self._packets = timeline.packets
        self._octets = Octets(timeline)
        self._lost = [frame for frame in timeline.frames if frame.lost]
        self._numbers = {frame.number: number for number, frame in enumerate(self._lost, 1)}
        self._end_ns = _end_ns(timeline)

    def __len__(self) -> int:
        return len(self._lost)

    @cached_property
    def all(self) -> Sequence[Loss]:
        """All losses, in order."""
        return [
            Loss(number, frame, packet, self._fate(frame, packet))
            for number, frame in enumerate(self._lost, 1)
            for packet in [self._packet_of(frame)]
        ]

    @property
    def flows(self) -> list[str]:
        """The names of the flows with packets, in order."""
        return list(dict.fromkeys(packet.flow for packet in self._packets if packet.flow))

    def nearest(self, time_s: float, direction: str = "") -> int | None:
        """Return the number of the loss nearest to a time (s), of one direction or, empty, of both; None: none."""
        fitting = [frame for frame in self._lost if direction in ("", frame.side)]
        if not fitting:
            return None
        return self._numbers[min(fitting, key=lambda frame: abs(frame.sent_ns / 1e9 - time_s)).number]

    def story(self, number: int) -> Story:
        """Return the story of a loss. Raises FadelabError for a number that no loss has."""
        if not 1 <= number <= len(self._lost):
            has = f"losses 1 to {len(self._lost)}" if self._lost else "no losses"
            raise FadelabError(f"loss {number}: there is none; {self._timeline.run} has {has}")
        frame = self._lost[number - 1]
        packet = self._packet_of(frame)
        if packet is None:
            return self._of_control(number, frame)
        if packet.length and packet.offset is not None:
            return self._of_octet(packet, packet.offset, number)
        return self._of_packet(number, frame, packet)

    def of_octet(self, flow: str, connection: int, octet: int) -> Story:
        """Return the story of a payload octet. Raises FadelabError when no packet has it."""
        found = self._octets.packets_with(flow, connection, octet)
        if not found:
            flows = ", ".join(self.flows) or "none"
            raise FadelabError(f"no packet of flow {flow!r} has octet {octet}; the flows are {flows}")
        return self._of_octet(found[0], octet, None)

    # -- what became of a loss -----------------------------------------------------------------------------------

    def _packet_of(self, frame: Frame) -> Packet | None:
        return None if frame.packet is None else self._packets[frame.packet]

    def _fate(self, frame: Frame, packet: Packet | None) -> Fate:
        if packet is None:
            if _is_redundancy(frame):
                return "not needed" if all(map(self._has_crossed, self._protected(frame))) else "lost"
            return "open" if self._successor(frame) is None else "by a later one"
        if packet.length and packet.offset is not None:
            return self._octets.life(packet.flow, packet.connection or 0, packet.offset).fate
        if self._has_crossed(packet.number):
            return "by the link"
        if packet.seq is None:
            return "lost"
        if any(self._has_crossed(each.number) for each in self._transmissions(packet)):
            return "by TCP"
        return "open" if self._later_ack(frame, packet) is None else "by a later one"

    def _transmissions(self, packet: Packet) -> list[Packet]:
        """Return all transmissions of a SYN or FIN; of other packets without data the packet alone."""
        flags = _NUMBERED & set(packet.flags or "")
        if not flags:
            return [packet]
        same = (packet.flow, packet.connection, packet.seq)
        return [
            each
            for each in self._packets
            if (each.flow, each.connection, each.seq) == same and flags <= set(each.flags or "")
        ]

    def _later_ack(self, frame: Frame, packet: Packet) -> Frame | None:
        """Return the next frame that brought an ACK of as much; None: none did, or the packet is no mere ACK."""
        if packet.ack is None or _NUMBERED & set(packet.flags or ""):
            return None
        for each in self._since(self._carriers[frame.side], frame.sent_ns):
            later = self._packet_of(each)
            if not self._arrives(each) or later is None or later.ack is None:
                continue
            if (later.flow, later.connection) != (packet.flow, packet.connection):
                continue
            if later.number != packet.number and not (later.ack - packet.ack) & _HALF:
                return each
        return None

    def _successor(self, frame: Frame) -> Frame | None:
        """Return the next frame of the same kind that arrived."""
        for each in self._since(self._control[frame.side], frame.sent_ns):
            same = each.kind == frame.kind and each.fields.get("channel") == frame.fields.get("channel")
            if same and self._arrives(each) and each.number != frame.number:
                return each
        return None

    # -- what the frames tell ------------------------------------------------------------------------------------

    @cached_property
    def _carriers(self) -> Mapping[Side, Sequence[Frame]]:
        frames = self._timeline.frames
        return {side: [each for each in frames if each.side == side and each.packet is not None] for side in SIDES}

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

    def _arrives(self, frame: Frame) -> bool:
        """Whether a frame arrived whole before the run ended: on tier model those on their way have a fate, too."""
        return frame.fate == "ok" and frame.arrived_ns is not None and frame.arrived_ns <= self._end_ns

    @staticmethod
    def _since(frames: Sequence[Frame], time_ns: int) -> Iterator[Frame]:
        """Yield the frames that were sent at a time or later."""
        for index in range(bisect_left(frames, time_ns, key=_sent_ns), len(frames)):
            yield frames[index]

    def _protected(self, redundancy: Frame) -> set[int]:
        """Return the numbers of the packets that redundancy protects."""
        among: Iterable[Frame] = self._carriers[redundancy.side]
        if redundancy.fields.get("block") is not None:
            among = self._blocks[_block(redundancy)]
        return {each.packet for each in among if each.packet is not None and redundancy.protects(each)}

    def _redundancy(self, carriers: Sequence[Frame]) -> list[Frame]:
        """Return the redundancy that was sent for the packet of these frames."""
        if not carriers:
            return []
        return [
            each
            for each in self._since(self._control[carriers[0].side], carriers[0].start_ns)
            if _is_redundancy(each) and any(each.protects(carrier) for carrier in carriers)
        ]

    @cached_property
    def _crossings(self) -> Mapping[int, int]:
        """The first time at which each packet left the link, where that was seen."""
        return {passing.packet: passing.time_ns for passing in reversed(self._timeline.crossed)}

    def _has_crossed(self, packet: int) -> bool:
        if self._timeline.crossed:
            return packet in self._crossings
        carriers = self._octets.frames_of(packet)
        return self._completed(carriers) is not None or any(
            said == "come" for _, said in self._link_acks(carriers, settled=False)
        )

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
        return min(found, key=lambda each: (_arrived_ns(each[0]), each[1]), default=None)

    def _link_acks(self, carriers: Sequence[Frame], *, settled: bool = True) -> Iterator[tuple[Frame, str]]:
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

    # -- stories -------------------------------------------------------------------------------------------------

    def _of_octet(self, packet: Packet, octet: int, number: int | None) -> Story:
        flow, connection = packet.flow, packet.connection or 0
        life = self._octets.life(flow, connection, octet)
        with_it = sorted(self._octets.packets_with(flow, connection, octet), key=self._sent_at)
        frames = [frame for each in with_it for frame in self._octets.frames_of(each.number)]
        side = self._side_of(flow, connection)
        acked_ns = self._octets.acked_ns(flow, connection, octet)
        began_ns = self._sent_at(with_it[0])
        events: list[Event] = [*self._dupacks(with_it, octet, side, began_ns, acked_ns)]
        reasons: dict[int, Reason | None] = {}
        windows: dict[int, Event] = {}
        for each in with_it[1:]:
            around = self._records_around(flow, self._sent_at(each), self._sent_at(each))
            reasons[each.number] = _reason(around)
            windows |= _window(around, SENDERS[side])
        if len(with_it) == 1:
            until_ns = self._end_ns if acked_ns is None else acked_ns
            windows = _window(self._records_around(flow, began_ns, until_ns), SENDERS[side])
        events += windows.values()
        for transmission, each in enumerate(with_it, 1):
            events += self._sent(each, transmission, side, reasons.get(each.number))
            events += self._link_events(each)
        if acked_ns is None:
            events.append(Ended(time_ns=self._end_ns, place="run", content="the run ends without an ACK of it"))
        else:
            ack = next(ack for at, acked, ack in self._octets.answers(flow, connection) if acked > octet)
            assert ack.ack is not None
            after_ms = life.acked_ms
            place = self._place_of(packet, side)
            events.append(
                Acknowledged(time_ns=acked_ns, place=place, packet=ack.number, ack=ack.ack, after_ms=after_ms)
            )
        return self._made(
            number, side, packet, octets_of(packet), packet.words(), life.fate, frames, events,
            transmissions=life.transmissions, acked_ms=life.acked_ms,
        )  # fmt: skip

    def _of_packet(self, number: int, frame: Frame, packet: Packet) -> Story:
        """Return the story of a packet without data of TCP."""
        fate = self._fate(frame, packet)
        transmissions = self._transmissions(packet)
        frames = [each for one in transmissions for each in self._octets.frames_of(one.number)]
        events: list[Event] = []
        for transmission, each in enumerate(transmissions, 1):
            if _NUMBERED & set(packet.flags or ""):
                events += self._sent(each, transmission, frame.side, None)
            events += self._link_events(each)
        later = self._later_ack(frame, packet) if fate == "by a later one" else None
        if later is not None:
            events.append(self._replaced(later))
        elif fate in ("open", "lost"):
            events.append(Ended(time_ns=self._end_ns, place="run", content="the run ends, and it has not crossed"))
        return self._made(
            number, frame.side, packet, None, content_of(frame, packet), fate, frames, events,
            transmissions=len(transmissions),
        )  # fmt: skip

    def _of_control(self, number: int, frame: Frame) -> Story:
        """Return the story of a frame of the link's own."""
        fate = self._fate(frame, None)
        events: list[Event] = [self._carried(frame, None)]
        if _is_redundancy(frame):
            for packet in sorted(self._protected(frame)):
                events += self._crossed(self._packets[packet])
            if fate == "lost":
                content = "the run ends, and not all packets that it protects have crossed"
                events.append(Ended(time_ns=self._end_ns, place="run", content=content))
        else:
            later = self._successor(frame)
            if later is not None:
                events.append(self._replaced(later))
            else:
                events.append(Ended(time_ns=self._end_ns, place="run", content="the run ends without another one"))
        return self._made(number, frame.side, None, None, content_of(frame, None), fate, [frame], events)

    def _made(
        self,
        number: int | None,
        side: Side,
        packet: Packet | None,
        octets: tuple[int, int] | None,
        content: str,
        fate: Fate,
        frames: Sequence[Frame],
        events: Sequence[Event],
        *,
        transmissions: int = 1,
        acked_ms: float | None = None,
    ) -> Story:
        lost = [frame for frame in frames if frame.lost]
        ordered = sorted(events, key=lambda event: event.time_ns)
        first_ns = min((frame.sent_ns for frame in lost), default=None)
        # of redundancy it is its packets that cross
        ends = () if packet is None and fate in ("not needed", "lost") else (Crossed, Replaced)
        mended = None if first_ns is None else next((e.time_ns for e in ordered if isinstance(e, ends)), None)
        return Story(
            run=self._timeline.run,
            tier=self._timeline.tier,
            scheme=self._timeline.scheme,
            loss=number,
            losses=sorted(self._numbers[frame.number] for frame in lost),
            side=side,
            flow="" if packet is None else packet.flow,
            connection=None if packet is None else packet.connection,
            packet=None if packet is None else packet.number,
            octets=octets,
            content=content,
            fate=fate,
            transmissions=transmissions,
            lost_frames=len(lost),
            acked_ms=acked_ms,
            repaired_ms=None if first_ns is None or mended is None else (mended - first_ns) / 1e6,
            events=ordered,
        )

    # -- events on the way ---------------------------------------------------------------------------------------

    def _place_of(self, packet: Packet, side: Side) -> str:
        """Return where the packets of a connection with data on a side are seen."""
        return SENDERS[side] if _connection(packet) in self._at_hosts else STATIONS[side].upper()

    def _side_of(self, flow: str, connection: int) -> Side:
        """Return the direction of a connection's data."""
        for side in SIDES:
            for frame in self._carriers[side]:
                packet = self._packet_of(frame)
                if packet is not None and packet.length and (packet.flow, packet.connection) == (flow, connection):
                    return side
        return "up"

    def _sent_at(self, packet: Packet) -> int:
        """Return when a packet was sent, or first seen."""
        sent_ns = self._octets.sent_ns(packet.number)
        if sent_ns is not None:
            return sent_ns
        return min((frame.start_ns for frame in self._octets.frames_of(packet.number)), default=self._end_ns)

    def _sent(self, packet: Packet, transmission: int, side: Side, reason: Reason | None) -> Iterator[Event]:
        """Yield the sending of a packet, and its end if no frame carried it."""
        at_ns = self._sent_at(packet)
        at_host = packet.number in self._of_hosts
        assert packet.seq is not None
        yield Sent(
            time_ns=at_ns,
            place=SENDERS[side] if at_host else STATIONS[side].upper(),
            packet=packet.number,
            seq=packet.seq,
            content=words_of(packet),
            transmission=transmission,
            reason=reason,
            at_host=at_host,
        )
        if at_host and not self._octets.frames_of(packet.number):
            last = self._carriers[side][-1:]
            dropped = any(self._sent_at(self._packets[each.packet]) > at_ns for each in last if each.packet is not None)
            yield Dropped(time_ns=at_ns, place=STATIONS[side].upper(), packet=packet.number, dropped=dropped)

    def _link_events(self, packet: Packet) -> Iterator[Event]:
        """Yield what the link did with a packet."""
        carriers = self._octets.frames_of(packet.number)
        before_ns = self._sent_at(packet) if packet.number in self._of_hosts else None
        for frame in carriers:
            waited_ns = None if before_ns is None else max(0, frame.start_ns - before_ns)
            yield self._carried(frame, waited_ns)
            before_ns = frame.sent_ns
        crossed = list(self._crossed(packet))
        for frame in self._redundancy(carriers):
            if not crossed or frame.start_ns <= crossed[0].time_ns:
                yield self._carried(frame, None)
        for ack, said in self._link_acks(carriers):
            has = said == "come" or (said == "settled" and bool(crossed))
            if said != "settled" or has:
                assert ack.arrived_ns is not None
                place = STATIONS[carriers[0].side].upper()
                yield Told(time_ns=ack.arrived_ns, place=place, frame=ack.number, has=has)
        yield from crossed

    def _carried(self, frame: Frame, waited_ns: int | None) -> Carried:
        samples = frame.samples
        if samples is not None:
            figures = samples.figures
        else:
            figures = self._record_of(frame) if frame.snr_db is None else {"snr_db": frame.snr_db}
        return Carried(
            time_ns=frame.sent_ns,
            place=way_of(frame.side),
            frame=frame.number,
            side=frame.side,
            start_ns=frame.start_ns,
            arrived_ns=frame.arrived_ns,
            nbytes=frame.nbytes,
            content=frame.words(),
            packet=frame.packet,
            fate=frame.fate,
            waited_ms=None if waited_ns is None else waited_ns / 1e6,
            figures=dict(figures),
            exact=samples is not None or frame.snr_db is not None,
            sample_start=None if samples is None else samples.start,
            sample_count=None if samples is None else samples.count,
        )

    def _crossed(self, packet: Packet) -> Iterator[Crossed]:
        """Yield the event at which a packet left the link, if it did and the time is known."""
        carriers = self._octets.frames_of(packet.number)
        if not carriers:
            return
        completed = self._completed(carriers)
        crossed_ns = self._crossings.get(packet.number) if self._timeline.crossed else None
        if crossed_ns is None and (completed is None or self._timeline.crossed):
            return
        frame, restored = (None, False) if completed is None else completed
        if crossed_ns is not None and (frame is None or _arrived_ns(frame) > crossed_ns):
            # combinations of packets, which only a decoder can tell
            frame, restored = self._last_redundancy(carriers, crossed_ns), True
        at_ns = _arrived_ns(frame) if crossed_ns is None and frame is not None else crossed_ns
        assert at_ns is not None
        held_ns = None if frame is None or crossed_ns is None else crossed_ns - _arrived_ns(frame)
        yield Crossed(
            time_ns=at_ns,
            place=STATIONS[other(carriers[0].side)].upper(),
            packet=packet.number,
            frame=None if frame is None else frame.number,
            restored=restored,
            held_ms=None if held_ns is None else held_ns / 1e6,
        )

    def _last_redundancy(self, carriers: Sequence[Frame], until_ns: int) -> Frame | None:
        arrived = [each for each in self._redundancy(carriers) if each.fate == "ok" and _arrived_ns(each) <= until_ns]
        return arrived[-1] if arrived else None

    def _record_of(self, frame: Frame) -> Mapping[str, float]:
        """Return the receiver's record over the time of a frame."""
        rows = self._phy.get(frame.side, [])
        at = bisect_left(rows, frame.sent_ns, key=_time_ns)
        if at == len(rows):
            return {}
        return {name: rows[at][name] for name in ("snr_db", "evm_db", "cfo_hz") if rows[at].get(name) is not None}

    @cached_property
    def _phy(self) -> Mapping[str, Sequence[_Row]]:
        return _grouped(self._timeline.records.get("phy", ()), "link")

    def _replaced(self, frame: Frame) -> Replaced:
        packet = self._packet_of(frame)
        return Replaced(
            time_ns=_arrived_ns(frame),
            place=STATIONS[other(frame.side)].upper(),
            frame=frame.number,
            packet=frame.packet,
            content=content_of(frame, packet),
        )

    # -- TCP -----------------------------------------------------------------------------------------------------

    def _dupacks(
        self, with_it: Sequence[Packet], octet: int, side: Side, began_ns: int, acked_ns: int | None
    ) -> Iterator[Dupacks]:
        """Yield the dupacks at packets with an octet: those before each retransmission together."""
        flow, connection = with_it[0].flow, with_it[0].connection or 0
        answers = self._octets.answers(flow, connection)
        first = min(each.offset for each in with_it if each.offset is not None)
        highest, found = 0, []
        for at_ns, acked, packet in answers:
            if acked_ns is not None and at_ns >= acked_ns:
                break
            again = acked == highest and not packet.length and not _NUMBERED & set(packet.flags or "")
            if again and at_ns >= began_ns and first <= acked <= octet:
                found.append((at_ns, packet))
            highest = max(highest, acked)
        place = self._place_of(with_it[0], side)
        sendings = [self._sent_at(each) for each in with_it[1:]]
        total = 0
        groups: dict[int, list[tuple[int, Packet]]] = {}
        for at_ns, packet in found:
            groups.setdefault(bisect_left(sendings, at_ns), []).append((at_ns, packet))
        for group in groups.values():
            total += len(group)
            eln = sum(packet.eln for _, packet in group)
            yield Dupacks(
                time_ns=group[0][0], place=place, count=len(group), eln=eln, until_ns=group[-1][0], total=total
            )

    @cached_property
    def _tcp(self) -> Mapping[str, Sequence[_Row]]:
        return _grouped(self._timeline.records.get("tcp", ()), "flow")

    def _records_around(self, flow: str, from_ns: int, to_ns: int) -> tuple[_Row, _Row] | None:
        """Return the last record of a flow's sender before a time, and the first one after another."""
        rows = self._tcp.get(flow, [])
        before, after = bisect_right(rows, from_ns, key=_time_ns) - 1, bisect_right(rows, to_ns, key=_time_ns)
        return None if before < 0 or after == len(rows) else (rows[before], rows[after])


def _reason(around: tuple[_Row, _Row] | None) -> Reason | None:
    if around is None:
        return None
    before, after = around
    if after["timeouts"] > before["timeouts"]:
        return "timeout"
    return "loss recovery" if after["retransmits"] > before["retransmits"] else None


def _window(around: tuple[_Row, _Row] | None, place: str) -> dict[int, Event]:
    """Return what two records tell, by the time of the second."""
    if around is None:
        return {}
    before, after = around
    return {
        after["time_ns"]: Window(
            time_ns=after["time_ns"],
            place=place,
            since_ns=before["time_ns"],
            cwnd_before=before["cwnd_bytes"],
            cwnd_after=after["cwnd_bytes"],
            ssthresh_after=after["ssthresh_bytes"],
            retransmits=after["retransmits"] - before["retransmits"],
            timeouts=after["timeouts"] - before["timeouts"],
        )
    }


def _grouped(rows: Iterable[_Row], name: str) -> dict[str, list[_Row]]:
    found: dict[str, list[_Row]] = {}
    for row in sorted(rows, key=_time_ns):
        found.setdefault(row[name], []).append(row)
    return found


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


def _connection(packet: Packet) -> tuple[str, int | None]:
    return packet.flow, packet.connection


def _is_redundancy(frame: Frame) -> bool:
    return frame.packet is None and (frame.kind == "fec" or "members" in frame.fields)


def _block(frame: Frame) -> tuple[Any, ...]:
    return frame.side, frame.fields.get("tag"), frame.fields.get("channel"), frame.fields["block"]


def _nth(frames: Iterable[Frame], count: int) -> Frame | None:
    """Return the frame with which `count` of different index have arrived; None: so many have not."""
    seen = set()
    for frame in sorted((each for each in frames if each.fate == "ok"), key=_arrived_ns):
        seen.add(frame.fields.get("index", 0))
        if len(seen) >= count:
            return frame
    return None


def _sent_ns(frame: Frame) -> int:
    return frame.sent_ns


def _arrived_ns(frame: Frame) -> int:
    assert frame.arrived_ns is not None
    return frame.arrived_ns


def _time_ns(row: _Row) -> int:
    time_ns: int = row["time_ns"]
    return time_ns
