"""Acquisition and a hold of a minute with two oscillators apart, in virtual time: frame loss beside that without.

    .venv/bin/python -m benchmarks.clock_hold [--phy PHY] [--mode MODE] [--snr-db DB] [--seconds S] [--ppm PPM]
        [--carriers HZ ...] [--rates SPS ...] [--seed N] [--json]

A transmitter sends frames of 1500 octets one after the other, with gaps of 600 samples, for a minute. Its oscillator is
PPM beside the receiver's, carrier and sample clock alike; a path of the virtual USRPs' medium carries the samples,
whose delay so drifts through whole samples, and noise comes on top. The transmitter's is the faster one at the first
carrier, and by turns; without an offset there is one row per rate.
"""

import tempfile
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.common import Column, Results, parser
from benchmarks.impairments import FRAME_BYTES, GAP, MODES, modulated
from flowgraphs.phy import Phy, Samples
from flowgraphs.phys import make_phy
from tests.harness.medium import Medium, Source, build

FRAMES = 100
CHUNK = 1 << 14
COLUMNS = {
    "case": Column(""),
    "sent": Column("sent"),
    "lost": Column("lost"),
    "per": Column("PER", ".3%"),
    "first_s": Column("first at (ms)", ".2f", 1e3),
    "longest": Column("longest gap (frames)"),
    "cfo_hz": Column("CFO (Hz)", ".0f"),
}


def on_the_air(
    medium: Medium, source: Source, phy: Phy, options: Namespace, ppm: float, carrier_hz: float
) -> Iterator[Samples]:
    """Yield what the receiver hears; half of the offset is each oscillator's."""
    path = medium.path(
        rate_sps=phy.rate_sps, tx_ppm=ppm / 2, rx_ppm=-ppm / 2, freq_offset_hz=ppm * 1e-6 * carrier_hz, gain_db=0.0
    )
    noise = medium.noise(options.seed)
    sigma = phy.rms * 10 ** (-options.snr_db / 20)
    for tick in range(0, round(options.seconds * phy.rate_sps), CHUNK):
        heard = np.zeros(CHUNK, np.complex64)
        path.mix(source, tick, heard)
        noise.add(tick, heard, sigma)
        yield heard


def main() -> None:
    """Measure and print."""
    options_of = parser(__doc__)
    options_of.add_argument("--phy", choices=tuple(MODES), default="ofdm")
    options_of.add_argument("--mode", help="default: the first of benchmarks.impairments")
    options_of.add_argument("--snr-db", type=float, default=12.0, help="per sample (default 12)")
    options_of.add_argument("--seconds", type=float, default=60.0)
    options_of.add_argument("--ppm", type=float, default=5.0, help="between the two oscillators (default 5)")
    options_of.add_argument("--carriers", type=float, nargs="+", default=[2.45e9, 5.8e9], metavar="HZ")
    options_of.add_argument("--rates", type=float, nargs="+", default=[1e6, 2.5e6, 10e6], metavar="SPS")
    options = options_of.parse_args()
    option, _, value = (options.mode or MODES[options.phy][0]).partition("=")
    title = f"PHY {options.phy} {value}, {options.snr_db:g} dB, {options.seconds:g} s"
    results = Results(options, "none: virtual time", title, COLUMNS)
    rng = np.random.default_rng(options.seed)
    frames = [rng.bytes(FRAME_BYTES) for _ in range(FRAMES)]
    medium = Medium(build())
    with tempfile.TemporaryDirectory() as folder:
        for rate_sps in options.rates:
            apart = [(carrier, options.ppm * (-1) ** i) for i, carrier in enumerate(options.carriers)]
            for carrier_hz, ppm in [(options.carriers[0], 0.0), *apart]:
                phy = make_phy(options.phy, rate_sps=rate_sps, carrier_hz=carrier_hz, **{option: value})
                bursts = modulated(phy, frames)
                loop = np.concatenate([part for burst in bursts for part in (np.zeros(GAP, np.complex64), burst)])
                loop.tofile(Path(folder) / "loop")
                source = medium.interference(Path(folder) / "loop")
                heard = on_the_air(medium, source, phy, options, ppm, carrier_hz)
                good = [one for one in phy.decode(heard) if one.crc_ok]
                length = len(loop) / FRAMES
                # one frame may be cut at the end
                sent = int(options.seconds * rate_sps / length) - 1
                places = np.round(np.array([one.sample for one in good]) / length).astype(int)
                missed = np.diff(places, prepend=-1) - 1
                lost = max(sent - len(good), 0)
                results.add(
                    case=f"{rate_sps / 1e6:g} Msps, {carrier_hz / 1e9:g} GHz, {ppm:+g} ppm",
                    sent=sent,
                    lost=lost,
                    per=lost / sent,
                    first_s=good[0].sample / rate_sps if good else None,
                    longest=int(missed.max()) if good else sent,
                    cfo_hz=float(np.mean([one.cfo_hz for one in good if one.cfo_hz is not None])) if good else None,
                )
    results.finish()


if __name__ == "__main__":
    main()
