"""Series of taps for an air: gains over time, interpolated linearly, in a loop.

Read first: `vusrp/medium/series.hpp`, which defines the format and reads it for the air.

A series is written to another file, which then replaces the old one: an air that uses the old one keeps it until the
link is set again.
"""

import os
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from channel.replay import Trace

MAX_TAPS = 24

_MAGIC = b"FADESER1"
#: magic, n_taps, reserved, interval_ns, n_rows
_HEADER = struct.Struct("<8sIIdQ")
_MAX_DELAY_NS = 1e9
_MAX_INTERVAL_NS = 1e18
_MAX_GAIN = 1e10


class SeriesError(ValueError):
    """A series that cannot be written."""


def write_series(path: Path, interval_ns: float, delays_ns: Sequence[float], taps: ArrayLike) -> None:
    """Write complex gains of shape (rows, taps), which an air applies without normalising them.

    Raises SeriesError when the shapes do not fit, when there are no rows, no taps or more than 24, and for numbers
    out of range; OSError as writing a file does.
    """
    gains = np.asarray(taps, "<c8")
    delays = np.asarray(delays_ns, "<f8")
    if gains.ndim != 2 or delays.ndim != 1 or gains.shape[1] != delays.size:
        raise SeriesError(f"taps have shape {gains.shape}; with {delays.size} delays it must be (rows, {delays.size}).")
    if not 1 <= delays.size <= MAX_TAPS:
        raise SeriesError(f"there are {delays.size} taps; a series has 1 to {MAX_TAPS}.")
    if not len(gains):
        raise SeriesError("there are no rows; a series has at least one.")
    if not 1 <= interval_ns <= _MAX_INTERVAL_NS:
        raise SeriesError(f"interval_ns is {interval_ns}; it must lie between 1 and {_MAX_INTERVAL_NS:.0e}.")
    if not ((delays >= 0) & (delays <= _MAX_DELAY_NS)).all():
        raise SeriesError(f"delays_ns must lie between 0 and {_MAX_DELAY_NS:.0e}.")
    if not (np.abs(gains) <= _MAX_GAIN).all():
        raise SeriesError(f"taps must be numbers of magnitude {_MAX_GAIN:.0e} at most.")
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(_HEADER.pack(_MAGIC, delays.size, 0, interval_ns, len(gains)))
            file.write(delays.tobytes())
            file.write(gains.tobytes())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write_gains(path: Path, interval_ns: float, gains_db: ArrayLike) -> None:
    """Write a series of one tap from gains in dB; the air is linear in amplitude between them.

    Raises what `write_series` raises.
    """
    gains = np.asarray(gains_db, np.float64)
    if gains.ndim != 1:
        raise SeriesError(f"gains_db has shape {gains.shape}; it must be a vector.")
    write_series(path, interval_ns, (0.0,), (10.0 ** (gains / 20.0))[:, np.newaxis])


def gains_of(trace: Trace, interval_ns: float) -> NDArray[np.float64]:
    """Return the gains (dB) behind a recorded channel trace, `interval_ns` apart: its SNR, with a mean power of 0 dB.

    The gains are interpolated linearly between frames with a known SNR. A missed frame has none, so a fade during
    which all frames were missed comes out too shallow. Raises SeriesError for a trace with less than two SNRs.
    """
    known = [(at, snr) for at, snr in zip(trace.time_ns, trace.snr_db, strict=True) if snr is not None]
    if len(known) < 2 or known[0][0] == known[-1][0]:
        raise SeriesError("the trace has no SNR over time; record it with a radio.")
    times, snrs = np.array(known).T
    grid = np.arange(times[0], times[-1], interval_ns)
    gains = np.interp(grid, times, snrs)
    return np.asarray(gains - 10 * np.log10(np.mean(10 ** (gains / 10))))
