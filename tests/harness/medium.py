"""The air's medium as Python objects: built by CMake with its C functions for tests, called through cffi.

Samples are numpy complex64 arrays. What the medium refuses raises ValueError with its own line of text.
"""

import subprocess
from collections.abc import Sequence
from dataclasses import fields
from fcntl import LOCK_EX, flock
from pathlib import Path as File
from typing import Any

import numpy as np
from cffi import FFI
from numpy.typing import NDArray

from channel.delay_profiles import Tap

ROOT = File(__file__).resolve().parents[2]
Samples = NDArray[np.complex64]

KEEP_TAP_POWERS = 1

_DECLARATIONS = """
typedef struct {
    double delay_ns, power_db;
    int32_t kind, reserved;
    double k_db, doppler_hz, los_doppler_hz, phase_rad;
} Tap;
typedef struct {
    double gain_db, delay_ns, cfo_hz;
    uint64_t seed_salt;
    uint32_t flags;
    int32_t n_taps;
    Tap taps[24];
    char series_path[256];
} LinkOptions;
typedef struct { double rate_sps, freq_offset_hz, tx_ppm, rx_ppm, scale; } Ends;

const char *medium_error(void);
uint64_t medium_hash(uint64_t a, const char *text);
void medium_default_options(LinkOptions *options);
uint64_t medium_options_size(void);
void *medium_burst_new(const void *samples, int64_t n, int64_t start);
void *medium_interference_new(const char *path, int64_t start);
void medium_source_read(void *source, int64_t tick, uint64_t n, void *out);
void medium_source_free(void *source);
void *medium_path_new(const LinkOptions *options, const Ends *ends, uint64_t seed);
void medium_path_mix(void *path, void *source, int64_t tick, uint64_t n, void *acc);
void medium_path_needs(const void *path, int64_t tick, uint64_t n, int64_t *first, int64_t *end);
void medium_path_free(void *path);
void *medium_noise_new(uint64_t seed, uint64_t port);
void medium_noise_add(void *noise, int64_t tick, uint64_t n, float sigma, void *acc);
void medium_noise_free(void *noise);
"""


def build() -> File:
    """Build what has changed of the medium, and return the library; CalledProcessError when CMake or g++ fails."""
    source, folder = ROOT / "flowgraphs" / "vusrp" / "medium", ROOT / ".build" / "medium-for-tests"
    folder.mkdir(parents=True, exist_ok=True)
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DFADELAB_TESTS=ON", "-DCMAKE_COMPILE_WARNING_AS_ERROR=ON"]
    with (folder / "lock").open("w") as lock:
        # other processes of the tests want it, too
        flock(lock, LOCK_EX)
        for command in (
            ["cmake", "-S", str(source), "-B", str(folder), *options],
            ["cmake", "--build", str(folder), "--parallel", "2"],
        ):
            subprocess.run(command, check=True, capture_output=True, text=True)
    return folder / "libfadelab-medium-test.so"


class Source:
    def __init__(self, lib: Any, ffi: FFI, handle: Any) -> None:
        self._lib, self._ffi = lib, ffi
        self.handle = ffi.gc(handle, lib.medium_source_free)

    def read(self, tick: int, n: int) -> Samples:
        out = np.empty(n, np.complex64)
        self._lib.medium_source_read(self.handle, tick, n, self._ffi.from_buffer(out))
        return out


class Path:
    def __init__(self, lib: Any, ffi: FFI, handle: Any) -> None:
        self._lib, self._ffi = lib, ffi
        self._handle = ffi.gc(handle, lib.medium_path_free)

    def mix(self, source: Source, tick: int, acc: Samples) -> None:
        self._lib.medium_path_mix(self._handle, source.handle, tick, len(acc), self._ffi.from_buffer(acc))

    def hear(self, source: Source, tick: int, n: int) -> Samples:
        acc = np.zeros(n, np.complex64)
        self.mix(source, tick, acc)
        return acc

    def needs(self, tick: int, n: int) -> tuple[int, int]:
        """Return the range of transmitter ticks that hearing [tick, tick + n) looks at."""
        first, end = self._ffi.new("int64_t *"), self._ffi.new("int64_t *")
        self._lib.medium_path_needs(self._handle, tick, n, first, end)
        return first[0], end[0]


class Noise:
    def __init__(self, lib: Any, ffi: FFI, handle: Any) -> None:
        self._lib, self._ffi = lib, ffi
        self._handle = ffi.gc(handle, lib.medium_noise_free)

    def add(self, tick: int, acc: Samples, sigma: float = 1.0) -> None:
        self._lib.medium_noise_add(self._handle, tick, len(acc), sigma, self._ffi.from_buffer(acc))

    def draw(self, tick: int, n: int, sigma: float = 1.0) -> Samples:
        acc = np.zeros(n, np.complex64)
        self.add(tick, acc, sigma)
        return acc


class Medium:
    """The library at `path`."""

    def __init__(self, path: File) -> None:
        self.ffi = FFI()
        self.ffi.cdef(_DECLARATIONS)
        self.lib: Any = self.ffi.dlopen(str(path))
        if self.lib.medium_options_size() != self.ffi.sizeof("LinkOptions"):
            raise RuntimeError("LinkOptions is declared differently in options.hpp")

    def burst(self, samples: Samples, start: int = 0) -> Source:
        data = np.ascontiguousarray(samples, np.complex64)
        handle = self.lib.medium_burst_new(self.ffi.from_buffer(data), len(data), start)
        return Source(self.lib, self.ffi, handle)

    def interference(self, path: File, start: int = 0) -> Source:
        return Source(self.lib, self.ffi, self._made(self.lib.medium_interference_new(str(path).encode(), start)))

    def path(self, *, taps: Sequence[Tap] = (), series: File | None = None, seed: int = 1, **options: Any) -> Path:
        """Return a path; `options` are fields of LinkOptions, of which the gain is 0 dB by default, and of Ends."""
        chosen = self.ffi.new("LinkOptions *")
        self.lib.medium_default_options(chosen)
        ends = {"rate_sps": 1e6, "freq_offset_hz": 0.0, "tx_ppm": 0.0, "rx_ppm": 0.0, "scale": 1.0}
        ends |= {name: options.pop(name) for name in ends.keys() & options.keys()}
        for name, value in {"gain_db": 0.0, "n_taps": len(taps), **options}.items():
            setattr(chosen, name, value)
        for target, tap in zip(chosen.taps, taps, strict=False):
            for field in fields(tap):
                setattr(target, field.name, getattr(tap, field.name))
        if series is not None:
            chosen.series_path = str(series).encode()
        made = self.lib.medium_path_new(chosen, self.ffi.new("Ends *", ends), seed)
        return Path(self.lib, self.ffi, self._made(made))

    def noise(self, seed: int = 1, port: int = 0) -> Noise:
        return Noise(self.lib, self.ffi, self.lib.medium_noise_new(seed, port))

    def hash(self, seed: int, text: str) -> int:
        return int(self.lib.medium_hash(seed, text.encode()))

    def _made(self, handle: Any) -> Any:
        if handle == self.ffi.NULL:
            raise ValueError(self.ffi.string(self.lib.medium_error()).decode())
        return handle
