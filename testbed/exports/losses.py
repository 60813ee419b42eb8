"""The lost frames of a run, and the story of each, hop by hop.

Rules kept

- A loss is a frame that did not arrive whole, whatever it carried.
- A frame with data leads to its first octet, and the story is that of the octet: all packets with it, all frames of
  these, and the redundancy that protects them. What became of it is `Octets.life`.
- What a link did is in `evidence.py`, and what TCP knew in `senders.py`.

Left out: packets that a queue dropped, which were never on the air; a story has them as transmissions without frames.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from common.sides import SENDERS, SIDES, STATIONS, Side, other
from testbed.errors import FadelabError
from testbed.exports.evidence import Evidence, arrival_ns, is_redundancy, numbered
from testbed.exports.futures import Octets
from testbed.exports.rows import Rows
from testbed.exports.senders import Senders
from testbed.exports.story import (
    Acknowledged,
    Carried,
    Crossed,
    Dropped,
    Ended,
    Event,
    Fate,
    Loss,
    Reason,
    Replaced,
    Sent,
    Story,
    Told,
    content_of,
    octets_of,
    way_of,
    words_of,
)
from testbed.exports.timeline import Frame, Packet, Timeline

#: of a receiver's records
_RECEPTION: Final = ("snr_db", "evm_db", "cfo_hz")


class Losses:
    """The losses of a run."""

    def __init__(self, timeline: Timeline) -> None:
        #: packets that a host is known to have sent, and their connections
        self._of_hosts = {passing.packet for passing in timeline.sent}
        self._at_hosts = {_connection(timeline.packets[packet]) for packet in self._of_hosts}
        self._timeline = timeline = timeline.with_passings()
        self._packets = timeline.packets
        self._octets = Octets(timeline)
        self._evidence = Evidence(timeline, self._octets)
        self._senders = Senders(timeline, self._octets, self._evidence)
        self._receptions = Rows(timeline.records.get("phy", ()), "link")
        self._lost = [frame for frame in timeline.frames if frame.lost]
        self._numbers = {frame.number: number for number, frame in enumerate(self._lost, 1)}

    def __len__(self) -> int:
        return len(self._lost)

    @cached_property
    def all(self) -> Sequence[Loss]:
        """All losses, in order."""
        return [
            Loss(number, frame, packet, self._evidence.fate(frame))
            for number, frame in enumerate(self._lost, 1)
            for packet in [self._evidence.packet_of(frame)]
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
        packet = self._evidence.packet_of(frame)
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

    # -- stories -------------------------------------------------------------------------------------------------

    def _of_octet(self, packet: Packet, octet: int, number: int | None) -> Story:
        flow, connection = packet.flow, packet.connection or 0
        life = self._octets.life(flow, connection, octet)
        with_it = sorted(self._octets.packets_with(flow, connection, octet), key=self._evidence.sent_ns)
        frames = [frame for each in with_it for frame in self._octets.frames_of(each.number)]
        side = self._side_of(flow, connection)
        acked_ns = self._octets.acked_ns(flow, connection, octet)
        place = self._place_of(packet, side)
        events: list[Event] = [*self._senders.dupacks(with_it, octet, place, acked_ns)]
        windows = [self._senders.window(each, SENDERS[side]) for each in with_it[1:]]
        if len(with_it) == 1:
            until_ns = self._evidence.end_ns if acked_ns is None else acked_ns
            windows = [self._senders.window(packet, SENDERS[side], until_ns)]
        # two transmissions may be between the same records
        events += {window.time_ns: window for window in windows if window is not None}.values()
        for transmission, each in enumerate(with_it, 1):
            events += self._sent(each, transmission, side, self._senders.reason(each) if transmission > 1 else None)
            events += self._link_events(each)
        if acked_ns is None:
            events.append(
                Ended(time_ns=self._evidence.end_ns, place="run", content="the run ends without an ACK of it")
            )
        else:
            ack = next(ack for at, acked, ack in self._octets.answers(flow, connection) if acked > octet)
            assert ack.ack is not None
            events.append(
                Acknowledged(time_ns=acked_ns, place=place, packet=ack.number, ack=ack.ack, after_ms=life.acked_ms)
            )
        return self._made(
            number, side, packet, octets_of(packet), packet.words(), life.fate, frames, events,
            transmissions=life.transmissions, acked_ms=life.acked_ms,
        )  # fmt: skip

    def _of_packet(self, number: int, frame: Frame, packet: Packet) -> Story:
        """Return the story of a packet without data of TCP."""
        fate = self._evidence.fate(frame)
        transmissions = self._evidence.transmissions(packet)
        frames = [each for one in transmissions for each in self._octets.frames_of(one.number)]
        events: list[Event] = []
        for transmission, each in enumerate(transmissions, 1):
            if numbered(packet):
                events += self._sent(each, transmission, frame.side, None)
            events += self._link_events(each)
        later = self._evidence.later_ack(frame, packet) if fate == "by a later one" else None
        if later is not None:
            events.append(self._replaced(later))
        elif fate in ("open", "lost"):
            events.append(
                Ended(time_ns=self._evidence.end_ns, place="run", content="the run ends, and it has not crossed")
            )
        return self._made(
            number, frame.side, packet, None, content_of(frame, packet), fate, frames, events,
            transmissions=len(transmissions),
        )  # fmt: skip

    def _of_control(self, number: int, frame: Frame) -> Story:
        """Return the story of a frame of the link's own."""
        fate = self._evidence.fate(frame)
        events: list[Event] = [self._carried(frame, None)]
        if is_redundancy(frame):
            for packet in sorted(self._evidence.protected(frame)):
                events += self._crossed(self._packets[packet])
            if fate == "lost":
                content = "the run ends, and not all packets that it protects have crossed"
                events.append(Ended(time_ns=self._evidence.end_ns, place="run", content=content))
        else:
            later = self._evidence.successor(frame)
            if later is not None:
                events.append(self._replaced(later))
            else:
                events.append(
                    Ended(time_ns=self._evidence.end_ns, place="run", content="the run ends without another one")
                )
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
            for frame in self._evidence.carriers[side]:
                packet = self._evidence.packet_of(frame)
                if packet is not None and packet.length and (packet.flow, packet.connection) == (flow, connection):
                    return side
        return "up"

    def _sent(self, packet: Packet, transmission: int, side: Side, reason: Reason | None) -> Iterator[Event]:
        """Yield the sending of a packet, and its end if no frame carried it."""
        at_ns = self._evidence.sent_ns(packet)
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
            last = self._evidence.carriers[side][-1:]
            dropped = any(
                self._evidence.sent_ns(self._packets[each.packet]) > at_ns for each in last if each.packet is not None
            )
            yield Dropped(time_ns=at_ns, place=STATIONS[side].upper(), packet=packet.number, dropped=dropped)

    def _link_events(self, packet: Packet) -> Iterator[Event]:
        """Yield what the link did with a packet."""
        carriers = self._octets.frames_of(packet.number)
        before_ns = self._evidence.sent_ns(packet) if packet.number in self._of_hosts else None
        for frame in carriers:
            waited_ns = None if before_ns is None else max(0, frame.start_ns - before_ns)
            yield self._carried(frame, waited_ns)
            before_ns = frame.sent_ns
        crossed = list(self._crossed(packet))
        for frame in self._evidence.redundancy(carriers):
            if not crossed or frame.start_ns <= crossed[0].time_ns:
                yield self._carried(frame, None)
        for ack, said in self._evidence.link_acks(carriers):
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
        elif frame.snr_db is not None:
            figures = {"snr_db": frame.snr_db}
        else:
            reception = self._receptions.over(frame.side, frame.sent_ns)
            figures = {name: reception[name] for name in _RECEPTION if reception.get(name) is not None}
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
        crossing = self._evidence.crossing(packet)
        if crossing is None:
            return
        side = self._octets.frames_of(packet.number)[0].side
        yield Crossed(
            time_ns=crossing.time_ns,
            place=STATIONS[other(side)].upper(),
            packet=packet.number,
            frame=None if crossing.frame is None else crossing.frame.number,
            restored=crossing.restored,
            held_ms=None if crossing.held_ns is None else crossing.held_ns / 1e6,
        )

    def _replaced(self, frame: Frame) -> Replaced:
        packet = self._evidence.packet_of(frame)
        return Replaced(
            time_ns=arrival_ns(frame),
            place=STATIONS[other(frame.side)].upper(),
            frame=frame.number,
            packet=frame.packet,
            content=content_of(frame, packet),
        )


def _connection(packet: Packet) -> tuple[str, int | None]:
    return packet.flow, packet.connection
