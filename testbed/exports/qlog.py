"""A timeline as qlog, in JSON text sequences.

Read first: draft-ietf-quic-qlog-main-schema, sections 3 (file schema), 5 (QlogFileSeq), 7 (events), 8 (event schemas);
RFC 7464 (JSON text sequences: each record begins with RS and ends with LF).

Rules kept: the events are in name spaces of our own, `tcp`, `link` and `radio`, which docs/exchange.md describes; none
of QUIC's is used, whose fields have other meanings. Times are ms after the file's reference, which is the run's time 0
or, where frames of the handshake came before it, the first of them: no time is negative. A packet and a frame have the
same number in every event.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from testbed.exports.timeline import Frame, Packet, Timeline

SCHEMA: Final = "urn:x-fadelab:qlog:events:1"
_SEPARATOR: Final = "\x1e"

_Event = tuple[int, str, dict[str, Any]]


def to_qlog(timeline: Timeline, version: str) -> Iterator[str]:
    """Yield the records of the file, a line each. `version` is that of fadelab."""
    events = sorted(_events(timeline), key=lambda event: event[0])
    zero_ns = min(0, *(time_ns for time_ns, _, _ in events)) if events else 0
    yield _record(_header(timeline, version, zero_ns))
    for time_ns, name, data in events:
        event = {"time": (time_ns - zero_ns) / 1e6, "name": name, "data": data}
        if data.get("flow"):
            event["group_id"] = data["flow"]
        yield _record(event)


def _record(values: dict[str, Any]) -> str:
    return f"{_SEPARATOR}{json.dumps(values, allow_nan=False)}\n"


def _header(timeline: Timeline, version: str, zero_ns: int) -> dict[str, Any]:
    reference: dict[str, Any] = {"clock_type": "monotonic", "epoch": "unknown"}
    if timeline.epoch_ns is not None:
        wall = datetime.fromtimestamp((timeline.epoch_ns + zero_ns) / 1e9, UTC)
        reference["wall_clock_time"] = wall.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "serialization_format": "application/qlog+json-seq",
        "title": timeline.run,
        "description": f"fadelab {version}, tier {timeline.tier}, scheme {timeline.scheme}",
        "trace": {
            "title": timeline.run,
            "vantage_point": {"name": "fadelab", "type": "network"},
            "event_schemas": [SCHEMA],
            "common_fields": {
                "time_format": "relative_to_epoch",
                "reference_time": reference,
                "run_time_0_ms": -zero_ns / 1e6,
            },
        },
    }


def _events(timeline: Timeline) -> Iterator[_Event]:
    packets = {packet.number: packet for packet in timeline.packets}
    for name, passings in (("tcp:segment_sent", timeline.sent), ("tcp:segment_received", timeline.received)):
        for passing in passings:
            yield passing.time_ns, name, _packet(packets[passing.packet])
    for frame in timeline.frames:
        yield from _frame_events(frame, packets)
    for row in timeline.records.get("tcp", ()):
        yield row["time_ns"], "tcp:metrics_updated", _known(row)
    for row in timeline.records.get("link", ()):
        yield row["time_ns"], "link:metrics_updated", _known(row)


def _frame_events(frame: Frame, packets: dict[int, Packet]) -> Iterator[_Event]:
    named = {"frame": frame.number, "link": frame.side}
    carried = packets.get(-1 if frame.packet is None else frame.packet)
    sent = {
        **named,
        "kind": frame.kind,
        "length": frame.nbytes,
        "start_ms": (frame.start_ns - frame.sent_ns) / 1e6,
        "fields": dict(frame.fields),
    }
    if carried is not None:
        sent |= {"flow": carried.flow, "packet": _packet(carried)}
    yield frame.sent_ns, "link:frame_sent", sent
    if frame.samples is not None and frame.heard_ns is not None:
        samples = {"sample_start": frame.samples.start, "sample_count": frame.samples.count}
        figures = {"crc_ok": frame.samples.crc_ok, **frame.samples.figures}
        yield frame.heard_ns, "radio:frame_heard", {**named, **samples, **figures}
    if frame.fate in ("ok", "damaged") and frame.arrived_ns is not None:
        yield frame.arrived_ns, "link:frame_received", {**named, "fate": frame.fate}
    elif frame.lost:
        yield frame.sent_ns, "link:frame_lost", {**named, "fate": frame.fate}


def _packet(packet: Packet) -> dict[str, Any]:
    shown = {"packet": packet.number, "flow": packet.flow, "length": packet.nbytes}
    if packet.seq is None:
        return shown
    return shown | {
        "connection": packet.connection,
        "flags": packet.flags,
        "seq": packet.seq,
        "ack": packet.ack,
        "payload_length": packet.length,
        "offset": packet.offset,
    }


def _known(row: Any) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "time_ns" and value is not None}
