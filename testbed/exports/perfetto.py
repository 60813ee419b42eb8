"""A timeline as a trace for the Perfetto UI, in the JSON trace event format.

Read first: "Trace Event Format" of the Chromium project (phases X, C, M, s, t, f), which https://ui.perfetto.dev opens.

Rules kept

- A process is a place: the hosts' TCP, each direction of the link, each radio. A slice is an event with a duration: a
  frame on the air, its samples. Arrows lead from a packet to all its frames, and from each frame to its samples.
- Slices of one track do not overlap: a slice begins where the one before ends at the earliest, and a packet at a host
  lasts a ns. Where the rate of a direction changes, frames may seem to begin late. Their ends are exact.
- Times are µs after the file's begin, which is the run's time 0 or the first frame, whichever is earlier.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from common.sides import SIDES
from testbed.exports.timeline import Frame, Packet, Passing, Timeline

_HOSTS: Final = 1
_LINKS: Final = {"up": 2, "down": 3}
_RADIOS: Final = {"up": 4, "down": 5}
#: tracks within the process of a link or a radio
_FRAMES: Final = 1
#: counters by measurement: field, and the name of its track
_COUNTERS: Final = {
    "tcp": (("cwnd_bytes", "cwnd (bytes)"), ("ssthresh_bytes", "ssthresh (bytes)"), ("srtt_ms", "srtt (ms)")),
    "link": (("queue_bytes", "IP queue (bytes)"), ("goodput_bps", "goodput (bit/s)")),
}

_Event = dict[str, Any]


def to_perfetto(timeline: Timeline, version: str) -> Iterator[str]:
    """Yield the text of the file, in pieces. `version` is that of fadelab."""
    about = {"run": timeline.run, "tier": timeline.tier, "scheme": timeline.scheme, "fadelab": version}
    yield f'{{"displayTimeUnit":"ms","otherData":{json.dumps(about)},"traceEvents":[\n'
    for index, event in enumerate(_Writer(timeline).events()):
        yield (",\n" if index else "") + json.dumps(event, allow_nan=False)
    yield "\n]}\n"


class _Writer:
    """Makes the events of one timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._packets = {packet.number: packet for packet in timeline.packets}
        self._zero_ns = min([0, *(frame.start_ns for frame in timeline.frames)])
        #: tracks of the hosts' process, by flow and kind of event
        self._tracks: dict[str, int] = {}
        #: the packets that have an arrow already
        self._begun: set[int] = set()
        #: where the last slice of each track ends, in ns
        self._ends: dict[tuple[int, int], int] = {}

    def events(self) -> Iterator[_Event]:
        yield _name(_HOSTS, "hosts: TCP")
        for side in SIDES:
            yield _name(_LINKS[side], f"link {side}: on the air")
            yield _name(_LINKS[side], "frames", _FRAMES)
            if any(frame.samples is not None and frame.side == side for frame in self._timeline.frames):
                yield _name(_RADIOS[side], f"radio {side}: recorded by the receiver")
                yield _name(_RADIOS[side], "samples", _FRAMES)
        for passing in self._timeline.sent:
            yield from self._passing(passing, "sent")
        for passing in self._timeline.received:
            yield from self._passing(passing, "received")
        for frame in self._timeline.frames:
            yield from self._frame(frame)
        for measurement, counters in _COUNTERS.items():
            for row in self._timeline.records.get(measurement, ()):
                yield from self._counters(row, measurement, counters)

    def _us(self, time_ns: int) -> float:
        return (time_ns - self._zero_ns) / 1000

    def _passing(self, passing: Passing, what: str) -> Iterator[_Event]:
        packet = self._packets[passing.packet]
        label = f"{packet.flow or 'no flow'} {what}"
        if label not in self._tracks:
            self._tracks[label] = len(self._tracks) + 1
            yield _name(_HOSTS, label, self._tracks[label])
        place, times = self._slice(_HOSTS, self._tracks[label], passing.time_ns, passing.time_ns)
        yield {"ph": "X", "name": packet.words(), "cat": "tcp", "args": _args(packet), **place, **times}
        if what == "sent":
            yield from self._arrow(packet.number, place)

    def _frame(self, frame: Frame) -> Iterator[_Event]:
        packet = None if frame.packet is None else self._packets.get(frame.packet)
        words = frame.words() if frame.fate == "ok" else f"{frame.fate.upper()} {frame.words()}"
        args: dict[str, Any] = {"frame": frame.number, "fate": frame.fate, "bytes": frame.nbytes, **frame.fields}
        if packet is not None:
            args |= {f"packet.{key}": value for key, value in _args(packet).items()}
        if frame.samples is not None:
            args |= {"sample_start": frame.samples.start, "sample_count": frame.samples.count}
        place, times = self._slice(_LINKS[frame.side], _FRAMES, frame.start_ns, frame.sent_ns)
        yield {"ph": "X", "name": words, "cat": f"link,{frame.fate}", "args": args, **place, **times}
        if packet is not None:
            yield from self._arrow(packet.number, place)
        if frame.samples is not None and frame.heard_ns is not None:
            yield from self._samples(frame, place)

    def _samples(self, frame: Frame, sent: _Event) -> Iterator[_Event]:
        samples = frame.samples
        assert samples is not None
        assert frame.heard_ns is not None
        ends_ns = frame.heard_ns + round(samples.count * 1e9 / samples.rate_sps)
        place, times = self._slice(_RADIOS[frame.side], _FRAMES, frame.heard_ns, ends_ns)
        name = f"samples {samples.start} to {samples.start + samples.count - 1}"
        args: dict[str, Any] = {"frame": frame.number, "sample_start": samples.start, "sample_count": samples.count}
        args |= {"crc_ok": samples.crc_ok, **samples.figures}
        yield {"ph": "X", "name": name, "cat": "radio", "args": args, **place, **times}
        arrow = {"cat": "samples", "name": "samples", "id": frame.number}
        yield {"ph": "s", **arrow, **sent}
        yield {"ph": "f", "bp": "e", **arrow, **place}

    def _slice(self, process: int, track: int, start_ns: int, end_ns: int) -> tuple[_Event, _Event]:
        """Return where a slice is, and its duration."""
        start_ns = max(start_ns, self._ends.get((process, track), start_ns))
        end_ns = max(end_ns, start_ns + 1)
        self._ends[process, track] = end_ns
        return {"pid": process, "tid": track, "ts": self._us(start_ns)}, {"dur": (end_ns - start_ns) / 1000}

    def _arrow(self, packet: int, place: _Event) -> Iterator[_Event]:
        phase = "t" if packet in self._begun else "s"
        self._begun.add(packet)
        yield {"ph": phase, "cat": "packet", "name": "packet", "id": packet, "bp": "e", **place}

    def _counters(self, row: Any, measurement: str, counters: tuple[tuple[str, str], ...]) -> Iterator[_Event]:
        pid = _HOSTS if measurement == "tcp" else _LINKS[row["link"]]
        source = f"{row['flow']} " if measurement == "tcp" else ""
        for field, label in counters:
            if row.get(field) is not None:
                place = {"pid": pid, "tid": 0, "ts": self._us(row["time_ns"])}
                yield {"ph": "C", "name": f"{source}{label}", "args": {"value": row[field]}, **place}


def _name(process: int, name: str, track: int | None = None) -> _Event:
    """Return the event that names a process, or one of its tracks."""
    if track is None:
        return {"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}}
    return {"ph": "M", "name": "thread_name", "pid": process, "tid": track, "args": {"name": name}}


def _args(packet: Packet) -> dict[str, Any]:
    shown = {"number": packet.number, "flow": packet.flow, "seq": packet.seq, "ack": packet.ack}
    shown |= {"flags": packet.flags, "offset": packet.offset, "length": packet.length, "connection": packet.connection}
    return {key: value for key, value in shown.items() if value is not None}
