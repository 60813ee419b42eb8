"""Airs: the shared medium of virtual USRPs, created, set and read from Python.

Read first: `vusrp/README.md` (links, ports, levels); `vusrp/include/fadelab_air.h`, the interface that is read here.
A port is "*", "V1" or "V1:0". The most specific setting holds, among equals the newest. Settings may be made before the
devices are opened, and while they run: receivers apply them from their next samples on.
"""

import math
import os
import re
import weakref
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Self

from cffi import FFI

from channel.delay_profiles import Kind, Tap, profile
from common.closing import Closing

HEADER = Path(__file__).resolve().parent / "vusrp" / "include" / "fadelab_air.h"
LIBRARY = Path(__file__).resolve().parent.parent / ".build" / "vusrp" / "libfadelab-air.so"

_FOLDER = Path("/dev/shm")
_PREFIX = "fadelab-air-"
_MAX_TAPS = 24
_PATH_BYTES = 256
_KEEP_TAP_POWERS = 1
_MAX_DEVICES = 8

_ffi = FFI()
# the header without its part for C++ and the preprocessor's lines
_ffi.cdef(re.sub(r"^#ifdef __cplusplus$.*?^#endif$|^#.*?$", "", HEADER.read_text(), flags=re.DOTALL | re.MULTILINE))


class AirError(RuntimeError):
    """An air that does not exist, or a request that it refuses; one line."""


@dataclass(frozen=True, slots=True)
class Link:
    """The effect of one directed path on a signal; without taps and series, one static tap."""

    gain_db: float = -60.0
    delay_ns: float = 0.0
    #: in addition to the offset of the two devices' frequencies and clocks
    cfo_hz: float = 0.0
    taps: tuple[Tap, ...] = ()
    #: scale the taps to unit total mean power
    normalise: bool = True
    #: seed offset, so that two links with equal settings fade independently
    seed_salt: int = 0
    #: a file of `flowgraphs.series` with the taps
    series: Path | None = None


@dataclass(frozen=True, slots=True)
class Chain:
    """The flaws of one direction of a device; amplitude 1 at its gain is full scale."""

    #: of Q over I
    iq_gain_db: float = 0.0
    #: how far Q leans to I
    iq_phase_deg: float = 0.0
    #: at the carrier, also between bursts; of a receiver: its DC offset
    leakage_dbfs: float = -math.inf
    #: of the converter; 0: no steps
    bits: float = 0.0
    #: from the carrier
    spur_hz: float = 0.0
    spur_dbfs: float = -math.inf
    #: phase noise: up to 6 points (Hz from the carrier, dBc/Hz), offsets rising and levels falling
    mask: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Impairments:
    """The flaws of a device; by default none. `vusrp/medium/impairments.hpp` has the ranges."""

    rx: Chain = Chain()
    tx: Chain = Chain()
    #: the clock's error is drawn within it, unless an offset is set
    tolerance_ppm: float = 0.0
    #: of carriers and sample clock, when the air begins, and its time constant
    warm_up_ppm: float = 0.0
    warm_up_s: float = 60.0
    #: of carriers and sample clock: root mean square of a random walk after one second
    walk_ppm: float = 0.0
    #: output at which the power amplifier compresses by 1 dB, and Rapp's smoothness
    p1db_dbm: float = math.inf
    smoothness: float = 2.0
    #: time constant of a burst's start
    ramp_us: float = 0.0
    #: at the lowest and highest gain; both 0: the same noise at every gain
    noise_figure_lowest_db: float = 0.0
    noise_figure_highest_db: float = 0.0
    #: time constant with which the receiver's gain, in dB, follows a change
    settling_us: float = 0.0
    #: of the receiver's filters: level a quarter of the sample rate above the carrier over that below it
    slope_db: float = 0.0
    #: their loss at half the sample rate
    edge_db: float = 0.0
    #: 1: signals beyond the sample rate drive the receiver's converter too
    wideband: float = 0.0
    #: of the device's own transmitters from its receivers; 0: as links say
    isolation_db: float = 0.0
    #: mean rate and length of losses of received samples
    hiccups_hz: float = 0.0
    hiccup_ms: float = 10.0
    #: air time when the device is pulled out; negative: never
    unplug_s: float = -1.0


@dataclass(frozen=True, slots=True)
class Tuning:
    """A channel's centre frequency and gain, and the power of amplitude 1 at its antenna."""

    freq_hz: float
    gain_db: float
    full_scale_dbm: float


@dataclass(frozen=True, slots=True)
class Device:
    """A device in use: its owner's process id, its clock's error, and its channels."""

    serial: str
    pid: int
    clock_offset_ppm: float
    tx: tuple[Tuning, ...]
    rx: tuple[Tuning, ...]


class Air(Closing):
    """An open air; a context manager. Every method raises AirError for impossible requests."""

    def __init__(self, name: str, handle: Any) -> None:
        self.name = name
        self._handle = handle
        self._close = weakref.finalize(self, _library().fadelab_air_close, handle)

    @classmethod
    def create(
        cls,
        name: str,
        *,
        clock: str | None = None,
        seed: int | None = None,
        wait_streams: int | None = None,
        keep: bool = False,
    ) -> Self:
        """Create an air, or open the one of that name if its options agree.

        It exists while a device or this object uses it; with `keep`, until it is removed. `clock` is "realtime" (the
        default) or "lockstep"; the time of lockstep stands still until `wait_streams` bursts have begun.
        """
        if clock not in (None, "realtime", "lockstep"):
            raise AirError(f"clock {clock!r} is neither 'realtime' nor 'lockstep'")
        for what, value in (("seed", seed), ("wait_streams", wait_streams)):
            if value is not None and not 0 <= value < 2**32:
                raise AirError(f"{what} is {value}; it must lie between 0 and {2**32 - 1}")
        options = _ffi.new("fadelab_air_options *")
        options.lockstep = -1 if clock is None else clock == "lockstep"
        options.seed = -1 if seed is None else seed
        options.wait_streams = -1 if wait_streams is None else wait_streams
        library = _library()
        keeping = library.FADELAB_FOR_GOOD if keep else library.FADELAB_WHILE_CALLER_LIVES
        return cls(name, _checked(library.fadelab_air_create(name.encode(), options, keeping)))

    @classmethod
    def open(cls, name: str) -> Self:
        """Open an air that exists."""
        return cls(name, _checked(_library().fadelab_air_open(name.encode())))

    @staticmethod
    def names() -> list[str]:
        """Return the names of all airs, also of unused ones."""
        return sorted(path.name.removeprefix(_PREFIX) for path in _FOLDER.glob(f"{_PREFIX}*"))

    @classmethod
    def abandoned(cls) -> list[str]:
        """Return the names of airs that killed programs have left: neither used nor kept. Changes nothing."""
        return [name for name in cls.names() if _checked(_library().fadelab_air_abandoned(name.encode()))]

    @staticmethod
    def remove(name: str) -> bool:
        """Remove an air's name, even while it is used; False when there was none."""
        return bool(_checked(_library().fadelab_air_remove(name.encode())))

    def close(self) -> None:
        """Close the air, which vanishes with its last user. This object cannot be used afterwards."""
        self._close()

    @property
    def now_ns(self) -> int:
        """Nanoseconds since the air was created."""
        return int(_library().fadelab_air_now_ns(self._open()))

    @property
    def clock(self) -> str:
        """The clock: "realtime" or "lockstep"."""
        return "lockstep" if _library().fadelab_air_lockstep(self._open()) else "realtime"

    @property
    def seed(self) -> int:
        """The seed of all its random numbers."""
        return int(_library().fadelab_air_seed(self._open()))

    def devices(self) -> list[Device]:
        """Return the devices in use."""
        found = _ffi.new("fadelab_device[]", _MAX_DEVICES)
        count = _checked(_library().fadelab_air_devices(self._open(), found, _MAX_DEVICES))
        return [
            Device(_text(one.serial), one.pid, one.clock_offset_ppm, _tunings(one.tx), _tunings(one.rx))
            for one in found[0:count]
        ]

    def set_link(
        self,
        tx: str,
        rx: str,
        *,
        gain_db: float | None = None,
        delay_ns: float | None = None,
        cfo_hz: float | None = None,
        taps: Sequence[Tap] | None = None,
        normalise: bool | None = None,
        seed_salt: int | None = None,
        series: Path | None = None,
    ) -> Link:
        """Change the given settings of the path from `tx` to `rx`; return all its settings.

        The others keep their values for these ports. A link has either taps or a series: one replaces the other;
        `taps=()` is no taps.
        """
        changes: dict[str, Any] = {
            "gain_db": gain_db,
            "delay_ns": delay_ns,
            "cfo_hz": cfo_hz,
            "normalise": normalise,
            "seed_salt": seed_salt,
            "taps": None if taps is None else tuple(taps),
            "series": series,
        }
        link = self.link(tx, rx)
        if taps is not None or series is not None:
            link = replace(link, taps=(), series=None)
        link = replace(link, **{name: value for name, value in changes.items() if value is not None})
        wanted = _to_c(link)
        _checked(_library().fadelab_air_set_link(self._open(), tx.encode(), rx.encode(), wanted))
        return link

    def set_profile(
        self,
        tx: str,
        rx: str,
        name: str,
        *,
        doppler_hz: float,
        delay_spread_ns: float | None = None,
        k_db: float | None = None,
    ) -> Link:
        """Give a path the taps of a published power delay profile, see `channel.delay_profiles`."""
        try:
            taps = profile(name, doppler_hz=doppler_hz, delay_spread_ns=delay_spread_ns, k_db=k_db)
        except ValueError as error:
            raise AirError(str(error)) from None
        return self.set_link(tx, rx, taps=taps)

    def link(self, tx: str, rx: str) -> Link:
        """Return the settings that hold between two ports."""
        found = _ffi.new("fadelab_link *")
        _checked(_library().fadelab_air_link(self._open(), tx.encode(), rx.encode(), found))
        return _from_c(found)

    def set_receiver(self, rx: str, *, noise_dbm_hz: float) -> None:
        """Set the density of a receiver's noise at its input; -inf: no noise."""
        _checked(_library().fadelab_air_set_noise_dbm_hz(self._open(), rx.encode(), noise_dbm_hz))

    def noise_dbm_hz(self, rx: str) -> float:
        """Return the density of a receiver's noise at its input."""
        density = _ffi.new("double *")
        _checked(_library().fadelab_air_noise_dbm_hz(self._open(), rx.encode(), density))
        return float(density[0])

    def set_interference(
        self, rx: str, recording: Path | None, *, rate_sps: float = 0.0, freq_hz: float = 0.0, level_dbm: float = 0.0
    ) -> None:
        """Add a recording, in a loop, to a receiver's samples; None ends it.

        `recording` is complex float32 IQ without a header (SigMF cf32_le); its amplitude 1 arrives with `level_dbm`.
        It reaches channels of its sample rate that are tuned within half of that rate of `freq_hz`.
        """
        wanted = _ffi.new("fadelab_interferer *")
        if recording is not None:
            wanted.path = _path(recording)
            wanted.rate_sps, wanted.freq_hz, wanted.level_dbm = rate_sps, freq_hz, level_dbm
        _checked(_library().fadelab_air_set_interferer(self._open(), rx.encode(), wanted))

    def set_clock_offset(self, serial: str, ppm: float) -> None:
        """Set the error of a device's clock, and so of its carriers and sample rates; "*" is every device."""
        _checked(_library().fadelab_air_set_clock_offset_ppm(self._open(), serial.encode(), ppm))

    def clock_offset_ppm(self, serial: str) -> float:
        """Return the error of a device's clock."""
        ppm = _ffi.new("double *")
        _checked(_library().fadelab_air_clock_offset_ppm(self._open(), serial.encode(), ppm))
        return float(ppm[0])

    def set_impairments(self, serial: str, impairments: Impairments | None) -> None:
        """Give a device these flaws in place of its own; None: its own. "*" is every device."""
        wanted: Any = _ffi.NULL
        if impairments is not None:
            try:
                wanted = _ffi.new("fadelab_impairments *", asdict(impairments))
            except (IndexError, TypeError) as error:
                raise AirError(f"impairments of {serial}: {error}") from None
        _checked(_library().fadelab_air_set_impairments(self._open(), serial.encode(), wanted))

    def impairments(self, serial: str) -> Impairments:
        """Return the flaws that a device has."""
        found = _ffi.new("fadelab_impairments *")
        _checked(_library().fadelab_air_impairments(self._open(), serial.encode(), found))
        others = {one.name: getattr(found, one.name) for one in fields(Impairments)[2:]}
        return Impairments(_chain(found.rx), _chain(found.tx), **others)

    def unplug(self, serial: str) -> None:
        """Pull a device out now."""
        self.set_impairments(serial, replace(self.impairments(serial), unplug_s=self.now_ns / 1e9))

    def _open(self) -> Any:
        if not self._close.alive:
            raise AirError(f"air '{self.name}' has been closed")
        return self._handle


@cache
def _library() -> Any:
    if not LIBRARY.exists():
        raise AirError(f"the virtual USRP is not built ({LIBRARY} is missing): start ./fadelab once")
    library = _ffi.dlopen(os.fspath(LIBRARY))
    sizes = _ffi.new("uint64_t[5]")
    library.fadelab_air_sizes(sizes)
    types = ("fadelab_link", "fadelab_interferer", "fadelab_device", "fadelab_air_options", "fadelab_impairments")
    if list(sizes) != [_ffi.sizeof(one) for one in types]:
        raise AirError(f"{LIBRARY} is of another version than this program: build it again with ./fadelab")
    return library


def _checked(result: Any) -> Any:
    """Return the result of a library function, or raise its error."""
    failed = result < 0 if isinstance(result, int) else result == _ffi.NULL
    if failed:
        raise AirError(_text(_library().fadelab_air_error()))
    return result


def _text(value: Any) -> str:
    return bytes(_ffi.string(value)).decode(errors="replace")


def _path(path: Path) -> bytes:
    encoded = os.fsencode(path.resolve())
    if len(encoded) >= _PATH_BYTES:
        raise AirError(f"{path}: a path of an air has less than {_PATH_BYTES} bytes")
    return encoded


def _to_c(link: Link) -> Any:
    if len(link.taps) > _MAX_TAPS:
        raise AirError(f"a link has up to {_MAX_TAPS} taps, not {len(link.taps)}")
    wanted: dict[str, Any] = {name: getattr(link, name) for name in ("gain_db", "delay_ns", "cfo_hz", "seed_salt")}
    wanted["flags"] = 0 if link.normalise else _KEEP_TAP_POWERS
    wanted["n_taps"] = len(link.taps)
    wanted["taps"] = [asdict(tap) for tap in link.taps]
    if link.series is not None:
        wanted["series_path"] = _path(link.series)
    return _ffi.new("fadelab_link *", wanted)


def _from_c(link: Any) -> Link:
    series = _text(link.series_path)
    taps = ({field.name: getattr(tap, field.name) for field in fields(Tap)} for tap in link.taps[0 : link.n_taps])
    return Link(
        gain_db=link.gain_db,
        delay_ns=link.delay_ns,
        cfo_hz=link.cfo_hz,
        taps=tuple(Tap(**tap | {"kind": Kind(tap["kind"])}) for tap in taps),
        normalise=not link.flags & _KEEP_TAP_POWERS,
        seed_salt=link.seed_salt,
        series=Path(series) if series else None,
    )


def _chain(chain: Any) -> Chain:
    mask = tuple((point.hz, point.dbc_hz) for point in chain.mask if point.hz)
    return Chain(**{one.name: getattr(chain, one.name) for one in fields(Chain)[:-1]}, mask=mask)


def _tunings(tunings: Any) -> tuple[Tuning, ...]:
    return tuple(Tuning(one.freq_hz, one.gain_db, one.full_scale_dbm) for one in tunings if one.freq_hz)
