"""What became of a lost frame, or of an octet of TCP: events in the order of time, with their places and words.

`losses.py` makes stories of a run's timeline, by its rules and those of `evidence.py` (frames) and `senders.py` (TCP).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Literal

from common.sides import SENDERS, STATIONS, Side, other
from common.units import number_of
from testbed.exports.futures import FATES
from testbed.exports.futures import Fate as OctetFate
from testbed.exports.timeline import Frame, Packet

#: of an octet that of `futures`; else a later frame or ACK said the same, redundancy was not needed, or it was lost
Fate = OctetFate | Literal["by a later one", "not needed", "lost"]
ALL_FATES: Final[tuple[Fate, ...]] = (*FATES, "by a later one", "not needed", "lost")
#: why TCP sent again, by its own counters: after a timeout, or else in its loss recovery
Reason = Literal["timeout", "loss recovery"]

#: frames without a packet, for people
_KINDS: Final = {"ack": "link ACK", "fec": "redundancy frame", "coded": "combination of packets"}
#: below it a frame has not waited
_NO_WAIT_MS: Final = 0.05
#: the fates of frames that are lost, in words
LOST: Final = {"damaged": "damaged", "erased": "lost", "unheard": "not heard intact"}


# -- events ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(ABC):
    """One event. `place`: a host, a station, or the two stations at the ends of the air."""

    time_ns: int
    place: str

    @abstractmethod
    def words(self) -> str:
        """Return the event in words."""

    def plain(self) -> dict[str, Any]:
        """Return the event for JSON: its kind, its values and its words."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"event": type(self).__name__.lower(), **values, "words": self.words()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent(Event):
    """TCP sends a packet. Where only the air was captured it is the packet's first bit on the air."""

    packet: int
    seq: int
    content: str
    #: 1 is the first one
    transmission: int
    #: of a retransmission, as far as TCP's records tell
    reason: Reason | None
    at_host: bool

    def words(self) -> str:
        again = " again" if self.transmission > 1 else ""
        does = f"TCP sends {self.content}{again}" if self.at_host else f"TCP's {self.content} on the air{again}"
        reason = "" if self.reason is None else f" ({self.reason})"
        return f"{does}{reason}: packet {self.packet}, seq {self.seq}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped(Event):
    """A host sent a packet that no frame carried: the time is that of its sending."""

    packet: int
    #: False: it may wait still
    dropped: bool

    def words(self) -> str:
        return f"no frame carries packet {self.packet}: {'a queue drops it' if self.dropped else 'the run ends before'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried(Event):
    """A frame on the air; the time is that of its last bit leaving."""

    frame: int
    side: Side
    start_ns: int
    arrived_ns: int | None
    nbytes: int
    content: str
    #: None: redundancy or control
    packet: int | None
    fate: str
    #: from the packet's sending, or from the end of its frame before, to this frame's first bit
    waited_ms: float | None
    #: at the receiver: `snr_db`, `evm_db` and others of the frame, or the means of the record
    figures: Mapping[str, float]
    #: whether the figures are the frame's own
    exact: bool
    #: in the recording
    sample_start: int | None
    sample_count: int | None

    def words(self) -> str:
        if self.fate == "ok" and self.arrived_ns is not None:
            told = [f"arrives {ms((self.arrived_ns - self.time_ns) / 1e6)} later"]
        else:
            told = [LOST.get(self.fate, self.fate)]
        for name, label in (("snr_db", "SNR"), ("evm_db", "EVM")):
            if self.figures.get(name) is not None:
                told.append(f"{label} {self.figures[name]:.1f} dB{'' if self.exact else ' on average'}")
        if self.sample_start is not None and self.sample_count is not None:
            told.append(f"samples {self.sample_start} to {self.sample_start + self.sample_count - 1}")
        waited = "" if (self.waited_ms or 0) < _NO_WAIT_MS else f", waited {ms(self.waited_ms or 0)}"
        # a bare frame is its packet
        content = "" if self.content == "packet" else f", {self.content}"
        packet = "" if self.packet is None else f", packet {self.packet}"
        return f"frame {self.frame}{content}{packet}, {self.nbytes} bytes{waited}: {', '.join(told)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told(Event):
    """An acknowledgement of the link arrives at the frames' sender: whether its peer has the packet."""

    frame: int
    has: bool

    def words(self) -> str:
        said = "the packet has come" if self.has else "later frames have come, the packet has not"
        return f"link ACK, frame {self.frame}: {said}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossed(Event):
    """A packet leaves the link at the far station."""

    packet: int
    #: that carried it whole, or completed it
    frame: int | None
    restored: bool
    #: from that frame's arrival, while earlier packets were missing; None: not known
    held_ms: float | None

    def words(self) -> str:
        how = "is restored from redundancy" if self.restored else "has crossed"
        by = "" if self.frame is None else f", with frame {self.frame}"
        held = "" if not self.held_ms else f", held {ms(self.held_ms)} behind a gap"
        return f"packet {self.packet} {how}{by}{held}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dupacks(Event):
    """ACKs that ask for the packet again reach its sender."""

    count: int
    #: of them marked with ELN
    eln: int
    until_ns: int
    #: those so far
    total: int

    def words(self) -> str:
        many = "" if self.count == 1 else f" within {ms((self.until_ns - self.time_ns) / 1e6)}"
        marked = "" if not self.eln else ", with ELN" if self.eln == self.count else f", {self.eln} of them with ELN"
        total = "" if self.total == self.count else f", {self.total} so far"
        return f"{number_of(self.count, 'dupack')}{many}{marked}{total}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window(Event):
    """The records of TCP before and after an event: cwnd, and what TCP counted in between."""

    since_ns: int
    cwnd_before: int
    cwnd_after: int
    ssthresh_after: int | None
    retransmits: int
    timeouts: int

    def words(self) -> str:
        moved = f"{self.cwnd_before:,} to {self.cwnd_after:,}"
        if self.cwnd_before == self.cwnd_after:
            moved = f"stays at {self.cwnd_after:,}"
        counted = [
            number_of(count, name)
            for count, name in ((self.retransmits, "retransmission"), (self.timeouts, "timeout"))
            if count
        ]
        return f"cwnd {moved} bytes since {self.since_ns / 1e9:.3f} s{''.join(f', {each}' for each in counted)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged(Event):
    """The first ACK of the octet reaches its sender."""

    packet: int
    ack: int
    after_ms: float | None

    def words(self) -> str:
        after = "" if self.after_ms is None else f", {ms(self.after_ms)} after the first transmission"
        return f"acknowledged: ack {self.ack}, packet {self.packet}{after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced(Event):
    """A later frame of the same effect arrives."""

    frame: int
    packet: int | None
    content: str

    def words(self) -> str:
        return f"frame {self.frame} arrives, {self.content}: it says as much"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(Event):
    """The run ends before the story does."""

    content: str

    def words(self) -> str:
        return self.content


# -- losses and stories ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Loss:
    """A frame that did not arrive whole. They are numbered from 1, by the frames' ends."""

    number: int
    frame: Frame
    packet: Packet | None
    fate: Fate

    def plain(self) -> dict[str, Any]:
        """Return the loss for JSON."""
        packet = self.packet
        octets = None if packet is None else octets_of(packet)
        return {
            "loss": self.number,
            "time_s": self.frame.sent_ns / 1e9,
            "direction": self.frame.side,
            "frame": self.frame.number,
            "how": self.frame.fate,
            "packet": None if packet is None else packet.number,
            "flow": None if packet is None else packet.flow or None,
            "connection": None if packet is None else packet.connection,
            "octets": None if octets is None else list(octets),
            "content": content_of(self.frame, packet),
            "fate": self.fate,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What became of a loss, or of an octet. Events are in the order of time."""

    run: str
    tier: str
    scheme: str
    #: that was asked for; None: an octet was
    loss: int | None
    #: all losses of the story, in order
    losses: Sequence[int]
    side: Side
    flow: str
    connection: int | None
    #: the one that was lost, or the first with the octet; None: a frame of the link's own
    packet: int | None
    octets: tuple[int, int] | None
    content: str
    fate: Fate
    #: times that it was sent by a host, and frames with it that were lost
    transmissions: int
    lost_frames: int
    acked_ms: float | None
    #: from the end of the first lost frame until it had crossed, or was replaced; below 0: another copy had come
    #: before; None: never, or not known
    repaired_ms: float | None
    events: Sequence[Event]

    def sentence(self) -> str:
        """Return the story in a sentence."""
        many = self.octets is not None
        be, it = ("were", "them") if many else ("was", "it")
        lost = f"{be} lost on the air {_times(self.lost_frames)}" if self.lost_frames else f"{be} not lost on the air"
        return f"{self._subject()} {self._end(be, it, lost)}."

    def plain(self) -> dict[str, Any]:
        """Return the story for JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["direction"] = values.pop("side")
        values["octets"] = None if self.octets is None else list(self.octets)
        values["losses"] = list(self.losses)
        values["events"] = [event.plain() for event in self.events]
        return {"sentence": self.sentence(), **values}

    def _subject(self) -> str:
        flow = f" of flow {self.flow}" if self.flow else ""
        several = f", connection {self.connection}" if self.connection else ""
        way = way_of(self.side) if self.packet is None else f"{SENDERS[self.side]} to {SENDERS[other(self.side)]}"
        return f"{self.content[:1].upper()}{self.content[1:]}{flow}{several} ({way})"

    def _end(self, be: str, it: str, lost: str) -> str:
        later = "" if self.repaired_ms is None else f" {ms(self.repaired_ms)} later"
        spare = self.repaired_ms is not None and self.repaired_ms < 0
        match self.fate:
            case "at once":
                return f"crossed at once{self._acked('and ' + be + ' acknowledged')}"
            case "by the link" if spare:
                return f"{lost}, but another copy had come before{self._noticed(it)}"
            case "by the link" if not later and self.octets:
                return f"{lost}; TCP did not send {it} again{self._acked('and they were acknowledged')}"
            case "by the link":
                return f"{lost}, repaired by the link{later}{self._noticed(it)}"
            case "by TCP":
                return self._by_tcp(it)
            case "by a later one":
                return f"{lost}; the next one{f',{later},' if later else ''} said as much"
            case "not needed":
                return f"{lost}, and the packets that it protects crossed without it"
            case "open":
                repaired = f", crossed{later}" if later and not spare else ""
                what = f"{be} not acknowledged when the run ended"
                return f"{lost}{repaired}, and {what if self.octets else 'no other one came before the run ended'}"
            case "lost" if self.packet is None:
                return f"{lost}, and not all packets that it protects crossed"
            case _:
                return f"{lost} and not repaired"

    def _noticed(self, it: str) -> str:
        if self.octets is None:
            return ""
        dupacks = sum(event.count for event in self.events if isinstance(event, Dupacks))
        if dupacks:
            return f"; TCP had {number_of(dupacks, 'dupack')}, but did not send {it} again"
        others = any(isinstance(event, Window) and (event.retransmits or event.timeouts) for event in self.events)
        # it repaired other losses meanwhile
        return f", and TCP did not send {it} again" if others else ", and TCP never noticed"

    def _by_tcp(self, it: str) -> str:
        sent = [event for event in self.events if isinstance(event, Sent)]
        first, second = sent[0], next(event for event in sent if event.transmission > 1)
        frames = [event for event in self.events if isinstance(event, Carried) and event.packet is not None]
        lost = [event for event in frames if event.fate in LOST]
        crossed = [event for event in self.events if isinstance(event, Crossed)]
        dropped = sum(isinstance(event, Dropped) for event in self.events)
        what = [
            *([f"dropped by a queue {_times(dropped)}"] if dropped else []),
            *([f"lost on the air {_times(len(lost))}"] if lost else []),
        ]
        told = f"{'were' if self.octets else 'was'} {' and '.join(what) or 'not lost on the air'}"
        repaired = [
            event.time_ns - lost[0].time_ns
            for event in crossed
            if event.packet in {each.packet for each in lost} and event.time_ns >= lost[0].time_ns
        ]
        if repaired:
            told += f", repaired by the link {ms(repaired[0] / 1e6)} later"
        # the sender cannot know
        spare = ", needlessly," if any(event.time_ns < second.time_ns for event in crossed) else ""
        reason = "" if second.reason is None else f" ({self._reason(second)})"
        when = f"{ms((second.time_ns - first.time_ns) / 1e6)} after the first time"
        return f"{told}; TCP sent {it} again{spare} {when}{reason}{self._acked('acknowledged')}"

    def _reason(self, second: Sent) -> str:
        before = [each for each in self.events if isinstance(each, Dupacks) and each.time_ns <= second.time_ns]
        return f"{second.reason} after {number_of(before[-1].total, 'dupack')}" if before else str(second.reason)

    def _acked(self, words: str) -> str:
        return "" if self.acked_ms is None else f", {words} after {ms(self.acked_ms)}"


# -- words -------------------------------------------------------------------------------------------------------


def ms(value: float) -> str:
    """Return a time in words."""
    return f"{value:.0f} ms" if value >= 100 else f"{value:.1f} ms"


def way_of(side: Side) -> str:
    """Return the stations at both ends of a direction, for people."""
    return f"{STATIONS[side].upper()} to {STATIONS[other(side)].upper()}"


def octets_of(packet: Packet) -> tuple[int, int] | None:
    """Return the first and the last payload octet of a packet; None: it has none, or they are not known."""
    if packet.offset is None or not packet.length:
        return None
    return packet.offset, packet.offset + packet.length - 1


def content_of(frame: Frame, packet: Packet | None) -> str:
    """Return the content of a frame in words."""
    return _KINDS.get(frame.kind, f"{frame.kind.upper()} of the link") if packet is None else words_of(packet)


def words_of(packet: Packet) -> str:
    """Return a packet in words: its octets, or else its purpose."""
    if packet.seq is None or octets_of(packet) is not None:
        return packet.words()
    flags = packet.flags or ""
    if "S" in flags:
        return "SYN-ACK" if "." in flags else "SYN"
    return "RST" if "R" in flags else "FIN" if "F" in flags else f"ACK {packet.ack}"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
