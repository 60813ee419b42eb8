"""Hostile octets at link ARQ, by the million: `.venv/bin/python -m benchmarks.fuzz_arq --packets N`.

Half of them are arbitrary octets and frames of a valid flow with damage, which its receiver gets between the whole
ones: no packet of the flow may be lost, repeated or changed. The other half are frames with a right CRC and wrong
numbers at an end of their own, which has no flow to lose: no exception, and its memory stays within its bounds. It ends
with 1 when a rule was broken.
"""

import json
import sys
import time
from random import Random
from typing import Any

from benchmarks.common import parser, whole
from common.units import MS
from linklayer.arq.endpoint import Arq
from linklayer.arq.frames import Ack, Data, Frame, emit, parse
from linklayer.link import FrameError
from tests.harness.checked import footprint

#: octets that an end may hold: 4096 packets of 1500, twice
MOST_HELD = 16 << 20


def end(seed: int) -> Arq:
    """Return an end; packets in order are held, which is the harder case."""
    return Arq(
        resend_after_ns=40 * MS, retries=2, window=1024, in_order=True, rng=Random(seed), cutter=None, combine=True
    )


def damaged(rng: Random, octets: bytes) -> bytes:
    """Return octets with a few bits flipped, cut, or other ones."""
    kind = rng.random()
    if kind < 0.2:
        return rng.randbytes(rng.randrange(80))
    if kind < 0.4:
        return octets[: rng.randrange(len(octets))]
    broken = bytearray(octets)
    for _ in range(rng.randint(1, 4)):
        broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
    return bytes(broken)


def at_a_flow(count: int, seed: int) -> dict[str, Any]:
    """Damage at the receiver of a valid flow; return what was seen."""
    rng = Random(f"{seed} flow")
    sender, receiver = end(1), end(2)
    now, given, got, accepted, shots = 0, 0, 0, 0, 0
    wrong: list[str] = []
    while shots < count:
        now += MS
        while sender.wants_packet(0) and given - got < 64:
            sender.handle_packet(given.to_bytes(8, "big"), 0)
            given += 1
            frame = sender.poll_frame(now)
            if frame is None:
                break
            octets = emit(frame)
            for _ in range(8):
                shots += 1
                try:
                    found = parse(damaged(rng, octets))
                except FrameError:
                    continue
                # bits that were flipped twice
                accepted += emit(found) != octets
            receiver.handle_frame(parse(octets), now)
        while (ack := receiver.poll_frame(now)) is not None:
            sender.handle_frame(ack, now)
        while (packet := receiver.poll_packet()) is not None:
            if packet[0] != got.to_bytes(8, "big"):
                wrong.append(f"packet {got} is {packet[0]!r}")
            got += 1
    if accepted:
        wrong.append(f"{accepted} damaged frames were taken for whole ones")
    if given - got > 64:
        wrong.append(f"{given - got} packets of the valid flow are missing")
    return {"shots": shots, "packets_of_the_flow": got, "wrong": wrong}


def at_an_end(count: int, seed: int) -> dict[str, Any]:
    """Frames with right CRCs and wrong numbers; return what was seen."""
    rng = Random(f"{seed} end")
    link = end(3)
    most, now = 0, 0
    wrong: list[str] = []
    payload = bytes(1400)
    for shot in range(count):
        now += rng.choice((0, 0, 0, MS, 200 * MS))
        if link.wants_packet(0):
            link.handle_packet(payload, 0)
        near = rng.choice((shot, 1 << 31, 0xFFFF_F000, rng.getrandbits(32)))
        seq = near + rng.randrange(5000) & 0xFFFF_FFFF
        frame: Frame
        if rng.random() < 0.3:
            frame = Ack(rng.choice((rng.getrandbits(16), 7)), seq, rng.getrandbits(64))
        else:
            frame = Data(rng.choice((1, 1, 1, rng.getrandbits(16))), shot & 1, seq, near & 0xFFFF_FFFF, payload)
        link.handle_frame(parse(emit(frame)), now)
        link.handle_deadline(now)
        while link.poll_frame(now) is not None:
            pass
        for poll in (link.poll_packet, link.poll_given_up):
            while poll() is not None:
                pass
        if shot % max(1, count // 50) == 0:
            most = max(most, footprint(link))
    if most > MOST_HELD:
        wrong.append(f"{most} octets were held")
    return {"shots": count, "most_held_bytes": most, "wrong": wrong}


def main() -> None:
    """Attack and print."""
    options_of = parser(__doc__)
    options_of.add_argument("--packets", type=whole(1000), default=100_000, help="hostile frames in all")
    options = options_of.parse_args()
    begun = time.process_time()
    flow, alone = at_a_flow(options.packets // 2, options.seed), at_an_end(options.packets // 2, options.seed)
    summary = {
        "tier": "model",
        "seed": options.seed,
        "packets": flow["shots"] + alone["shots"],
        "packets_of_the_flow": flow["packets_of_the_flow"],
        "most_held_bytes": alone["most_held_bytes"],
        "cpu_s": round(time.process_time() - begun, 1),
        "wrong": flow["wrong"] + alone["wrong"],
    }
    if options.json:
        print(json.dumps(summary))
    else:
        print("\n".join(f"{name}: {value}" for name, value in summary.items() if name != "wrong"))
        print("\n".join(summary["wrong"]) or "nothing wrong")
    sys.exit(1 if summary["wrong"] else 0)


if __name__ == "__main__":
    main()
