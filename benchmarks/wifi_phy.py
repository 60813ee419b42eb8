"""PHY wifi by encoding: where it loses a tenth of its frames in white noise, and samples per second of one core.

    .venv/bin/python -m benchmarks.wifi_phy [--frames N] [--seed N] [--json]

Frames of 1400 bytes, each with a random phase, all with a frequency offset of 5 % of a carrier's spacing. SNR is per
sample, over the whole sampled band, and goes up in steps of 0.5 dB; shown is where the line between two points crosses
10 %. Speeds are samples per second of processor time, all threads of the flowgraph together: transmit is frames one
after the other, receive the same with short gaps at 10 dB more, idle is noise alone. Needs gr-ieee802-11.
"""

import time
from itertools import count

import numpy as np
from gnuradio import blocks, gr

from benchmarks.common import Column, Results, crossing, parser, whole
from flowgraphs.phy import Samples
from flowgraphs.phys.wifi.modem import WifiPhy
from flowgraphs.phys.wifi.options import ENCODINGS
from tests.harness.awgn import air
from tests.harness.bursts import Mailbox, modulated

FRAME_BYTES = 1400
RATE_SPS = 2e6
CFO = 0.05 / 64
STEP_DB = 0.5
LOSS, DONE = 0.1, 0.02
IDLE_SAMPLES = 8_000_000
COLUMNS = {
    "encoding": Column(""),
    "bits_per_sample": Column("bits/sample", ".2f"),
    "snr_db": Column("SNR (dB)", ".1f"),
    "transmit_sps": Column("transmit", ".1f", 1e-6),
    "receive_sps": Column("receive", ".1f", 1e-6),
}


def main() -> None:
    """Measure and print."""
    options_of = parser(__doc__)
    options_of.add_argument("--frames", type=whole(10), default=200, help="per point")
    options = options_of.parse_args()
    results = Results(options, "vusrp and usrp", f"PHY wifi alone, SNR at {LOSS:.0%} loss, Msps of one core", COLUMNS)
    lowest_db = 1.0
    for encoding in ENCODINGS:
        row = results.add(encoding=encoding, **measure(encoding, options.frames, options.seed, lowest_db))
        lowest_db = max(row["snr_db"] - 4, 1.0)
    noise = np.random.default_rng(options.seed).standard_normal(2 * IDLE_SAMPLES, np.float32).view(np.complex64)
    idle_sps = IDLE_SAMPLES / receive(WifiPhy(RATE_SPS), noise)[1]
    results.say(f"receive idle: {idle_sps / 1e6:.1f} Msps")
    results.finish(idle_sps=idle_sps)


def measure(encoding: str, frames: int, seed: int, lowest_db: float) -> dict[str, float]:
    """Return the figures of one encoding; below `lowest_db` nearly all frames are lost."""
    phy = WifiPhy(RATE_SPS, encoding=encoding)
    rng = np.random.default_rng(seed)
    payloads = [rng.bytes(FRAME_BYTES) for _ in range(frames)]
    began = time.process_time()
    bursts = modulated(phy, payloads)
    transmitting_s = time.process_time() - began
    curve: list[tuple[float, float]] = []
    for snr_db in count(lowest_db, STEP_DB):
        heard, _ = receive(phy, air(bursts, rng, rms=phy.rms, snr_db=snr_db, cfo=CFO, tail=8192).samples)
        curve.append((snr_db, 1 - heard / frames))
        if curve[-1][1] < DONE:
            break
    snr_db = crossing(curve, LOSS)
    good = air(bursts, rng, rms=phy.rms, snr_db=snr_db + 10, cfo=CFO).samples
    return {
        "bits_per_sample": 8 * FRAME_BYTES / phy.frame_samples(FRAME_BYTES),
        "snr_db": snr_db,
        "transmit_sps": sum(map(len, bursts)) / transmitting_s,
        "receive_sps": len(good) / receive(phy, good)[1],
    }


def receive(phy: WifiPhy, samples: Samples) -> tuple[int, float]:
    """Return how many frames came through, and the processor time (s)."""
    top, receiver, heard = gr.top_block(), phy.receiver(), Mailbox()
    source = blocks.vector_source_c(samples, False)
    top.connect(source, receiver)
    top.msg_connect((receiver, "frames"), (heard, "in"))
    began = time.process_time()
    top.run()
    return len(heard.taken), time.process_time() - began


if __name__ == "__main__":
    main()
