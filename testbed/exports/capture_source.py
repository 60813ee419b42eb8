"""The timeline of a real-time run: its captures, and its recordings of samples.

Rules kept

- A frame's times and content are those of its sender's capture (docs/capture.md). It has arrived when the other
  station's capture has it, octet by octet; an ACK that was sent twice with the same octets arrives in order.
- The n-th frame that the modelled medium let through is the n-th of the radio: the PHY's sequence number in a
  recording's annotation names it. So sample indices are exact, whatever the clocks.
- A packet that was sent in fragments is that of all its fragments: the first ones are its octets.
- A recording's clock is not the host's. `heard_ns` counts from the first instant at which no frame is heard before its
  last bit has left the modelled transmitter.
"""

import json
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from common.sides import SIDES, STATIONS, Side, other
from linklayer.arq.frames import Fragment
from linklayer.link import FrameError
from linklayer.schemes import SCHEMES
from tcpip.segment import Segment
from tcpip.wire import SegmentError, parse
from telemetry.pcapng import CaptureError, Direction
from telemetry.pcapng_reader import CapturedFrame, read_capture
from testbed.errors import FadelabError
from testbed.exports.timeline import Frame, Packets, Samples, Timeline, content_of
from testbed.scenario.channel_models import frame_ns
from testbed.scenario.schema import Scenario

#: in the comment of a sent frame: what the modelled medium did to it (docs/capture.md)
_ERASED, _DAMAGED = "; erased by the channel", "; damaged by the channel"
_FIGURES = ("snr_db", "evm_db", "cfo_hz", "rssi_db")


def from_captures(
    folder: Path, scenario: Scenario, records: Mapping[str, Sequence[Mapping[str, Any]]], epoch_ns: int
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
    ports = {port: flow for work in scenario.make_workloads() for port, flow in work.ports().items()}
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
    frames = []
    for number, ((time_ns, side, captured), frame) in enumerate(zip(outbound, parsed, strict=True)):
        kind, fields, payload = ("unknown", {}, None) if frame is None else content_of(frame)
        octets = cut.packet(side, frame) if isinstance(frame, Fragment) else payload
        fate, arrived_at = _fate(captured, heard[side])
        sent_ns = time_ns - epoch_ns
        frames.append(
            Frame(
                number=number,
                side=side,
                start_ns=sent_ns - frame_ns(scenario.channel.direction(side), len(captured.octets)),
                sent_ns=sent_ns,
                arrived_ns=None if arrived_at is None else arrived_at - epoch_ns,
                nbytes=len(captured.octets),
                kind=kind,
                fate=fate,
                fields=fields,
                packet=None if octets is None else packets.number(bytes(octets)),
            )
        )
    for side in SIDES:
        recording = folder / f"iq-{side}.sigmf-meta"
        if recording.exists():
            frames = _with_samples(frames, side, recording)
    return Timeline(
        run=folder.name,
        tier=scenario.tier,
        scheme=scenario.link.scheme,
        epoch_ns=epoch_ns,
        packets=packets.found,
        sent=(),
        received=(),
        frames=frames,
        records=records,
    )


class _CapturedPackets(Packets):
    """Numbers packets by their octets: the link's retransmission has the same ones, TCP's has not."""

    def __init__(self, ports: Mapping[int, str]) -> None:
        super().__init__(ports)
        self._numbers: dict[bytes, int] = {}

    def number(self, octets: bytes) -> int:
        """Return the number of the packet with these octets."""
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


def _fate(captured: CapturedFrame, heard: dict[bytes, deque[int]]) -> tuple[str, int | None]:
    """Return the fate of a sent frame, and the Unix time (ns) of its arrival, if known."""
    if _ERASED in captured.comment:
        return "erased", None
    if _DAMAGED in captured.comment:
        return "damaged", None
    if heard.get(captured.octets):
        return "ok", heard[captured.octets].popleft()
    return "unheard", None


class _Cut:
    """The packets that stations sent in fragments."""

    def __init__(self) -> None:
        self._pieces: dict[tuple[Any, ...], dict[int, bytes]] = defaultdict(dict)

    def add(self, side: Side, frame: Any) -> None:
        """Take a frame that a station has sent."""
        if isinstance(frame, Fragment) and frame.index < frame.data:
            self._pieces[self._key(side, frame)][frame.index] = bytes(cast(bytes, frame.payload))

    def packet(self, side: Side, fragment: Fragment) -> bytes | None:
        """Return the octets of a fragment's packet; None when not all of them were sent."""
        pieces = self._pieces.get(self._key(side, fragment), {})
        if len(pieces) < fragment.data:
            return None
        return b"".join(pieces[index] for index in range(fragment.data))[: fragment.length]

    @staticmethod
    def _key(side: Side, fragment: Fragment) -> tuple[Any, ...]:
        return side, fragment.session, fragment.channel, fragment.seq


def _with_samples(frames: Sequence[Frame], side: Side, recording: Path) -> list[Frame]:
    """Return the frames, those of `side` with their samples in its recording."""
    try:
        metadata = json.loads(recording.read_text())
        rate_sps = float(metadata["global"]["core:sample_rate"])
        found = {
            int(annotation["fadelab:sequence"]): Samples(
                int(annotation["core:sample_start"]),
                int(annotation["core:sample_count"]),
                rate_sps,
                bool(annotation["fadelab:crc_ok"]),
                {name: annotation[f"fadelab:{name}"] for name in _FIGURES if f"fadelab:{name}" in annotation},
            )
            for annotation in metadata["annotations"]
            if "fadelab:sequence" in annotation
        }
    except (OSError, ValueError, KeyError, TypeError):
        raise FadelabError(f"{recording}: is no metadata of a recording of fadelab's") from None
    on_air = [index for index, frame in enumerate(frames) if frame.side == side and frame.fate != "erased"]
    matched = {index: found[number] for number, index in enumerate(on_air) if number in found}
    if not matched:
        return list(frames)
    # the recording's first sample, on the run's clock
    zero_ns = max(frames[index].sent_ns - round(known.start * 1e9 / rate_sps) for index, known in matched.items())
    with_samples = list(frames)
    for index, known in matched.items():
        frame = frames[index]
        with_samples[index] = replace(
            frame,
            samples=known,
            heard_ns=zero_ns + round(known.start * 1e9 / rate_sps),
            fate="damaged" if frame.fate == "unheard" and not known.crc_ok else frame.fate,
        )
    return with_samples
