"""The station's flowgraph: one USRP and one PHY, sending and receiving frames at the same time.

    frames ─► PHY transmitter ─► USRP sink          USRP source ─► PHY receiver ─► frames
                                                         ├──────► level meter
                                                         └──────► file (when recording)

Rules kept: GNU Radio runs the blocks in threads of their own. A caller uses `send` and `receive`, which return at once,
and waits on `fileno()`; it never blocks on the radio. Overflows, underflows and late samples of a device are counted.

Left out: a limit of the frames in the radio; the caller limits them by `Phy.frame_samples`.
"""

import os
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pmt
from gnuradio import blocks, gr
from numpy.typing import NDArray

from flowgraphs.frontend import RadioSettings, Receiver, Transmitter, end
from flowgraphs.phy import Constellation, Phy, Received, frame_pdu, received_from_pdu
from flowgraphs.recording import data_path, finish

#: samples that the level meter takes at a time
_METER_SAMPLES = 16_384
#: gr-uhd's events for errors of transmission (uhd/types/metadata.hpp)
_LATE_EVENTS = [
    pmt.intern(name) for name in ("underflow", "underflow_in_packet", "time_error", "seq_error", "seq_error_in_burst")
]
_EVENTS = pmt.intern("event_code")


@dataclass(slots=True)
class DeviceCounters:
    """Counters of a device's lateness since the start."""

    #: receive: gaps in the samples, because the host took them too late (O)
    overflows: int = 0
    #: transmit: samples that came too late or not at all (U, L, S)
    underflows: int = 0


class Transceiver(gr.top_block):
    """A running radio station; `start()` is GNU Radio's, `close()` ends it.

    With `record`, the received samples are kept as a SigMF recording of that name; its metadata are written when the
    station closes, with `phy_options`, the arguments of the PHY.
    Raises FrontEndError, PhyError and, when closing, RecordingError.
    """

    def __init__(
        self,
        settings: RadioSettings,
        phy: Phy,
        *,
        record: Path | None = None,
        phy_options: Mapping[str, Any] | None = None,
    ) -> None:
        gr.top_block.__init__(self, "station", catch_exceptions=False)
        self.settings = settings
        self.phy = phy
        # transmitter first: where a device shares settings, the receiver's hold
        self.tx = Transmitter(settings)
        self.rx = Receiver(settings)
        self._mailbox = _Mailbox()
        self._meter = _LevelMeter()
        self._gaps = blocks.tag_debug(gr.sizeof_gr_complex, "gaps", "rx_time")
        self._gaps.set_display(False)
        transmitter, receiver = phy.transmitter(), phy.receiver()
        # GNU Radio keeps no Python block alive
        self._modem = transmitter, receiver
        self.msg_connect((self._mailbox, "send"), (transmitter, "frames"))
        self.connect(transmitter, self.tx.block)
        self.connect(self.rx.block, receiver)
        self.msg_connect((receiver, "frames"), (self._mailbox, "received"))
        self.connect(self.rx.block, self._meter)
        self.connect(self.rx.block, self._gaps)
        self.msg_connect((self.tx.block, "async_msgs"), (self._mailbox, "events"))
        self._record = record
        self._phy_options = phy_options
        self._frames: list[Received] = []
        self._started = datetime.now(UTC)
        if record is not None:
            self._file = blocks.file_sink(gr.sizeof_gr_complex, str(data_path(record)), False)
            self.connect(self.rx.block, self._file)

    def send(self, frame: bytes) -> None:
        """Queue one frame for transmission."""
        self._mailbox.post(frame)

    def receive(self) -> Received | None:
        """Return the next received frame, damaged ones included, or None."""
        received = self._mailbox.take()
        if received is not None and self._record is not None:
            self._frames.append(received)
        return received

    def fileno(self) -> int:
        """Return the descriptor that is readable when a frame has been received."""
        return self._mailbox.eventfd

    def airtime_ns(self, nbytes: int) -> int:
        """Return the airtime of a frame of `nbytes`."""
        return round(self.phy.frame_samples(nbytes) * 1e9 / self.settings.rate_sps)

    def peak_dbfs(self) -> float:
        """Return the largest received sample since the last call, in dB of full scale."""
        return self._meter.take_dbfs()

    def samples(self) -> NDArray[np.complex64]:
        """Return the newest received samples: complex64, as many as the meter takes at a time; empty at first."""
        return self._meter.newest

    def constellation(self) -> Constellation | None:
        """Return the symbols of the newest received frame, or None without any."""
        constellation: Constellation | None = getattr(self._modem[1], "constellation", None)
        return constellation

    def counters(self) -> DeviceCounters:
        """Return the counters of the device's lateness."""
        # the device tags its first sample, and the first one after every gap, with the time
        return DeviceCounters(max(self._gaps.num_tags() - 1, 0), self._mailbox.late)

    def close(self) -> None:
        """End the flowgraph and release the radio."""
        end(self)
        self.tx.close()
        self.rx.close()
        while self.receive() is not None:
            pass
        os.close(self._mailbox.eventfd)
        if self._record is not None:
            self._file.close()
            finish(
                self._record,
                rate_sps=self.settings.rate_sps,
                frequency_hz=self.settings.rx_hz,
                started=self._started,
                hardware=f"{self.settings.args}, gain {self.rx.gain_db:g} dB",
                gaps=self.counters().overflows,
                phy=self.phy.name,
                phy_options=self._phy_options,
                frames=self._frames,
            )


class _Mailbox(gr.basic_block):
    """Passes frames into GNU Radio's messages and out of them."""

    def __init__(self) -> None:
        gr.basic_block.__init__(self, "mailbox", in_sig=None, out_sig=None)
        self._port = pmt.intern("send")
        self.message_port_register_out(self._port)
        for port, handler in (("received", self._handle_frame), ("events", self._note)):
            self.message_port_register_in(pmt.intern(port))
            self.set_msg_handler(pmt.intern(port), handler)
        self._frames: deque[Received] = deque()
        #: readable when a frame has been received
        self.eventfd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.late = 0

    def post(self, frame: bytes) -> None:
        self.message_port_pub(self._port, frame_pdu(frame))

    def take(self) -> Received | None:
        if not self._frames:
            # read before the last check of the queue, so that a frame in between sets the eventfd again
            try:
                os.eventfd_read(self.eventfd)
            except BlockingIOError:
                return None
        return self._frames.popleft() if self._frames else None

    def _handle_frame(self, pdu: object) -> None:
        self._frames.append(received_from_pdu(pdu))
        os.eventfd_write(self.eventfd, 1)

    def _note(self, message: object) -> None:
        # a pair of a name and a dictionary with a list of events
        events = pmt.dict_ref(pmt.cdr(message), _EVENTS, pmt.PMT_NIL)
        self.late += any(pmt.list_has(events, event) for event in _LATE_EVENTS)


class _LevelMeter(gr.sync_block):
    """Keeps the largest sample, and the newest samples for display."""

    def __init__(self) -> None:
        gr.sync_block.__init__(self, "level meter", in_sig=[np.complex64], out_sig=None)
        self.set_output_multiple(_METER_SAMPLES)
        self._peak = 0.0
        self.newest: NDArray[np.complex64] = np.empty(0, np.complex64)

    def take_dbfs(self) -> float:
        peak, self._peak = self._peak, 0.0
        return 20 * float(np.log10(max(peak, 1e-10)))

    def work(self, input_items: list[NDArray[np.complex64]], output_items: object) -> int:
        samples = input_items[0]
        # I and Q clip separately
        self._peak = max(self._peak, float(np.abs(samples.view(np.float32)).max()))
        self.newest = samples[-_METER_SAMPLES:].copy()
        return len(samples)
