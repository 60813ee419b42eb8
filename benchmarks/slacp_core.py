"""How many frames per second one core carries through SLACP, sending and receiving side apart.

    .venv/bin/python -m benchmarks.slacp_core [--frames N] [--repetitions N] [--in-flight N] [--json]

Octets included: every frame is emitted, its checks computed, and parsed again; packets are 1400 octets. The clock is
virtual, so nothing waits. The sending side takes packets, makes frames and reads acknowledgements; the receiving side
reads frames, decodes blocks, delivers packets and makes acknowledgements. `--in-flight` frames are on their way each
way at any time: a longer way makes longer acknowledgements.
"""

import argparse
import json
import statistics
import time
from collections import deque
from dataclasses import dataclass
from random import Random

from linklayer.slacp import RELIABLE, ReedSolomon, Slacp, SlacpConfig
from linklayer.slacp.wire import emit, parse

PACKET_BYTES = 1400
#: air time of one frame in virtual time: 20 Mbps
FRAME_NS = 570_000
#: frames per second per core that fadelab wants of its link layer (no loss, and 10 % loss with FEC)
TARGETS = {0.0: 60_000, 0.1: 25_000}


@dataclass(frozen=True, slots=True)
class Sample:
    """One run: data-direction frames per second of each side, and what became of the packets."""

    sending: float
    receiving: float
    packets: int
    delivered: int


def established(config: SlacpConfig) -> tuple[Slacp, Slacp]:
    """Return two endpoints in session at time 0."""
    rng = Random(1)
    a, b = (Slacp(config, ReedSolomon(), rng, 0) for _ in range(2))
    while not (a.established and b.established):
        for source, target in ((a, b), (b, a)):
            while (frame := source.poll_frame(0)) is not None:
                target.handle_frame(parse(emit(frame)), 0)
    return a, b


def measure(per: float, frames: int, in_flight: int, seed: int = 2) -> Sample:
    """Send until `frames` frames have left."""
    a, b = established(SlacpConfig(window=8192))
    errors = Random(seed)
    packet = bytes(PACKET_BYTES)
    clock = time.perf_counter_ns
    forth: deque[list[bytes]] = deque()
    back: deque[list[bytes]] = deque()
    sending = receiving = sent = 0
    now = 0
    batch = min(16, in_flight)
    while sent < frames:
        leaving = []
        start = clock()
        for _ in range(batch):
            if a.wants_packet(RELIABLE):
                a.handle_packet(packet, RELIABLE)
            frame = a.poll_frame(now)
            if frame is None:
                break
            leaving.append(emit(frame))
            now += FRAME_NS
        if now >= a.next_deadline():
            a.handle_deadline(now)
        sending += clock() - start
        sent += len(leaving)
        if not leaving:
            now += FRAME_NS
        forth.append([octets for octets in leaving if errors.random() >= per])

        if len(forth) * batch >= in_flight:
            arriving = forth.popleft()
            answers = []
            start = clock()
            for octets in arriving:
                b.handle_frame(parse(octets), now)
                while b.poll_packet() is not None:
                    pass
                while (frame := b.poll_frame(now)) is not None:
                    answers.append(emit(frame))
            if now >= b.next_deadline():
                b.handle_deadline(now)
            receiving += clock() - start
            back.append(answers)

        if len(back) * batch >= in_flight:
            arriving = back.popleft()
            start = clock()
            for octets in arriving:
                a.handle_frame(parse(octets), now)
                while a.poll_given_up() is not None:
                    pass
            sending += clock() - start
    received = sent - in_flight
    return Sample(sent * 1e9 / sending, received * 1e9 / receiving, a.sent.packets, b.got.delivered)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--frames", type=int, default=40_000, help="frames per repetition")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--in-flight", type=int, default=32, help="frames under way in each direction")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    if min(options.repetitions, options.in_flight) < 1 or options.frames <= 2 * options.in_flight:
        parser.error("--repetitions and --in-flight must be 1 or more, --frames more than twice --in-flight")

    results = []
    for per, target in TARGETS.items():
        samples = [measure(per, options.frames, options.in_flight) for _ in range(options.repetitions)]
        for side in ("sending", "receiving"):
            rates = [getattr(sample, side) for sample in samples]
            results.append(
                {
                    "per": per,
                    "side": side,
                    "median_fps": round(statistics.median(rates)),
                    "min_fps": round(min(rates)),
                    "max_fps": round(max(rates)),
                    "target_fps": target,
                }
            )
    if options.json:
        settings = {"frames": options.frames, "repetitions": options.repetitions, "in_flight": options.in_flight}
        print(json.dumps({"packet_bytes": PACKET_BYTES, **settings, "results": results}))
        return
    print(f"frames/s on one core, {PACKET_BYTES}-octet packets, {options.in_flight} frames in flight each way")
    print(f"{'loss':>5}  {'side':<10}{'median':>9}{'min':>9}{'max':>9}{'target':>9}")
    for row in results:
        print(
            f"{row['per']:>5.0%}  {row['side']:<10}{row['median_fps']:>9,}{row['min_fps']:>9,}{row['max_fps']:>9,}"
            f"{row['target_fps']:>9,}"
        )


if __name__ == "__main__":
    main()
