"""Frames that PHY wifi loses to a carrier: everywhere, in the frames only, and between them only.

    .venv/bin/python -m benchmarks.wifi_carrier [--encoding NAME] [--snr-db X] [--frames N] [--seed N] [--json]

Frames of the longest size in white noise, gaps of 600 to 799 samples, the carrier on the middle subcarrier. Shown is
the share of frames that are lost, with equalizer `sta`, and everywhere with `ls`.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import Column, Results, parser, whole
from benchmarks.impairments import modulated
from flowgraphs.phys.wifi.modem import MAX_FRAME_BYTES, WifiPhy
from flowgraphs.phys.wifi.options import ENCODINGS

RATE_SPS = 2.5e6
CARRIERS_DBC = (-60, -36, -33, -30, -27, -24, -20)
TAIL = 4000
COLUMNS = {
    "carrier_dbc": Column("carrier (dBc)"),
    "everywhere": Column("everywhere", ".2f"),
    "in_frames": Column("in frames", ".2f"),
    "between": Column("between", ".2f"),
    "ls": Column("everywhere, ls", ".2f"),
}


def main() -> None:
    """Measure and print."""
    options_of = parser(__doc__)
    options_of.add_argument("--encoding", choices=tuple(ENCODINGS), default="qam64-3/4")
    options_of.add_argument("--snr-db", type=float, default=26.0)
    options_of.add_argument("--frames", type=whole(1), default=100)
    options = options_of.parse_args()
    rng = np.random.default_rng(options.seed)
    phy = WifiPhy(rate_sps=RATE_SPS, encoding=options.encoding)
    frames = [rng.bytes(MAX_FRAME_BYTES) for _ in range(options.frames)]
    gaps = rng.integers(600, 800, len(frames))
    clean, sends = [], []
    for gap, burst in zip(gaps, modulated(phy, frames), strict=True):
        clean += [np.zeros(gap, np.complex64), burst]
        sends += [np.zeros(gap, bool), np.ones(len(burst), bool)]
    sent = np.concatenate([*clean, np.zeros(TAIL, np.complex64)])
    sending = np.concatenate([*sends, np.zeros(TAIL, bool)])
    white = rng.standard_normal(2 * len(sent), np.float32).view(np.complex64)
    heard = sent + np.float32(phy.rms * 10 ** (-options.snr_db / 20) / np.sqrt(2)) * white

    def lost(where: NDArray[np.bool_], dbc: float, equalizer: str = "sta") -> float:
        samples = (heard + where * phy.rms * 10 ** (dbc / 20)).astype(np.complex64)
        received = {frame.payload for frame in replace(phy, equalizer=equalizer).decode([samples])}
        return len(set(frames) - received) / len(frames)

    results = Results(options, "none", f"PHY wifi, {options.encoding}, {options.snr_db:g} dB", COLUMNS)
    everywhere = np.ones(len(sent), bool)
    for dbc in CARRIERS_DBC:
        results.add(
            carrier_dbc=dbc,
            everywhere=lost(everywhere, dbc),
            in_frames=lost(sending, dbc),
            between=lost(~sending, dbc),
            ls=lost(everywhere, dbc, "ls"),
        )
    results.finish()


if __name__ == "__main__":
    main()
