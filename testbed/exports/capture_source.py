"""The timeline of a real-time run: its captures, and its recordings of samples.

Rules kept

- A frame's times and content are those of its sender's capture (docs/capture.md). It has arrived when the other
  station's capture has it, octet by octet; an ACK that was sent twice with the same octets arrives in order.
- The n-th frame that the modelled medium let through is the n-th of the radio: the PHY's sequence number in a
  recording's annotation names it. So sample indices are exact, whatever the clocks.
- A recording's clock is not the host's. `heard_ns` counts from the first instant at which no frame is heard before its
  last bit has left the modelled transmitter.
"""

import json
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from common.sides import SIDES, STATIONS, Side, other
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
#: a frame that its scheme cannot parse
_UNKNOWN: tuple[str, dict[str, Any], Any] = ("unknown", {}, None)
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
    frames = []
    for number, (time_ns, side, captured) in enumerate(outbound):
        frames.append(_frame(number, side, captured, time_ns - epoch_ns, heard[side], scenario, packets, epoch_ns))
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


def _frame(
    number: int,
    side: Side,
    captured: CapturedFrame,
    sent_ns: int,
    heard: dict[bytes, deque[int]],
    scenario: Scenario,
    packets: _CapturedPackets,
    epoch_ns: int,
) -> Frame:
    octets = captured.octets
    kind, fields, payload = _UNKNOWN
    scheme = SCHEMES.get(captured.interface)
    if scheme is not None:
        with suppress(FrameError):
            kind, fields, payload = content_of(scheme.parse(octets))
    arrived_ns = None
    if _ERASED in captured.comment:
        fate = "erased"
    elif _DAMAGED in captured.comment:
        fate = "damaged"
    elif heard.get(octets):
        fate, arrived_ns = "ok", heard[octets].popleft() - epoch_ns
    else:
        fate = "unheard"
    return Frame(
        number=number,
        side=side,
        start_ns=sent_ns - frame_ns(scenario.channel.direction(side), len(octets)),
        sent_ns=sent_ns,
        arrived_ns=arrived_ns,
        nbytes=len(octets),
        kind=kind,
        fate=fate,
        fields=fields,
        packet=None if payload is None else packets.number(bytes(payload)),
    )


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
