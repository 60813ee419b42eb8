"""Front ends: one channel of a USRP, virtual or real, as a GNU Radio source and sink.

Read first: UHD's manual on device identification and on streaming; `flowgraphs/vusrp/README.md` for what a virtual one
does. A virtual and a real USRP differ in the device arguments only.

Rules kept: what the device will not do (a sample rate it has not got) is an error before anything runs, never another
rate. Everything UHD raises comes out as one line that names the device.
"""

import os
import re
from dataclasses import dataclass
from typing import Any

#: gr-uhd's sink sends a burst for every run of samples that a tag of this name opens
BURST_TAG = "packet_len"
#: relative: what a device may be off the rate it was asked for
_RATE_TOLERANCE = 1e-6


class FrontEndError(RuntimeError):
    """A radio that is not there or will not do what it is asked; one line."""


@dataclass(frozen=True, slots=True)
class RadioSettings:
    """What is asked of a USRP; gains None: the middle of the device's range."""

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
    """Stop a flowgraph (a `gr.top_block`), wait for its threads and let go of its blocks.

    Who drops the blocks afterwards has given the radio back. gr-uhd's sink has a thread that ends with the sink alone,
    and tells of the last burst until then: left to the end of the process, it uses what libgnuradio-uhd's static data
    were, and the process dies of a signal.
    """
    from gnuradio import gr

    graph.stop()
    # without the thread of `graph.wait()`, which keeps the flowgraph for a while longer
    gr.top_block_wait_unlocked(graph._impl)
    del graph._impl


class Receiver:
    """The receiving half: `block` is the source of complex64 samples. Raises FrontEndError."""

    def __init__(self, settings: RadioSettings) -> None:
        uhd = _uhd()
        self._args = settings.args
        stream = uhd.stream_args(cpu_format="fc32", channels=[settings.channel])
        try:
            self.block = uhd.usrp_source(settings.args, stream)
            if settings.antenna:
                self.block.set_antenna(settings.antenna)
            tuned = _set_up(self.block, settings.rate_sps, settings.rx_hz, settings.rx_gain_db)
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
        """Let go of the device. Use of this object ends here, but for its figures."""
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
        """Let go of the device, and end the thread that tells of its events. Use of this object ends here."""
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
    # UHD tells its version at every start; what goes wrong, it still tells
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
    # UHD puts the exception's class before what it says
    return FrontEndError(f"USRP {args!r}: {re.sub(r'[A-Z][A-Za-z]+Error: ', '', text)}")
