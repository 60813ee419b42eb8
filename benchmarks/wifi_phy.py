"""PHY wifi by encoding: where it loses a tenth of its frames in white noise, and samples per second of one core.

    .venv/bin/python -m benchmarks.wifi_phy [--frames N] [--seed N] [--json]

Frames of 1400 bytes, each with a random phase, all with a frequency offset of 5 % of a carrier's spacing. SNR is per
sample, over the whole sampled band, and goes up in steps of 0.5 dB; shown is where the line between two points crosses
10 %. Speeds are samples per second of processor time, all threads of the flowgraph together: transmit is frames one
after the other, receive the same with short gaps at 10 dB more, idle is noise alone. Needs gr-ieee802-11.
"""

import argparse
import json
import time
from itertools import count, pairwise
from typing import Any

import numpy as np
import pmt
from gnuradio import blocks, gr

from flowgraphs.phy import Samples
from flowgraphs.phys.wifi import ENCODINGS
from flowgraphs.phys.wifi.modem import WifiPhy
from tests.flowgraphs.awgn import air
from tests.flowgraphs.bursts import modulated

FRAME_BYTES = 1400
RATE_SPS = 2e6
CFO = 0.05 / 64
STEP_DB = 0.5
LOSS, DONE = 0.1, 0.02
IDLE_SAMPLES = 8_000_000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--frames", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    if options.frames < 10:
        parser.error("--frames must be 10 or more")

    rows: dict[str, dict[str, float]] = {}
    if not options.json:
        print(f"{'':10} {'bits/sample':>11} {'SNR (dB)':>9} {'transmit':>9} {'receive':>8} (Msps)")
    lowest_db = 1.0
    for encoding in ENCODINGS:
        rows[encoding] = row = measure(encoding, options.frames, options.seed, lowest_db)
        lowest_db = max(row["snr_db"] - 4, 1.0)
        if not options.json:
            speeds = f"{row['transmit_sps'] / 1e6:9.1f} {row['receive_sps'] / 1e6:8.1f}"
            print(f"{encoding:10} {row['bits_per_sample']:11.2f} {row['snr_db']:9.1f} {speeds}", flush=True)
    noise = np.random.default_rng(options.seed).standard_normal(2 * IDLE_SAMPLES, np.float32).view(np.complex64)
    idle_sps = IDLE_SAMPLES / receive(WifiPhy(RATE_SPS), noise)[1]
    if options.json:
        print(json.dumps({"encodings": rows, "idle_sps": idle_sps, "frames": options.frames, "seed": options.seed}))
    else:
        print(f"receive idle: {idle_sps / 1e6:.1f} Msps")


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
    snr_db = crossing(curve)
    good = air(bursts, rng, rms=phy.rms, snr_db=snr_db + 10, cfo=CFO).samples
    return {
        "bits_per_sample": 8 * FRAME_BYTES / phy.frame_samples(FRAME_BYTES),
        "snr_db": snr_db,
        "transmit_sps": sum(map(len, bursts)) / transmitting_s,
        "receive_sps": len(good) / receive(phy, good)[1],
    }


def crossing(curve: list[tuple[float, float]]) -> float:
    """Return where the loss falls to a tenth for good."""
    for (snr0, per0), (snr1, per1) in reversed(list(pairwise(curve))):
        if per0 >= LOSS > per1:
            return snr0 + (per0 - LOSS) / (per0 - per1) * (snr1 - snr0)
    raise ValueError("the loss does not cross a tenth")


def receive(phy: WifiPhy, samples: Samples) -> tuple[int, float]:
    """Return how many frames came through, and the processor time (s)."""
    top, receiver, heard = gr.top_block(), phy.receiver(), Counter()
    source = blocks.vector_source_c(samples, False)
    top.connect(source, receiver)
    top.msg_connect((receiver, "frames"), (heard, "frames"))
    began = time.process_time()
    top.run()
    return heard.count, time.process_time() - began


class Counter(gr.basic_block):
    """Counts messages."""

    def __init__(self) -> None:
        gr.basic_block.__init__(self, "counter", in_sig=None, out_sig=None)
        self.count = 0
        self.message_port_register_in(pmt.intern("frames"))
        self.set_msg_handler(pmt.intern("frames"), self._take)

    def _take(self, message: Any) -> None:
        self.count += 1


if __name__ == "__main__":
    main()
