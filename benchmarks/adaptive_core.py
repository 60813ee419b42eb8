"""How many frames per second one core carries through slacp-adaptive, sending and receiving side apart.

    .venv/bin/python -m benchmarks.adaptive_core [--frames N] [--repetitions N] [--in-flight N] [--seed N] [--json]

As `slacp_core`: octets included, every frame is emitted and parsed again, packets of 1400 octets, a virtual clock. Both
directions lose frames. Each end is polled, and its deadlines are handled, after each frame.
"""

import time
from collections import deque
from dataclasses import dataclass
from random import Random

from benchmarks.common import Column, Results, parser, spread, whole
from linklayer.adaptive.code import Field
from linklayer.adaptive.endpoint import Adaptive
from linklayer.adaptive.frames import emit, parse
from linklayer.classify import RELIABLE

PACKET_BYTES = 1400
#: air time of one frame in virtual time: 20 Mbps
FRAME_NS = 570_000
#: frames per second per core that fadelab wants of this link layer
TARGETS = {0.0: 100_000, 0.1: 40_000}
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


def measure(per: float, frames: int, in_flight: int, seed: int = 2) -> Sample:
    """Send until `frames` frames have left."""
    a, b = (
        Adaptive(round_trips=3, budget_ns=0, frame_ns=FRAME_NS, code=Field(), rng=Random(number), now=0)
        for number in range(2)
    )
    errors = Random(seed)
    packet = bytes(PACKET_BYTES)
    clock = time.perf_counter_ns
    #: frames by the time of their arrival
    forth: deque[tuple[int, bytes]] = deque()
    back: deque[tuple[int, bytes]] = deque()
    sending = receiving = sent = received = 0
    now, way = 0, in_flight * FRAME_NS
    while sent < frames:
        octets = b""
        arriving = [back.popleft()[1] for _ in range(len(back)) if back[0][0] <= now]
        start = clock()
        for answer in arriving:
            a.handle_frame(parse(answer), now)
        while a.poll_given_up() is not None:
            pass
        at = a.next_deadline()
        if at is not None and at <= now:
            a.handle_deadline(now)
        if a.wants_packet(RELIABLE):
            a.handle_packet(packet, RELIABLE)
        frame = a.poll_frame(now)
        if frame is not None:
            octets = emit(frame)
            sent += 1
        sending += clock() - start
        if octets and errors.random() >= per:
            forth.append((now + way, octets))
        now += FRAME_NS

        arriving = [forth.popleft()[1] for _ in range(len(forth)) if forth[0][0] <= now]
        answers = []
        start = clock()
        for octets in arriving:
            b.handle_frame(parse(octets), now)
        while b.poll_packet() is not None:
            pass
        at = b.next_deadline()
        if at is not None and at <= now:
            b.handle_deadline(now)
        while (frame := b.poll_frame(now)) is not None:
            answers.append(emit(frame))
        receiving += clock() - start
        received += len(arriving)
        back.extend((now + way, answer) for answer in answers if errors.random() >= per)
    return Sample(sent * 1e9 / sending, received * 1e9 / receiving, a.counters().packets, b.counters().delivered)


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
