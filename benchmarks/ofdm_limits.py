"""What PHY ofdm's receiver stands, and how true its figures are: four tables.

    .venv/bin/python -m benchmarks.ofdm_limits [--frames N] [--seed N]

SNR is per sample. Frames have 500 bytes, 64 subcarriers, a cyclic prefix of 16, a random
phase; noise is white.
"""

import math
from collections.abc import Callable, Iterable

import numpy as np

from benchmarks.common import parser, whole
from benchmarks.ofdm_waterfall import BATCH, Liquids
from flowgraphs.phy import Received, Samples
from flowgraphs.phys.ofdm.modem import Demodulator, Modulator, OfdmPhy
from tests.harness.awgn import air

FRAME_BYTES = 500
HIGH_DB = 35.0

#: clean samples, random numbers -> what a receiver gets
Channel = Callable[[Samples, np.random.Generator], Samples]


def heard(phy: OfdmPhy, channel: Channel, frames: int, seed: int, *, cfo: float = 0.0) -> list[Received]:
    """Return what comes of so many frames; `cfo` in cycles per sample."""
    rng = np.random.default_rng(seed)
    modulator, demodulator = Modulator(phy), Demodulator(phy)
    got = []
    for _ in range(0, frames, BATCH):
        bursts = [modulator.modulate(rng.bytes(FRAME_BYTES)) for _ in range(BATCH)]
        got += demodulator.feed(channel(air(bursts, rng, rms=phy.rms, cfo=cfo).samples, rng))
    return got


def noise(phy: OfdmPhy, snr_db: float) -> Channel:
    """Return a channel that adds noise."""

    def add(samples: Samples, rng: np.random.Generator) -> Samples:
        sigma = np.float32(phy.rms * 10 ** (-snr_db / 20) / math.sqrt(2))
        return samples + sigma * rng.standard_normal(2 * len(samples), np.float32).view(np.complex64)

    return add


def two_paths(phy: OfdmPhy, snr_db: float, late: float, echo_db: float) -> Channel:
    """Return a channel with an echo `late` samples after the direct path, in a random phase."""
    add = noise(phy, snr_db)

    def carry(samples: Samples, rng: np.random.Generator) -> Samples:
        turns = rng.random() - late * np.fft.fftfreq(len(samples))
        response = 1 + 10 ** (echo_db / 20) * np.exp(2j * np.pi * turns)
        return add(np.fft.ifft(np.fft.fft(samples) * response).astype(np.complex64), rng)

    return carry


def loss(got: Iterable[Received], frames: int) -> str:
    """Return the share of frames that were lost or damaged."""
    return f"{1 - sum(frame.crc_ok for frame in got) / frames:7.0%}"


def estimates(frames: int, seed: int) -> None:
    """Print how far the estimates are from what is true."""
    print("estimates: bias and standard deviation of SNR (dB), deviation of the carrier offset (subcarrier spacings)")
    for modulation, fec in (("bpsk", "golay2412"), ("qpsk", "none"), ("qam16", "none"), ("qam64", "none")):
        phy = OfdmPhy(1e6, modulation=modulation, fec=fec)
        for snr_db in (5, 10, 15, 20, 25, 30):
            got = heard(phy, noise(phy, snr_db), frames, seed)
            snr = np.array([frame.snr_db for frame in got], float) - snr_db
            cfo = np.array([frame.cfo_hz for frame in got], float) / 1e6 * phy.subcarriers
            good = sum(frame.crc_ok for frame in got)
            print(f"  {phy.describe():20} {snr_db:3} dB  {good:4} of {frames} good", end="")
            print(f"  SNR {snr.mean():+.2f} ± {snr.std():.2f}  carrier ± {cfo.std():.4f}")


def carrier(frames: int, seed: int) -> None:
    """Print the loss over the carrier offset."""
    spacings = (0.0, 0.2, 0.4, 0.45, 0.5, 0.55, 0.6, 0.8)
    print(f"\nloss over the carrier offset (subcarrier spacings), {HIGH_DB:g} dB")
    print(f"  {'':20}" + "".join(f"{spacing:7}" for spacing in spacings))
    for modulation in ("qpsk", "qam64"):
        phy = OfdmPhy(1e6, modulation=modulation)
        results = (heard(phy, noise(phy, HIGH_DB), frames, seed, cfo=s / phy.subcarriers) for s in spacings)
        print(f"  {phy.describe():20}" + "".join(loss(got, frames) for got in results))


def paths(frames: int, seed: int) -> None:
    """Print the loss over the delay of an echo."""
    delays = (0.5, 1, 2, 4, 8, 10, 12)
    print(f"\nloss over the delay of a second path (samples), {HIGH_DB:g} dB")
    print(f"  {'':20}{'path':>8}" + "".join(f"{delay:7}" for delay in delays))
    for modulation, fec in (("qpsk", "none"), ("qam16", "none"), ("qam64", "golay2412")):
        phy = OfdmPhy(1e6, modulation=modulation, fec=fec)
        for echo_db in (-10, -3, 3):
            results = (heard(phy, two_paths(phy, HIGH_DB, late, echo_db), frames, seed) for late in delays)
            print(f"  {phy.describe():20}{echo_db:5} dB" + "".join(loss(got, frames) for got in results))


def causes(frames: int, seed: int) -> None:
    """Print why liquid loses frames of its most robust mode at low SNR."""
    print("\nliquid alone, bpsk/golay2412: share of frames whose training, header or payload is lost")
    for snr_db in range(-2, 7):
        rng, link = np.random.default_rng(seed), Liquids("bpsk", "golay2412")
        for _ in range(0, frames, BATCH):
            bursts = [link.modulate(rng.bytes(FRAME_BYTES)) for _ in range(BATCH)]
            link.heard(air(bursts, rng, rms=link.rms, snr_db=snr_db).samples)
        ends = link.ends
        lost = {"training": frames - ends.total(), "header": ends["header"], "payload": ends["payload"]}
        print(f"  {snr_db:3} dB " + "  ".join(f"{what} {count / frames:5.1%}" for what, count in lost.items()))


def main() -> None:
    """Measure and print."""
    options_of = parser(__doc__)
    options_of.add_argument("--frames", type=whole(BATCH, BATCH), default=200, help="per point")
    options = options_of.parse_args()
    print(f"tiers vusrp and usrp, seed {options.seed}: PHY ofdm alone, {options.frames} frames per point\n")
    for table in (estimates, carrier, paths, causes):
        table(options.frames, options.seed)


if __name__ == "__main__":
    main()
