"""The timeline of a real-time run: its captures, and its recordings of samples.

Rules kept

- A frame's times and content are those of its sender's capture (docs/capture.md).
- The n-th frame that the modelled medium let through is the n-th of the radio: the PHY's sequence number in a
  recording's annotation names it. So sample indices are exact and do not depend on the clocks. The receiver's channel
  trace has a row for each of them, which tells the fate of frames without a recording.
- A frame has arrived when the other station's capture has it, octet by octet; an ACK that was sent twice with the same
  octets arrives in order, but for the copies that a recording has damaged or not at all.
- A frame behind the last one that arrived was under way when the run ended, and is not lost.
- A packet that was sent in fragments is that of all its fragments: the first ones are its octets.
- A recording's clock is not the host's. `heard_ns` counts from the first instant at which no frame is heard before its
  last bit has left the modelled transmitter.
"""

import math
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, cast

import numpy as np

from common.plain_json import LONGEST, object_of
from common.sides import SIDES, STATIONS, Side, other
from linklayer.arq.frames import Fragment
from linklayer.link import FrameError
from linklayer.schemes import SCHEMES
from tcpip.segment import Segment
from tcpip.wire import SegmentError, parse
from telemetry.pcapng import CapturedFrame, CaptureError, Direction, read_capture
from testbed.errors import FadelabError
from testbed.exports.packets import Packets, content_of
from testbed.exports.timeline import Frame, Samples, Timeline
from testbed.scenario.run_plan import Plan

#: in the comment of a sent frame: the effect of the modelled medium (docs/capture.md)
_ERASED, _DAMAGED = "; erased by the channel", "; damaged by the channel"
_FIGURES = ("snr_db", "evm_db", "cfo_hz", "rssi_db")


def from_captures(
    folder: Path, plan: Plan, records: Mapping[str, Sequence[Mapping[str, Any]]], epoch_ns: int
) -> Timeline:
    """Return the timeline of a real-time run with `capture: true`. Raises FadelabError."""
    captures = {}
    for side in SIDES:
        path = folder / f"air-{STATIONS[side]}.pcapng"
        if not path.exists():
            raise FadelabError(f"{folder.name}: has no captures; run its scenario again with --set capture=true")
        try:
            captures[side] = list(read_capture(path))
        except CaptureError as error:
            raise FadelabError(str(error)) from None
    ports = {port: flow for work in plan.workloads for port, flow in work.ports().items()}
    packets = _CapturedPackets(ports)
    outbound = sorted(
        (
            (frame.time_ns, side, frame)
            for side in SIDES
            for frame in captures[side]
            if frame.direction is Direction.OUTBOUND
        ),
        key=lambda entry: entry[0],
    )
    heard = {side: _arrivals(captures[other(side)]) for side in SIDES}
    parsed = [_parsed(captured) for _, _, captured in outbound]
    cut = _Cut()
    for (_, side, _), frame in zip(outbound, parsed, strict=True):
        cut.add(side, frame)
    recorded = {side: _samples(folder / f"iq-{side}.sigmf-meta") for side in SIDES}
    sizes = {
        side: [len(each.octets) for _, of, each in outbound if of == side and _ERASED not in each.comment]
        for side in SIDES
    }
    traced = {side: _traced(folder / f"trace-{side}.parquet", sizes[side]) if plan.tier.radio else {} for side in SIDES}
    on_air = {side: count() for side in SIDES}
    frames = []
    for number, ((time_ns, side, captured), frame) in enumerate(zip(outbound, parsed, strict=True)):
        kind, fields, payload = ("unknown", {}, None) if frame is None else content_of(frame)
        octets = cut.packet(side, frame) if isinstance(frame, Fragment) else payload
        erased = _ERASED in captured.comment
        samples, missed, received = None, True, None
        if not erased:
            order = next(on_air[side])
            samples, missed = recorded[side].of(order)
            received = traced[side].get(order)
        damaged = not samples.crc_ok if samples is not None else received is not None and received.outcome == "payload"
        missed = missed or (received is not None and received.outcome == "missed")
        fate, arrived_at = _fate(captured.comment, damaged, missed, heard[side][captured.octets])
        sent_ns = time_ns - epoch_ns
        frames.append(
            Frame(
                number=number,
                side=side,
                start_ns=sent_ns - plan.stations[side].hop.frame_ns(len(captured.octets)),
                sent_ns=sent_ns,
                arrived_ns=None if arrived_at is None else arrived_at - epoch_ns,
                nbytes=len(captured.octets),
                kind=kind,
                fate=fate,
                fields=fields,
                packet=None if octets is None else packets.number(bytes(octets)),
                samples=samples,
                snr_db=None if received is None else received.snr_db,
            )
        )
    for side in SIDES:
        frames = _heard(_ended(frames, side, captures[other(side)], epoch_ns), side)
    return Timeline(
        run=folder.name,
        tier=plan.tier.name,
        scheme=plan.scheme.name,
        epoch_ns=epoch_ns,
        packets=packets.found,
        sent=[],
        received=[],
        frames=frames,
        records=records,
        crossed=[],
    )


class _CapturedPackets(Packets):
    """Numbers packets by their octets: the link's retransmission has the same ones, TCP's has not."""

    def __init__(self, ports: Mapping[int, str]) -> None:
        super().__init__(ports)
        self._numbers: dict[bytes, int] = {}

    def number(self, octets: bytes) -> int:
        if octets not in self._numbers:
            try:
                segment: Segment | None = parse(octets)
            except SegmentError:
                segment = None
            self._numbers[octets] = self.add(segment, len(octets))
        return self._numbers[octets]


def _arrivals(capture: Sequence[CapturedFrame]) -> dict[bytes, deque[int]]:
    """Return when a station heard the frames with these octets, in order."""
    found: dict[bytes, deque[int]] = defaultdict(deque)
    for frame in capture:
        if frame.direction is Direction.INBOUND and not frame.crc_error:
            found[frame.octets].append(frame.time_ns)
    return found


def _parsed(captured: CapturedFrame) -> Any | None:
    """Return a frame as an object; None when its scheme is not known or cannot parse it."""
    scheme = SCHEMES.get(captured.interface)
    with suppress(FrameError):
        return None if scheme is None else scheme.parse(captured.octets)
    return None


def _fate(comment: str, damaged: bool, missed: bool, times: deque[int]) -> tuple[str, int | None]:
    """Return the fate of a sent frame, and the Unix time (ns) of its arrival, taken off those of its octets."""
    if _ERASED in comment:
        return "erased", None
    if _DAMAGED in comment or damaged:
        return "damaged", None
    if missed:
        return "unheard", None
    if not times:
        # or unheard, as later frames tell
        return "under way", None
    return "ok", times.popleft()


class _Cut:
    """The packets that stations sent in fragments."""

    def __init__(self) -> None:
        self._pieces: dict[tuple[Any, ...], dict[int, bytes]] = defaultdict(dict)

    def add(self, side: Side, frame: Any) -> None:
        if isinstance(frame, Fragment) and frame.index < frame.data:
            self._pieces[self._key(side, frame)][frame.index] = bytes(cast(bytes, frame.payload))

    def packet(self, side: Side, fragment: Fragment) -> bytes | None:
        """Return the octets of a fragment's packet; None when not all of them were sent."""
        pieces = self._pieces.get(self._key(side, fragment), {})
        if any(index not in pieces for index in range(fragment.data)):
            return None
        return b"".join(pieces[index] for index in range(fragment.data))[: fragment.length]

    @staticmethod
    def _key(side: Side, fragment: Fragment) -> tuple[Any, ...]:
        return side, fragment.session, fragment.channel, fragment.seq


class _Recorded:
    """The samples of a receiver's frames, by the radio's number of them."""

    def __init__(self, samples: Mapping[int, Samples]) -> None:
        self._samples = samples
        self._last = max(samples, default=-1)

    def of(self, number: int) -> tuple[Samples | None, bool]:
        """Return a frame's samples, if it was heard, and whether the recording knows that it was not."""
        return self._samples.get(number), number < self._last and number not in self._samples


@dataclass(frozen=True, slots=True)
class _Received:
    """A row of a receiver's channel trace."""

    nbytes: int
    outcome: str
    snr_db: float | None


def _traced(trace: Path, sizes: Sequence[int]) -> dict[int, _Received]:
    """Return the rows of a receiver's channel trace by the order of the frames on the air, which have these `sizes`.

    The trace begins with the first frame that was heard: the frames before it are as many as fit the sizes. Empty
    where none fit, or without a trace; rows for which samples were lost tell nothing.
    """
    from channel.replay import TraceError
    from channel.trace import read_trace

    if not trace.exists():
        return {}
    try:
        found = read_trace(trace)
    except TraceError as error:
        raise FadelabError(str(error)) from None
    rows = [
        _Received(nbytes, outcome.value, snr_db)
        for nbytes, outcome, snr_db in zip(found.nbytes, found.outcome, found.snr_db, strict=True)
    ]
    # missed frames have the sizes of others
    heard = np.array([index for index, row in enumerate(rows) if row.outcome not in ("missed", "unknown")], int)
    wanted, sent = np.array([rows[index].nbytes for index in heard], int), np.array(sizes, int)
    for before in range(len(sizes) - len(rows) + 1):
        # mostly the first few tell
        first = np.array_equal(sent[heard[:64] + before], wanted[:64])
        if first and np.array_equal(sent[heard + before], wanted):
            return {order: row for order, row in enumerate(rows, before) if row.outcome != "unknown"}
    return {}


def _samples(metadata: Path) -> _Recorded:
    """Return the content of a recording; empty without one."""
    if not metadata.exists():
        return _Recorded({})
    try:
        content = object_of(metadata.read_text(), LONGEST)
        rate_sps = float(content["global"]["core:sample_rate"])
        if not 0 < rate_sps < math.inf:
            raise ValueError(rate_sps)
        return _Recorded(
            {
                int(annotation["fadelab:sequence"]): Samples(
                    int(annotation["core:sample_start"]),
                    int(annotation["core:sample_count"]),
                    rate_sps,
                    bool(annotation["fadelab:crc_ok"]),
                    {name: annotation[f"fadelab:{name}"] for name in _FIGURES if f"fadelab:{name}" in annotation},
                )
                for annotation in content["annotations"]
                if "fadelab:sequence" in annotation
            }
        )
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        raise FadelabError(f"{metadata}: is no metadata of a recording of fadelab's") from None


def _ended(frames: Sequence[Frame], side: Side, capture: Sequence[CapturedFrame], epoch_ns: int) -> list[Frame]:
    """Return the frames, those of `side` as unheard that are under way though later ones have arrived.

    `capture`: that of the other station. Of its damaged frames behind the last intact one it is not known which they
    are: so many of the frames left are unheard, the first ones.
    """
    ours = [frame for frame in frames if frame.side == side]
    last = next((frame for frame in reversed(ours) if frame.arrived_ns is not None), None)
    behind = [frame for frame in ours if last is None or frame.number > last.number]
    since_ns = epoch_ns + (last.arrived_ns or 0) if last is not None else 0
    damaged = sum(
        each.direction is Direction.INBOUND and each.crc_error and each.time_ns > since_ns for each in capture
    ) - sum(frame.fate == "damaged" for frame in behind)
    on_way = [frame.number for frame in behind if frame.fate == "under way"]
    left = set(on_way[max(0, damaged) :])
    return [
        replace(frame, fate="unheard")
        if frame.side == side and frame.fate == "under way" and frame.number not in left
        else frame
        for frame in frames
    ]


def _heard(frames: Sequence[Frame], side: Side) -> list[Frame]:
    """Return the frames, those of `side` that have samples with the time of these on the run's clock."""
    starts = {
        index: round(frame.samples.start * 1e9 / frame.samples.rate_sps)
        for index, frame in enumerate(frames)
        if frame.side == side and frame.samples is not None
    }
    # the recording's first sample
    zero_ns = max((frames[index].sent_ns - start for index, start in starts.items()), default=0)
    return [
        replace(frame, heard_ns=zero_ns + starts[index]) if index in starts else frame
        for index, frame in enumerate(frames)
    ]
