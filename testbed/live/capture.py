"""Captures the frames that a station sends and receives, in `air-st.pcapng` or `air-bas.pcapng` of the run's folder.

Read first: docs/capture.md. The writer is `telemetry/pcapng.py`; the link scheme describes the frames.

Rules: a sent frame has the time at which its last bit leaves the transmitter, when its fate in the modelled medium is
known; a received frame has the time at which the station takes it. So times never decrease and no frame waits. A frame
that the MAC buffer refused was never on the air: it counts as a drop of the next frame sent. Each frame is decoded by
the scheme that was in use when it was sent or received.
"""

import time
from collections import deque
from pathlib import Path

from channel.errors import Fate, Verdict
from channel.hop import Arrival
from common.closing import Closing
from common.sides import STATIONS, Side, other
from common.units import number_of
from linklayer.link import Scheme
from telemetry.pcapng import Direction, PcapngWriter
from testbed.live.hop_radio import HopRadio


def capture_path(folder: Path, side: Side) -> Path:
    """Return the capture file of the station that transmits on `side`."""
    return folder / f"air-{STATIONS[side]}.pcapng"


class CapturedRadio(Closing):
    """A radio that captures all its frames, of the station that transmits on `side`; a context manager.

    It stands in for the radio that it wraps. Raises CaptureError.
    """

    def __init__(self, radio: HopRadio, folder: Path, side: Side, scheme: Scheme) -> None:
        self._radio = radio
        self.fileno, self.has_room, self.next_deadline = radio.fileno, radio.has_room, radio.next_deadline
        self._out, self._back = side, other(side)
        self._scheme = scheme
        self._writer = PcapngWriter(capture_path(folder, side), application="fadelab")
        #: from CLOCK_MONOTONIC to Unix time
        self._unix_ns = time.time_ns() - time.monotonic_ns()
        self._now = time.monotonic_ns()
        #: the writer's interfaces: one per scheme
        self._interfaces: dict[str, int] = {}
        #: the schemes of the frames in the MAC buffer
        self._held: deque[Scheme] = deque()
        #: frames refused since the last one that left
        self._refused = 0
        self._interface(scheme)
        radio.hop.watch(self._leaving)

    def switch(self, scheme: Scheme) -> None:
        """Decode frames sent and received from now on by another scheme."""
        self._scheme = scheme

    def send(self, frame: bytes, now: int) -> bool:
        """Hand one frame to the radio."""
        taken = self._radio.send(frame, now)
        if taken:
            self._held.append(self._scheme)
        else:
            self._refused += 1
        return taken

    def receive(self) -> bytes | None:
        """Capture and return the next frame that the radio has received."""
        frame = self._radio.receive()
        if frame is not None:
            found = self._scheme.describe(frame)
            self._writer.packet(
                self._interface(self._scheme),
                self._unix_ns + self._now,
                frame,
                direction=Direction.INBOUND,
                comment=f"{self._back}: {found.words}",
                crc_error=not found.intact,
            )
        return frame

    def handle_deadline(self, now: int) -> None:
        """Handle the radio's deadline."""
        self._now = now
        self._radio.handle_deadline(now)

    def close(self) -> None:
        """Complete the file."""
        self._writer.close()

    def _leaving(self, arrival: Arrival[bytes]) -> None:
        scheme = self._held.popleft()
        self._writer.packet(
            self._interface(scheme),
            self._unix_ns + arrival.sent_at,
            arrival.frame,
            direction=Direction.OUTBOUND,
            comment=f"{self._out}: {scheme.describe(arrival.frame).words}{_fate(arrival.verdict)}",
            dropped=self._refused,
        )
        self._refused = 0

    def _interface(self, scheme: Scheme) -> int:
        if scheme.name not in self._interfaces:
            self._interfaces[scheme.name] = self._writer.interface(
                scheme.link_type,
                name=scheme.name,
                description=f"radio of {STATIONS[self._out].upper()}: sends {self._out}, hears {self._back}",
            )
        return self._interfaces[scheme.name]


def _fate(verdict: Verdict) -> str:
    if verdict.fate is Fate.ERASED:
        return "; erased by the channel"
    if verdict.fate is Fate.DAMAGED:
        return f"; damaged by the channel: {number_of(len(verdict.bit_errors), 'bit')}"
    return ""
