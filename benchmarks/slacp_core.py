"""How many frames per second one core carries through SLACP, sending and receiving side apart.

    .venv/bin/python -m benchmarks.slacp_core [--frames N] [--repetitions N] [--in-flight N] [--seed N] [--json]

Octets included: every frame is emitted, its checks computed, and parsed again; packets are 1400 octets. The clock is
virtual, so nothing waits. The sending side takes packets, makes frames and reads acknowledgements; the receiving side
reads frames, decodes blocks, delivers packets and makes acknowledgements. `--in-flight` frames are on their way each
way at any time: a longer way makes longer acknowledgements.
"""

import time
from collections import deque
from dataclasses import dataclass
from random import Random

from benchmarks.common import Column, Results, parser, spread, whole
from linklayer.classify import RELIABLE
from linklayer.slacp import ReedSolomon, Slacp, SlacpConfig
from linklayer.slacp.wire import emit, parse

PACKET_BYTES = 1400
#: air time of one frame in virtual time: 20 Mbps
FRAME_NS = 570_000
#: frames per second per core that fadelab wants of its link layer (no loss, and 10 % loss with FEC)
TARGETS = {0.0: 60_000, 0.1: 25_000}
COLUMNS = {
    "side": Column(""),
    "per": Column("loss", ".0%"),
    **{f"{name}_fps": Column(name, ",") for name in ("median", "min", "max", "target")},
}


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
    return Sample(sent * 1e9 / sending, received * 1e9 / receiving, a.stats.packets, b.stats.delivered)


def main() -> None:
    """Measure and print."""
    options_of = parser(__doc__, seed=2, repetitions=5)
    options_of.add_argument("--frames", type=whole(1), default=40_000, help="per repetition")
    options_of.add_argument("--in-flight", type=whole(1), default=32, help="frames under way in each direction")
    options = options_of.parse_args()
    if options.frames <= 2 * options.in_flight:
        options_of.error("--frames must be more than twice --in-flight")
    unit = f"frames/s of one core, {PACKET_BYTES}-octet packets, {options.in_flight} frames in flight each way"
    results = Results(options, "model", unit, COLUMNS)
    for per, target in TARGETS.items():
        samples = [measure(per, options.frames, options.in_flight, options.seed) for _ in range(options.repetitions)]
        for side in ("sending", "receiving"):
            rates = spread("fps", [getattr(sample, side) for sample in samples])
            results.add(side=side, per=per, **rates, target_fps=target)
    results.finish(packet_bytes=PACKET_BYTES)


if __name__ == "__main__":
    main()
