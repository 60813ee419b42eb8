"""What the erasure code of `slacp-adaptive` costs on one core, beside zfec and ISA-L.

    .venv/bin/python -m benchmarks.erasure_code [--packets N] [--repetitions N] [--seed N] [--json]

Packets are 1500 octets. `combine` makes one coded payload of so many members. `restore` gives a decoder all packets of
a window but a tenth, and as many combinations of all. `stream` is a link with 10 % loss in virtual time: after each
eight packets comes a combination of the last ones; sending makes them, receiving takes whatever arrives. ISA-L
(apt-get install libisal2) is called by ctypes, tables for the coefficients included. Its payloads are compared with
ours. zfec, a block code, has no `stream`.
"""

import time
from collections import deque
from collections.abc import Callable
from ctypes import CDLL, addressof, c_char_p, c_void_p, create_string_buffer
from random import Random
from statistics import median

import zfec

from benchmarks.common import Column, Results, parser, whole
from linklayer.adaptive.code import Decoder, Field, coefficient

PACKET_BYTES = 1500
MEMBERS = (1, 5, 20, 64)
LOSS = 0.1
#: packets between two combinations
EVERY = 8
#: time that a frame may take on one core: 40,000 frames/s live at 10 % loss
TARGET_US = 25
COLUMNS = {
    "what": Column(""),
    "members": Column("members"),
    "ours_us": Column("ours", ".2f"),
    "zfec_us": Column("zfec", ".2f"),
    "isal_us": Column("ISA-L", ".2f"),
    "zfec_ratio": Column("ours/zfec", ".2f"),
    "isal_ratio": Column("ours/ISA-L", ".2f"),
    "target_us": Column("target"),
}
Members = list[tuple[int, bytes]]


class IsaL:
    """ISA-L's coder. Raises OSError where the library is absent."""

    def __init__(self) -> None:
        self._library = CDLL("libisal.so.2")

    def combine(self, members: Members, index: int) -> bytes:
        """The same octets as those of `Field.combine`, for packets of one length."""
        count = len(members)
        symbols = [len(packet).to_bytes(2, "big") + packet for _, packet in members]
        factors = bytes([coefficient(seq, index) for seq, _ in members])
        tables = create_string_buffer(32 * count)
        coded = create_string_buffer(len(symbols[0]))
        self._library.ec_init_tables(count, 1, factors, tables)
        sources, target = (c_char_p * count)(*symbols), (c_void_p * 1)(addressof(coded))
        self._library.ec_encode_data(len(coded), count, 1, tables, sources, target)
        return coded.raw


def isal() -> IsaL | None:
    """ISA-L, if it is installed."""
    try:
        return IsaL()
    except OSError:
        return None


def timed(action: Callable[[], object]) -> float:
    """Processor time of an action in µs."""
    start = time.process_time_ns()
    action()
    return (time.process_time_ns() - start) / 1000


def combining(members: Members, times: int, library: IsaL | None) -> list[float]:
    """Time of one combination in µs: ours, zfec's, ISA-L's."""
    packets = [packet for _, packet in members]
    field, block = Field(), zfec.Encoder(len(members), len(members) + 1)
    own = timed(lambda: [field.combine(members, index & 127) for index in range(times)])
    others = timed(lambda: [block.encode(packets, [len(packets)]) for _ in range(times)])
    if library is None:
        return [own / times, others / times]
    native = timed(lambda: [library.combine(members, index & 127) for index in range(times)])
    if library.combine(members, 1) != field.combine(members, 1):
        raise SystemExit("ISA-L makes other combinations than ours")
    return [own / times, others / times, native / times]


def restoring(members: Members, windows: int) -> list[float]:
    """Time of one restored packet in µs: ours, zfec's."""
    count = len(members)
    lost = max(1, int(LOSS * count))
    seqs, packets = [seq for seq, _ in members], [packet for _, packet in members]
    coded = [Field().combine(members, index) for index in range(lost)]
    shares = zfec.Encoder(count, count + lost).encode(packets, list(range(count, count + lost)))
    block = zfec.Decoder(count, count + lost)

    def ours(_: int) -> None:
        decoder = Decoder(Field())
        for seq, packet in members[lost:]:
            decoder.known(seq, packet)
        for index, payload in enumerate(coded):
            decoder.equation(seqs, index, payload)
        for _ in range(lost):
            assert decoder.poll() is not None

    own = timed(lambda: deque(map(ours, range(windows)), 0))
    numbers = [*range(count, count + lost), *range(lost, count)]
    others = timed(lambda: [block.decode([*shares, *packets[lost:]], numbers) for _ in range(windows)])
    return [own / windows / lost, others / windows / lost]


def streaming(span: int, packets: int, seed: int) -> list[float]:
    """Time of a frame in µs, sending and receiving, with combinations of the last `span` packets."""
    rng, field, decoder = Random(seed), Field(), Decoder(Field())
    content = [rng.randbytes(PACKET_BYTES) for _ in range(packets)]
    ends = range(span, packets, EVERY)
    come = {seq for seq in range(packets) if rng.random() >= LOSS}
    coded = {end for end in ends if rng.random() >= LOSS}
    payloads = {}

    def send() -> None:
        for end in ends:
            payloads[end] = field.combine([(seq, content[seq]) for seq in range(end - span, end)], end // EVERY & 127)

    def receive() -> None:
        for seq in range(packets):
            if seq in coded:
                decoder.equation(range(seq - span, seq), seq // EVERY & 127, payloads[seq])
                while decoder.poll() is not None:
                    pass
            if seq in come:
                decoder.known(seq, content[seq])
            decoder.forget(seq - 2 * span)

    frames = packets + len(ends)
    return [timed(send) / frames, timed(receive) / frames]


def main() -> None:
    """Measure and print."""
    options_of = parser(__doc__, repetitions=9)
    options_of.add_argument("--packets", type=whole(64), default=4096, help="per measurement")
    options = options_of.parse_args()
    rng, library = Random(options.seed), isal()
    unit = f"median µs of processor time, {PACKET_BYTES}-octet packets; stream: of each frame"
    results = Results(options, "none", unit, COLUMNS)
    if library is None:
        results.say("ISA-L is not installed: apt-get install libisal2")

    def add(what: str, count: int, rounds: list[list[float]], **more: float) -> None:
        """Take medians, and the medians of ratios within a round."""
        row = dict(zip(("ours_us", "zfec_us", "isal_us"), map(median, zip(*rounds, strict=True)), strict=False))
        for place, name in enumerate(("zfec_ratio", "isal_ratio"), 1):
            if len(rounds[0]) > place:
                row[name] = median(each[0] / each[place] for each in rounds)
        results.add(what=what, members=count, **row, **more)

    repeated = range(options.repetitions)
    for count in MEMBERS:
        members = [(100 + place, rng.randbytes(PACKET_BYTES)) for place in range(count)]
        add("combine", count, [combining(members, options.packets // count, library) for _ in repeated])
        add("restore", count, [restoring(members, options.packets // count) for _ in repeated])
    for span in MEMBERS[2:]:
        both = [streaming(span, options.packets, options.seed + number) for number in repeated]
        for place, side in enumerate(("sending", "receiving")):
            add(f"stream, {side}", span, [[each[place]] for each in both], target_us=TARGET_US)
    results.finish(packet_bytes=PACKET_BYTES)


if __name__ == "__main__":
    main()
