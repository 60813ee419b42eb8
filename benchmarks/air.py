"""How many samples per second one core carries through the medium of the air: noise, and paths of several kinds.

    .venv/bin/python -m benchmarks.air [--seed N] [--repetitions N] [--json]

The medium is built, then one receiver hears one transmitter that always sends, 2040 samples at a time as a UHD
program reads them, at 5 Msps and with 70 Hz of Doppler. What rings, clocks and conversions of a whole virtual USRP cost
comes on top. Shown is the median, and the share of a core that a 5 Msps receiver takes.
"""

import statistics
import time
from collections.abc import Callable

import numpy as np

from benchmarks.common import Column, Results, parser
from channel.delay_profiles import profile
from tests.harness.medium import Medium, Source, build

RATE_SPS = 5_000_000
CHUNK = 2040
DOPPLER_HZ = 70.0
#: part of one core that fadelab wants a 5 Msps receiver to take at most
TARGETS = {"flat + noise": 0.3, "two-tap Rayleigh + noise": 0.5}
COLUMNS = {
    "path": Column(""),
    "samples_per_second": Column("Msps per core", ".1f", 1e-6),
    "core_share": Column("core at 5 Msps", ".1%"),
    "target": Column("target", ".0%"),
}


def works(medium: Medium, source: Source) -> dict[str, Callable[[int], None]]:
    """Return what is measured: functions that do one chunk's work at a tick."""
    acc = np.zeros(CHUNK, np.complex64)
    noise = medium.noise()
    two_taps = profile("two-tap", doppler_hz=DOPPLER_HZ, delay_spread_ns=100)
    paths = {
        "flat": medium.path(rate_sps=RATE_SPS),
        "flat, frequency offset": medium.path(rate_sps=RATE_SPS, cfo_hz=321.0),
        "delay between samples": medium.path(rate_sps=RATE_SPS, delay_ns=70.0),
        "clocks 2 ppm apart": medium.path(rate_sps=RATE_SPS, tx_ppm=2.0),
        "two-tap Rayleigh": medium.path(rate_sps=RATE_SPS, taps=two_taps),
        "EVA (9 taps)": medium.path(rate_sps=RATE_SPS, taps=profile("eva", doppler_hz=DOPPLER_HZ)),
        "TDL-C 100 ns (24 taps)": medium.path(
            rate_sps=RATE_SPS, taps=profile("tdl-c", doppler_hz=DOPPLER_HZ, delay_spread_ns=100)
        ),
    }

    def noise_alone(tick: int) -> None:
        noise.add(tick, acc)

    def hearing(path_name: str) -> Callable[[int], None]:
        def hear(tick: int) -> None:
            acc[:] = 0
            paths[path_name].mix(source, tick, acc)
            noise.add(tick, acc)

        return hear

    return {"noise": noise_alone, **{f"{name} + noise": hearing(name) for name in paths}}


def measure(work: Callable[[int], None], samples: int) -> float:
    """Return samples per second."""
    work(0)
    start = time.perf_counter()
    for tick in range(CHUNK, CHUNK + samples, CHUNK):
        work(tick)
    return samples / (time.perf_counter() - start)


def main() -> None:
    """Measure and print."""
    options = parser(__doc__, repetitions=7).parse_args()
    samples = 500 * CHUNK
    rng = np.random.default_rng(options.seed)
    sent = (rng.standard_normal(samples + 4 * CHUNK) + 1j * rng.standard_normal(samples + 4 * CHUNK)) / np.sqrt(2)
    results = Results(options, "vusrp", "the medium alone, median samples/s of one core", COLUMNS)
    medium = Medium(build())
    source = medium.burst(sent.astype(np.complex64), -CHUNK)
    for name, work in works(medium, source).items():
        rate = statistics.median(measure(work, samples) for _ in range(options.repetitions))
        results.add(path=name, samples_per_second=rate, core_share=RATE_SPS / rate, target=TARGETS.get(name))
    results.finish()


if __name__ == "__main__":
    main()
