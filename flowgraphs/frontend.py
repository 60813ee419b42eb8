"""Front ends: one channel of a USRP, virtual or real, as a GNU Radio source and sink.

Read first: UHD's manual on device identification, on tuning and on streaming; `flowgraphs/vusrp/README.md` on virtual
ones. A virtual and a real USRP differ in the device arguments only.

Rules kept
- A setting that the device does not have is an error before the start and is never replaced by another. Each setting
  is made, read back and compared: the ranges of a device may change with a setting (a B200 chooses its master clock by
  the sample rate), so they only word the message.
- Every exception of UHD becomes one line that names the device.
"""

import fcntl
import math
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge, Le

from common.options import OneOf, Positive
from flowgraphs.bands import BANDS_HZ, fault_of

#: gr-uhd's sink sends one burst for every run of samples that begins with a tag of this name
BURST_TAG = "packet_len"
#: UHD's type of virtual USRPs
_VIRTUAL = "vusrp"
#: largest relative difference between a requested rate or clock and the actual one
_RATE_TOLERANCE = 1e-6
#: largest difference between a requested and an actual carrier: the numeric oscillator corrects the steps of the analog
#: one in steps of 0.1 Hz or less (2^-32 of the master clock); the oscillators of two radios differ by kilohertz
_TUNE_TOLERANCE_HZ = 10.0
#: largest difference of gains, where the device's step is not larger: no amplifier has coarser steps in UHD's sources
_GAIN_TOLERANCE_DB = 1.0
#: largest relative difference of analog bandwidths
_BANDWIDTH_TOLERANCE = 0.01
#: time for oscillators to lock, as in UHD's examples
_LOCK_S = 1.0
#: antenna switches and amplifiers settle in less
_GUARD_US = 10.0
#: the digital up-converter's filters delay a burst by some 20 samples: half-bands of 47 coefficients at two and four
#: times the sample rate, and a CIC filter (UHD, fpga/usrp3/lib/dsp/duc_chain.v). A B200 cuts off what is in them when a
#: burst's last sample has gone in (radio_200/radio_legacy.v: `run_tx`).
_FILTER_SAMPLES = 32
_POLL_S = 0.05
#: a device's packets are that long, and longer at low rates
_PACKET_S = 1e-3
#: gr-uhd's default, after which the source asks again
_RECEIVE_TIMEOUT_S = 0.1
#: after this time without samples the radio counts as stopped
_STALL_S = 3.0
#: an open descriptor of this folder, locked, keeps other programs of ours from looking for devices
_USB_DEVICES = Path("/dev/bus/usb")


class FrontEndError(RuntimeError):
    """A radio that does not answer, or a setting that it refuses; one line."""


class LostRadioError(FrontEndError):
    """A running radio that gives no more samples; one line.

    Its flowgraph cannot be ended: gr-uhd would talk to the device, and an exception there aborts the process. So the
    process must end by `os._exit`.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontEndOptions:
    """Settings of a USRP beside sample rate, carriers and gains; none or empty: the device's own."""

    #: rate of the clock that the sample rates divide; none: the device's default or choice
    master_clock_hz: Positive | None = None
    #: source of the 10 MHz reference, as `internal`, `external` or `gpsdo`; the radio must lock to it;
    #: None: the device's default
    clock_source: str | None = None
    #: source of the second's pulse; None: the device's default
    time_source: str | None = None
    channel: int = 0
    #: subdevice specifications, as `A:0`; None: the device's default
    tx_subdevice: str | None = None
    #: None: the device's default
    rx_subdevice: str | None = None
    #: antenna ports; None: the device's default
    tx_antenna: str | None = None
    #: None: the device's default
    rx_antenna: str | None = None
    #: distance of the analog oscillators above the carriers, which puts their leakage outside the band
    lo_offset_hz: float = 0.0
    #: analog filters; None: the device's default
    bandwidth_hz: Positive | None = None
    #: UHD's arguments of both streams, as `spp=200`
    stream_args: str = ""
    #: silence before each burst, part of its airtime, while switches and amplifiers settle; None: 10 µs, and 0 with a
    #: virtual device without a profile
    head_us: Annotated[float, Ge(0), Le(1000)] | None = None
    #: silence after each burst, while filters end; None: the same, and 32 samples more on a device with flaws
    tail_us: Annotated[float, Ge(0), Le(1000)] | None = None
    #: whether cables and attenuators join the radios; else a real one transmits in the bands of `region` only
    cabled: bool = False
    #: whose bands a real transmitter keeps to; None: it transmits only if `cabled`
    region: Annotated[str, OneOf(tuple(BANDS_HZ))] | None = None


@dataclass(frozen=True, slots=True)
class RadioSettings:
    """The settings of a USRP; gains None: the middle of the device's range."""

    #: UHD device arguments, such as "type=b200" or "type=vusrp,air=lab,serial=V1"; `clock_source`, `time_source` and
    #: `master_clock_rate` take precedence over the options
    args: str
    rate_sps: float
    tx_hz: float
    rx_hz: float
    tx_gain_db: float | None = None
    rx_gain_db: float | None = None
    options: FrontEndOptions = FrontEndOptions()
    #: samples of about this duration come at a time from the receiver
    lot_s: float = 2e-3

    @property
    def lot(self) -> int:
        """Samples that come at a time: a power of two, so that the lots of PHYs fit in."""
        return 1 << max(round(math.log2(self.rate_sps * self.lot_s)), 6 if self.quick else 8)

    @property
    def quick(self) -> bool:
        """Whether lots are shorter than a device's packets may be."""
        return self.lot_s < _PACKET_S

    def receive_args(self) -> str:
        """Return the receiver's stream arguments: packets as short as the lots, unless the options have a length."""
        given = self.options.stream_args
        short = f"spp={self.lot}" if self.quick and "spp=" not in given else ""
        return ",".join(filter(None, (given, short)))

    def send_args(self) -> str:
        """Return the transmitter's stream arguments: a burst that came too late is left out as a whole."""
        given = self.options.stream_args
        whole = "underflow_policy=next_burst" if self.quick and "underflow_policy=" not in given else ""
        return ",".join(filter(None, (given, whole)))

    def argument(self, name: str) -> str | None:
        """Return a device argument, or None."""
        return arguments_of(self.args).get(name)

    def guard(self) -> tuple[int, int]:
        """Return the samples of silence before and after each burst."""
        flawless = is_virtual(self.args) and self.argument("profile") in (None, "ideal")
        least = 0.0 if flawless else _GUARD_US
        head_us, tail_us = self.options.head_us, self.options.tail_us
        head = math.ceil((least if head_us is None else head_us) * self.rate_sps / 1e6)
        tail = math.ceil((least if tail_us is None else tail_us) * self.rate_sps / 1e6)
        return head, tail + (_FILTER_SAMPLES if tail_us is None and not flawless else 0)

    def check_band(self) -> None:
        """Raise FrontEndError where a real device would radiate outside the region's bands."""
        options = self.options
        fault = fault_of(self.tx_hz, self.rate_sps, options.region, options.cabled)
        if fault is not None and not is_virtual(self.args):
            raise FrontEndError(f"USRP {self.args!r}: {fault}")


def arguments_of(args: str) -> dict[str, str]:
    """Return device arguments by their names."""
    pairs = (part.partition("=") for part in args.split(","))
    return {key.strip(): value.strip() for key, _, value in pairs}


def is_virtual(args: str) -> bool:
    """Whether these device arguments name a virtual USRP."""
    arguments = arguments_of(args)
    return "air" in arguments or arguments.get("type") == _VIRTUAL


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


def start_in_real_time(graph: Any) -> None:
    """Start a flowgraph (a `gr.top_block`), its blocks' threads in real time where the system allows it.

    For graphs that do little but feed a device or take from it, and that tell what it lost.
    """
    from gnuradio import gr

    # threads have the policy of the one that starts them
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    gr.enable_realtime_scheduling()
    try:
        graph.start()
    finally:
        os.sched_setscheduler(0, policy, parameters)


def time_value(at_s: float) -> Any:
    """Return a time of a device as the value of a tag `tx_time`, a pmt tuple."""
    import pmt

    fraction_s, whole_s = math.modf(at_s)
    return pmt.make_tuple(pmt.from_uint64(int(whole_s)), pmt.from_double(fraction_s))


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


class _Half:
    """One half of a device, set up; `block` is gr-uhd's, made by `make(uhd, args, stream_args)`."""

    def __init__(
        self,
        settings: RadioSettings,
        make: Callable[[Any, str, Any], Any],
        hz: float,
        gain_db: float | None,
        antenna: str | None,
        subdevice: str | None,
        stream_args: str,
    ) -> None:
        self._settings, self._hz = settings, hz
        uhd, options = gr_uhd(), settings.options
        stream = uhd.stream_args(cpu_format="fc32", channels=[options.channel], args=stream_args)
        try:
            with looking_for_devices():
                block = self.block = make(uhd, _device_args(settings), stream)
            _check_master_clock(block, settings)
            _set_sources(block, settings)
            if subdevice is not None:
                block.set_subdev_spec(subdevice, 0)
            _set_rate(block, settings.rate_sps)
            if antenna is not None:
                block.set_antenna(antenna)
            _tune(block, hz, uhd.tune_request(hz, options.lo_offset_hz) if options.lo_offset_hz else hz)
            if options.bandwidth_hz is not None:
                _set_bandwidth(block, options.bandwidth_hz)
            self.gain_db = _set_gain(block, gain_db)
            if "lo_locked" in block.get_sensor_names() and not locks(lambda: block.get_sensor("lo_locked").to_bool()):
                raise RuntimeError(f"its oscillator does not lock at {hz / 1e6:g} MHz: choose another carrier")
        except RuntimeError as error:
            raise _explain(settings.args, error) from None

    def check(self) -> None:
        """Raise FrontEndError when a setting has moved since, as by the other half of a device with one clock."""
        rate_sps, hz = self.block.get_samp_rate(), self.block.get_center_freq()
        half, settings = type(self).__name__.lower(), self._settings
        if not _close(rate_sps, settings.rate_sps):
            raise FrontEndError(
                f"USRP {settings.args!r}: its other half moved the {half}'s sample rate to {rate_sps:.10g}: set "
                "radio.master_clock_hz to a multiple of the rate"
            )
        if not abs(hz - self._hz) <= _TUNE_TOLERANCE_HZ:
            raise FrontEndError(
                f"USRP {settings.args!r}: its other half moved the {half} to {hz / 1e6:.6f} MHz: choose other carriers"
            )

    def about(self) -> dict[str, Any]:
        """Return what the device says of itself and of this half: names, serial numbers, and the settings in force."""
        block = self.block
        temperatures = (
            (name, sensor(name))
            for names, sensor in (
                (block.get_sensor_names(), block.get_sensor),
                (block.get_mboard_sensor_names(0), lambda name: block.get_mboard_sensor(name, 0)),
            )
            for name in names
            if name.startswith("temp")
        )
        return {
            **{key: value for key, value in block.get_usrp_info().items() if value},
            "master_clock_hz": block.get_clock_rate(0),
            "clock_source": block.get_clock_source(0),
            "rate_sps": block.get_samp_rate(),
            "carrier_hz": block.get_center_freq(),
            "gain_db": block.get_gain(),
            "bandwidth_hz": block.get_bandwidth(),
            "antenna": block.get_antenna(),
            **{f"{name}_c": sensor.to_real() for name, sensor in temperatures},
        }

    def now_s(self) -> float:
        """Return the time of the device, s."""
        now_s: float = self.block.get_time_now().get_real_secs()
        return now_s

    def close(self) -> None:
        """Release the device, and end a sink's event thread. Afterwards only the gain figures can be used."""
        del self.block


class Receiver(_Half):
    """The receiving half: `block` is the source of complex64 samples. Raises FrontEndError."""

    def __init__(self, settings: RadioSettings) -> None:
        options = settings.options
        super().__init__(
            settings,
            lambda uhd, args, stream: uhd.usrp_source(args, stream),
            settings.rx_hz,
            settings.rx_gain_db,
            options.rx_antenna,
            options.rx_subdevice,
            settings.receive_args(),
        )
        # by default every packet of the device, of 0.1 to 1 ms, wakes all blocks behind the source
        self.block.set_recv_timeout(_RECEIVE_TIMEOUT_S, False)
        self.block.set_max_noutput_items(settings.lot)
        gains = self.block.get_gain_range()
        self.gain_range_db: tuple[float, float] = gains.start(), gains.stop()

    def set_gain(self, gain_db: float) -> None:
        """Set the gain, which the device may round."""
        self.block.set_gain(gain_db)
        self.gain_db = self.block.get_gain()


class Transmitter(_Half):
    """The transmitting half: `block` is the sink of bursts. Raises FrontEndError."""

    def __init__(self, settings: RadioSettings) -> None:
        settings.check_band()
        options = settings.options
        super().__init__(
            settings,
            lambda uhd, args, stream: uhd.usrp_sink(args, stream, BURST_TAG),
            settings.tx_hz,
            settings.tx_gain_db,
            options.tx_antenna,
            options.tx_subdevice,
            settings.send_args(),
        )


# -- settings ------------------------------------------------------------------------------------------------


def _device_args(settings: RadioSettings) -> str:
    clock_hz = settings.options.master_clock_hz
    if clock_hz is None or settings.argument("master_clock_rate") is not None:
        return settings.args
    return f"{settings.args},master_clock_rate={clock_hz:.10g}"


def _check_master_clock(block: Any, settings: RadioSettings) -> None:
    argument = settings.argument("master_clock_rate")
    wanted_hz = settings.options.master_clock_hz if argument is None else float(argument)
    actual_hz = block.get_clock_rate(0)
    if wanted_hz is not None and not _close(actual_hz, wanted_hz):
        raise RuntimeError(
            f"has no master clock of {wanted_hz / 1e6:g} MHz but one of {actual_hz / 1e6:g} MHz: set "
            "radio.master_clock_hz to that, or leave it out"
        )


def _set_sources(block: Any, settings: RadioSettings) -> None:
    """Set the sources of clock and time by calls: a B200 and an N210 take neither from the device arguments."""
    options = settings.options
    clock = settings.argument("clock_source") or options.clock_source
    pulse = settings.argument("time_source") or options.time_source
    # the other half of the device may have set it: to set it again restarts some clocks
    if clock is not None and block.get_clock_source(0) != clock:
        block.set_clock_source(clock, 0)
    if pulse is not None and block.get_time_source(0) != pulse:
        block.set_time_source(pulse, 0)
    if (
        clock not in (None, "internal")
        and "ref_locked" in block.get_mboard_sensor_names(0)
        and not locks(lambda: block.get_mboard_sensor("ref_locked", 0).to_bool())
    ):
        raise RuntimeError(f"does not lock to its {clock} reference: check that 10 MHz arrive at its REF input")


def locks(locked: Callable[[], bool]) -> bool:
    """Wait until an oscillator says that it is locked, a second at most; return whether it is."""
    give_up_at = time.monotonic() + _LOCK_S
    while not locked():
        if time.monotonic() > give_up_at:
            return False
        time.sleep(_POLL_S)
    return True


def _set_rate(block: Any, rate_sps: float) -> None:
    if rate_sps > 0:
        block.set_samp_rate(rate_sps)
    if not _close(block.get_samp_rate(), rate_sps):
        nearest = block.get_samp_rates().clip(rate_sps, True)
        raise RuntimeError(
            f"has no sample rate of {rate_sps:.10g}, the nearest is {nearest:.10g}: set the rate to that"
        )


def _tune(block: Any, hz: float, request: Any) -> None:
    frequencies = block.get_freq_range()
    if not frequencies.start() <= hz <= frequencies.stop():
        span = f"{frequencies.start() / 1e6:.0f} to {frequencies.stop() / 1e6:.0f} MHz"
        raise RuntimeError(f"cannot be tuned to {hz / 1e6:g} MHz: choose from {span}")
    block.set_center_freq(request)
    actual_hz = block.get_center_freq()
    if not abs(actual_hz - hz) <= _TUNE_TOLERANCE_HZ:
        raise RuntimeError(f"cannot be tuned to {hz / 1e6:.6f} MHz, but to {actual_hz / 1e6:.6f} MHz: choose that")


def _set_bandwidth(block: Any, hz: float) -> None:
    block.set_bandwidth(hz)
    actual_hz = block.get_bandwidth()
    if not abs(actual_hz - hz) <= _BANDWIDTH_TOLERANCE * hz:
        raise RuntimeError(
            f"has no analog bandwidth of {hz / 1e6:g} MHz but one of {actual_hz / 1e6:g} MHz: set "
            "radio.bandwidth_hz to that, or leave it out"
        )


def _set_gain(block: Any, gain_db: float | None) -> float:
    gains = block.get_gain_range()
    if gain_db is None:
        gain_db = (gains.start() + gains.stop()) / 2
    if not gains.start() <= gain_db <= gains.stop():
        raise RuntimeError(f"has no gain of {gain_db:g} dB: choose from {gains.start():g} to {gains.stop():g}")
    block.set_gain(gain_db)
    actual_db = float(block.get_gain())
    if not abs(actual_db - gain_db) <= max(gains.step(), _GAIN_TOLERANCE_DB):
        raise RuntimeError(f"was given a gain of {gain_db:g} dB and has one of {actual_db:g} dB: set the gain to that")
    return actual_db


def _close(actual: float, wanted: float) -> bool:
    return abs(actual - wanted) <= _RATE_TOLERANCE * wanted


# -- UHD -----------------------------------------------------------------------------------------------------


@contextmanager
def looking_for_devices() -> Iterator[None]:
    """Let one of our processes at a time look for devices and open one.

    UHD claims every B200 for a moment while it looks for one (`b200_find`), and overlooks those that another program
    has claimed.
    """
    try:
        descriptor = os.open(_USB_DEVICES, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        # without USB there is nothing to claim
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def gr_uhd() -> Any:
    """Return gr-uhd's module. Raises FrontEndError."""
    # without the version that UHD logs at every start; it still logs warnings
    os.environ.setdefault("UHD_LOG_CONSOLE_LEVEL", "warning")
    try:
        from gnuradio import uhd
    except ImportError as error:
        raise FrontEndError(f"GNU Radio with UHD is missing ({error}): apt-get install gnuradio") from None
    from gnuradio import gr

    # it logs every size of a buffer on stdout
    gr.logging().set_default_level(gr.log_levels.warn)
    return uhd


def _explain(args: str, error: Exception) -> FrontEndError:
    text = " ".join(str(error).split())
    if "No devices found" in text:
        return FrontEndError(
            f"no USRP answers to {args!r}: check its cable and power, and `uhd_find_devices --args {args!r}`"
        )
    # UHD puts the class of the exception before the message
    return FrontEndError(f"USRP {args!r}: {re.sub(r'[A-Z][A-Za-z]+Error: ', '', text)}")
