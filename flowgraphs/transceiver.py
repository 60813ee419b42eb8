"""The station's flowgraph: one USRP and one PHY, sending and receiving frames at the same time.

    frames ─► PHY transmitter ─► USRP sink          USRP source ─► PHY receiver ─► frames
                                                         ├──────► sample meter (unless the receiver is one)
                                                         └──────► file (when recording)

With `access` the stations share a carrier: a block for listen before talk takes the transmitter's bursts and the
source's samples on their way.

Rules kept: GNU Radio runs the blocks in threads of their own; those of this file and of PHY `ofdm` run no Python there.
A caller uses `send` and `receive`, which return at once, and waits on `fileno()`; it never blocks on the radio.
Overflows, underflows and late samples of a device are counted.

Left out: a limit of the frames in the radio; the caller limits them by `Phy.frame_samples`.
"""

import math
import os
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pmt
from gnuradio import blocks, gr
from numpy.typing import NDArray

from flowgraphs.access import AccessCounts, AccessOptions
from flowgraphs.failures import failed_thread
from flowgraphs.frontend import LostRadioError, RadioSettings, Receiver, Transmitter, end, gr_uhd
from flowgraphs.gaps import Lost, SampleGaps
from flowgraphs.native import native
from flowgraphs.phy import Constellation, Phy, Received
from flowgraphs.recording import data_path, finish

#: samples that the level meter takes at a time
_METER_SAMPLES = 16_384
#: a receiver without new samples for so many calls of `check`, 50 ms apart, is lost. Calls, not time: a process that
#: the machine stopped for a second has not lost its radio
_STILL_CHECKS = 20


@dataclass(slots=True)
class DeviceCounters:
    """Counters of a device's lateness since the start."""

    #: receive: gaps in the samples, because the host took them too late (O)
    overflows: int = 0
    #: transmit: samples that came too late or not at all (U, L, S)
    underflows: int = 0
    #: the time of all samples that the gaps have taken
    lost_ns: int = 0


def load() -> None:
    """Import what a transceiver needs, so that none takes time for it. Raises FrontEndError."""
    gr_uhd()
    native()


class Transceiver(gr.top_block):
    """A running radio station; `start()` is GNU Radio's, `close()` ends it.

    With `record`, the received samples are kept as a SigMF recording of that name; its metadata are written when the
    station closes, with `phy_options`, the arguments of the PHY. `seed` is that of the backoff of `access`.
    Raises FrontEndError, PhyError and, when closing, RecordingError.
    """

    def __init__(
        self,
        settings: RadioSettings,
        phy: Phy,
        *,
        record: Path | None = None,
        phy_options: Mapping[str, Any] | None = None,
        access: AccessOptions | None = None,
        seed: int = 1,
    ) -> None:
        gr.top_block.__init__(self, "station", catch_exceptions=False)
        self.settings = settings
        self.phy = phy
        before = _threads()
        # transmitter first: where a device shares settings, the receiver's hold
        self.tx = Transmitter(settings)
        self.rx = Receiver(settings)
        self.tx.check()
        #: threads of UHD and gr-uhd: those that came while the device was opened; later ones are not in `_earlier`
        self._devices = {thread for thread, name in _threads().items() if not name.startswith("uhd_log")} - set(before)
        self._earlier = set(before) | self._devices
        self._box = native().frame_box()
        transmitter, receiver = phy.transmitter(), phy.receiver()
        # that of PHY `ofdm` measures the samples itself: to wake one more thread would cost more
        self._meter = receiver if hasattr(receiver, "take_peak") else native().sample_meter(_METER_SAMPLES)
        # GNU Radio keeps no Python block alive
        self._modem = transmitter, receiver
        self.msg_connect((self._box, "send"), (transmitter, "frames"))
        head, tail = self._guard = settings.guard()
        bursts = transmitter
        if head or tail:
            bursts = native().burst_guard(head, tail)
            self.connect(transmitter, bursts)
        heard: Any = self.rx.block
        self._access: Any = None if access is None else _access_block(access, settings.rate_sps, seed)
        if access is not None:
            self.connect(bursts, (self._access, 0))
            self.connect(heard, (self._access, 1))
            bursts, heard = (self._access, 0), (self._access, 1)
            if access.preamble and _has_port(receiver, "busy"):
                self.msg_connect((receiver, "busy"), (self._access, "busy"))
            self.msg_connect((self._access, "departed"), (self._box, "departed"))
        self.connect(bursts, self.tx.block)
        self.connect(heard, receiver)
        self.msg_connect((receiver, "frames"), (self._box, "received"))
        if self._meter is not receiver:
            self.connect(heard, self._meter)
        self.msg_connect((self.tx.block, "async_msgs"), (self._box, "events"))
        self._record = record
        self._phy_options = phy_options
        #: taken of the box, but not received by the caller yet
        self._taken: deque[Received] = deque()
        #: samples at the last call of `check`, and calls since without a new one
        self._samples = self._still = 0
        self._frames: list[Received] = []
        self._gaps = SampleGaps(self.rx.block.get_samp_rate())
        self._started = datetime.now(UTC)
        if record is not None:
            self._file = blocks.file_sink(gr.sizeof_gr_complex, str(data_path(record)), False)
            self.connect(heard, self._file)

    def run_in_real_time(self, priority: int) -> None:
        """Give the threads that the device waits for a real-time priority (SCHED_RR; 1 to 99); after `start()`.

        The receiver behind the source is not among them: buffers lie between, and decoding may take whole cores.
        Raises PermissionError.
        """
        # not `set_thread_priority`, which keeps a thread's scheduling policy
        waited_for = [self._modem[0], self.tx.block, self.rx.block]
        if self._access is not None:
            # others on the carrier wait for them, too, and not for the thread of this call
            waited_for.append(self._access)
            priority += 1
        # GNU Radio's name of a block's thread, cut to the kernel's limit
        names = {f"{block.name()}{block.unique_id()}"[:15] for block in waited_for}
        threads = _threads()
        # UHD's streamers make threads at the start, which keep the name of the process
        own = threads[os.getpid()]
        for thread, name in threads.items():
            if thread in self._devices or name in names or (name == own and thread not in self._earlier):
                # it may have ended
                with suppress(ProcessLookupError):
                    os.sched_setscheduler(thread, os.SCHED_RR, os.sched_param(priority))

    def about(self) -> dict[str, Any]:
        """Return what the device says of itself and of both halves."""
        return {"args": self.settings.args, "tx": self.tx.about(), "rx": self.rx.about()}

    def send(self, frame: bytes, mode: str = "") -> None:
        """Queue one frame for transmission; `mode`: in this one of the PHY's `modes`, by its name."""
        self._box.send(frame, mode)

    def receive(self) -> Received | None:
        """Return the next received frame, damaged ones included, or None."""
        if not self._taken:
            # an empty box makes the descriptor unreadable
            self._taken.extend(Received(*fields) for fields in self._box.take())
            if not self._taken:
                return None
        received = self._taken.popleft()
        if self._record is not None:
            self._frames.append(received)
        return received

    def lost_before(self, received: Received) -> Lost:
        """Return the gaps before the end of a received frame, and the samples lost before its start."""
        self._take_gaps()
        return self._gaps.before(received.sample, received.sample + received.nsamples)

    def fileno(self) -> int:
        """Return the descriptor that is readable when a frame has been received."""
        descriptor: int = self._box.eventfd
        return descriptor

    def airtime_ns(self, nbytes: int, phy: Phy | None = None) -> int:
        """Return the airtime of a frame of `nbytes`, silence before and after it included.

        `phy`: the PHY in another mode.
        """
        samples = (phy or self.phy).frame_samples(nbytes) + sum(self._guard)
        return round(samples * 1e9 / self.settings.rate_sps)

    def peak_dbfs(self) -> float:
        """Return the largest received sample since the last call, in dB of full scale."""
        return 20 * math.log10(max(self._meter.take_peak(), 1e-10))

    def spectrum_db(self, bins: int) -> NDArray[np.float32]:
        """Return the power of the newest samples in each bin, lowest frequency first, in dB of full scale.

        As many as the meter takes at a time, none at first. Welch's method without overlap, Hann window.
        """
        levels: NDArray[np.float32] = self._meter.spectrum_db(bins)
        return levels

    def constellation(self) -> Constellation | None:
        """Return the symbols of the newest received frame, or None without any."""
        constellation: Constellation | None = getattr(self._modem[1], "constellation", None)
        return constellation

    def counters(self) -> DeviceCounters:
        """Return the counters of the device's lateness."""
        self._take_gaps()
        return DeviceCounters(self._gaps.count, self._box.late, self._gaps.lost_ns)

    def acknowledged(self) -> int:
        """Return the number of bursts that the device has reported as sent."""
        bursts: int = self._box.acknowledged
        return bursts

    def departed(self) -> int:
        """Return the number of frames that have left with a channel access."""
        frames: int = self._box.departed
        return frames

    def access_counts(self) -> AccessCounts:
        """Return the counters of the channel accesses; only with `access`."""
        return AccessCounts(*self._access.counts)

    def forget_noise(self) -> None:
        """Measure the carrier's noise anew, after a change of gain; only with `access`."""
        self._access.forget_noise()

    def take_spans(self) -> list[tuple[float, float]]:
        """Return begin and end, by the device's clock (s), of the accesses since the last call; only with `access`."""
        spans: list[tuple[float, float]] = self._access.take_spans()
        return spans

    def take_lag_s(self) -> float:
        """Return the most that received samples came late for access since the last call; only with `access`."""
        lag_s: float = self._access.take_lag_s()
        return lag_s

    def _take_gaps(self) -> None:
        # the device tags its first sample, and the first one after every gap, with the time
        for sample, at_s in self._meter.beginnings(self._gaps.count + 1):
            self._gaps.handle(sample, at_s)

    def check(self) -> None:
        """Raise LostRadioError when the device is gone; to be called every 50 ms.

        gr-uhd's source asks for ever a device that sends nothing; an unplugged USB device fails its thread.
        """
        samples = self.rx.block.nitems_written(0)
        self._still = 0 if samples > self._samples else self._still + 1
        self._samples = samples
        thread = failed_thread()
        if thread is not None:
            raise LostRadioError(
                f"USRP {self.settings.args!r}: its thread {thread} has failed: check its cable and power"
            )
        if self._still >= _STILL_CHECKS:
            # a machine with too much to do starves a radio, too
            raise LostRadioError(
                f"USRP {self.settings.args!r}: no samples for 1 s: check its cable, its power and this machine's load"
            )

    def close(self) -> None:
        """End the flowgraph and release the radio."""
        end(self)
        self.tx.close()
        self.rx.close()
        self._finish()
        self._box.close()

    def abandon(self) -> None:
        """Complete the recording, and leave the flowgraph of a lost radio alone."""
        self._finish()

    def _finish(self) -> None:
        while self.receive() is not None:
            pass
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


def _access_block(access: AccessOptions, rate_sps: float, seed: int) -> Any:
    return native().channel_access(
        rate_sps,
        defer_us=access.defer_us,
        slot_us=access.slot_us,
        lead_us=access.lead_us,
        turnaround_us=access.turnaround_us,
        occupancy_us=access.occupancy_ms * 1e3,
        window=access.window,
        yield_slots=access.yield_slots,
        threshold_db=access.threshold_db,
        seed=seed,
    )


def _has_port(block: Any, name: str) -> bool:
    """Whether a block has a message port of that name for output."""
    return pmt.is_vector(ports := block.message_ports_out()) and any(
        pmt.symbol_to_string(pmt.vector_ref(ports, at)) == name for at in range(pmt.length(ports))
    )


def _threads() -> dict[int, str]:
    """Return the names of this process's threads by their ids."""
    names = {}
    for task in Path("/proc/self/task").iterdir():
        # a thread that has ended meanwhile has no name
        with suppress(FileNotFoundError, ProcessLookupError):
            names[int(task.name)] = (task / "comm").read_text().rstrip("\n")
    return names
