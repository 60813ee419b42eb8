"""Front ends: one channel of a USRP, virtual or real, as a GNU Radio source and sink.

Read first: UHD's manual on device identification and on streaming; `flowgraphs/vusrp/README.md` on virtual
ones. A virtual and a real USRP differ in the device arguments only.

Rules kept: a setting that the device does not support, such as a sample rate, is an error before the start and is never
replaced by another. Every exception of UHD becomes one line that names the device.
"""

import math
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: gr-uhd's sink sends one burst for every run of samples that begins with a tag of this name
BURST_TAG = "packet_len"
#: largest relative difference between the requested and the actual rate
_RATE_TOLERANCE = 1e-6
_POLL_S = 0.05
#: samples of about this duration come at a time from a receiver
_LOT_S = 2e-3
#: gr-uhd's default, after which the source asks again
_RECEIVE_TIMEOUT_S = 0.1
#: after this time without samples the radio counts as stopped
_STALL_S = 3.0


class FrontEndError(RuntimeError):
    """A radio that does not answer, or a setting that it refuses; one line."""


@dataclass(frozen=True, slots=True)
class RadioSettings:
    """The settings of a USRP; gains None: the middle of the device's range."""

    #: UHD device arguments, such as "type=b200" or "type=vusrp,air=lab,serial=V1"
    args: str
    rate_sps: float
    tx_hz: float
    rx_hz: float
    tx_gain_db: float | None = None
    rx_gain_db: float | None = None
    channel: int = 0
    antenna: str | None = None


def end(graph: Any) -> None:
    """Stop a flowgraph (a `gr.top_block`), wait for its threads and release its blocks.

    The caller must then drop its references to the blocks, which frees the radio. The sink of gr-uhd has a thread that
    ends only with the sink. At the end of the process this thread would use destroyed static data of libgnuradio-uhd,
    and a signal would kill the process.
    """
    from gnuradio import gr

    graph.stop()
    # not `graph.wait()`, whose thread keeps the flowgraph alive longer
    gr.top_block_wait_unlocked(graph._impl)
    del graph._impl


def wait_for(block: Any, samples: int, progress: Callable[[float], None], stall: str, remedy: str = "") -> None:
    """Wait until a block has taken `samples`; `progress(share)` is called with 0 to 1.

    Raises FrontEndError with the radio's name and fault (`stall`) when the block takes none for three seconds.
    """
    had, moved_at = 0, time.monotonic()
    while had < samples:
        time.sleep(_POLL_S)
        have = block.nitems_read(0)
        if have > had:
            had, moved_at = have, time.monotonic()
            progress(min(have / samples, 1.0))
        elif time.monotonic() - moved_at > _STALL_S:
            raise FrontEndError(f"{stall} for {_STALL_S:.0f} s{remedy}")


class Receiver:
    """The receiving half: `block` is the source of complex64 samples. Raises FrontEndError."""

    def __init__(self, settings: RadioSettings) -> None:
        uhd = _uhd()
        stream = uhd.stream_args(cpu_format="fc32", channels=[settings.channel])
        try:
            self.block = uhd.usrp_source(settings.args, stream)
            if settings.antenna:
                self.block.set_antenna(settings.antenna)
            tuned = _set_up(self.block, settings.rate_sps, settings.rx_hz, settings.rx_gain_db)
            # by default every packet of the device, of 0.1 to 1 ms, wakes all blocks behind the source
            self.block.set_recv_timeout(_RECEIVE_TIMEOUT_S, False)
            # a power of two, so that the lots of PHYs fit in
            self.block.set_max_noutput_items(1 << max(round(math.log2(settings.rate_sps * _LOT_S)), 8))
        except RuntimeError as error:
            raise _explain(settings.args, error) from None
        self.gain_db: float = tuned
        gains = self.block.get_gain_range()
        self.gain_range_db: tuple[float, float] = gains.start(), gains.stop()

    def set_gain(self, gain_db: float) -> None:
        """Set the gain, which the device may round."""
        self.block.set_gain(gain_db)
        self.gain_db = self.block.get_gain()

    def close(self) -> None:
        """Release the device. Afterwards only the gain figures of this object can be used."""
        del self.block


class Transmitter:
    """The transmitting half: `block` is the sink of bursts. Raises FrontEndError."""

    def __init__(self, settings: RadioSettings) -> None:
        uhd = _uhd()
        stream = uhd.stream_args(cpu_format="fc32", channels=[settings.channel])
        try:
            self.block = uhd.usrp_sink(settings.args, stream, BURST_TAG)
            self.gain_db: float = _set_up(self.block, settings.rate_sps, settings.tx_hz, settings.tx_gain_db)
        except RuntimeError as error:
            raise _explain(settings.args, error) from None

    def close(self) -> None:
        """Release the device, and end its event thread. This object cannot be used afterwards."""
        del self.block


def _set_up(block: Any, rate_sps: float, hz: float, gain_db: float | None) -> float:
    """Tune one half of a device; return its gain."""
    nearest = block.get_samp_rates().clip(rate_sps, True)
    if abs(nearest - rate_sps) <= _RATE_TOLERANCE * rate_sps:
        block.set_samp_rate(rate_sps)
        nearest = block.get_samp_rate()
    if not abs(nearest - rate_sps) <= _RATE_TOLERANCE * rate_sps:
        raise RuntimeError(
            f"has no sample rate of {rate_sps:.10g}, the nearest is {nearest:.10g}: set the rate to that"
        )
    frequencies = block.get_freq_range()
    if not frequencies.start() <= hz <= frequencies.stop():
        span = f"{frequencies.start() / 1e6:.0f} to {frequencies.stop() / 1e6:.0f} MHz"
        raise RuntimeError(f"cannot be tuned to {hz / 1e6:g} MHz: choose from {span}")
    block.set_center_freq(hz)
    gains = block.get_gain_range()
    if gain_db is None:
        gain_db = (gains.start() + gains.stop()) / 2
    if not gains.start() <= gain_db <= gains.stop():
        raise RuntimeError(f"has no gain of {gain_db:g} dB: choose from {gains.start():g} to {gains.stop():g}")
    block.set_gain(gain_db)
    return float(block.get_gain())


def _uhd() -> Any:
    # without the version that UHD logs at every start; it still logs warnings
    os.environ.setdefault("UHD_LOG_CONSOLE_LEVEL", "warning")
    try:
        from gnuradio import uhd
    except ImportError as error:
        raise FrontEndError(f"GNU Radio with UHD is missing ({error}): apt-get install gnuradio") from None
    return uhd


def _explain(args: str, error: Exception) -> FrontEndError:
    text = " ".join(str(error).split())
    if "No devices found" in text:
        return FrontEndError(
            f"no USRP answers to {args!r}: check its cable and power, and `uhd_find_devices --args {args!r}`"
        )
    # UHD puts the class of the exception before the message
    return FrontEndError(f"USRP {args!r}: {re.sub(r'[A-Z][A-Za-z]+Error: ', '', text)}")
