"""The receiving half of LT-TCP: blocks, their reconstruction, and FEC segments that make no sense."""

from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hosts.tcp.buffers import Reassembly
from hosts.tcp.lt.blocks import Block, decode, encode
from hosts.tcp.lt.decoder import Decoder

Fec = tuple[int, int, int, int, int]
START, WIDTH = 1000, 10
DATA = bytes(range(35))
BLOCK = Block(START, START + 35, WIDTH)
LIMIT = START + 10_000


class Bench:
    """A decoder of a receiver that has `DATA` up to `nxt` in order."""

    def __init__(self, nxt: int = START, most: int = 10_000, octets: bytes = DATA) -> None:
        self.reassembly = Reassembly()
        self.decoder = Decoder(self.reassembly, most)
        self.nxt = nxt
        self.decoder.keep(octets[: nxt - START])

    def have(self, start: int, end: int, octets: bytes = DATA) -> None:
        self.reassembly.add(start, end, octets[start - START : end - START])

    def fec(
        self, index: int = 0, *, start: int = START, members: int = 4, last: int = 5, payload: bytes | None = None
    ) -> bool:
        payload = encode(DATA, BLOCK, index) if payload is None else payload
        return self.decoder.handle_fec((start, members, index, last, 7), payload, len(payload), self.nxt, LIMIT)

    @property
    def waiting(self) -> int:
        return self.decoder.need(self.nxt)


def test_symbols_are_ranges_of_octets_and_the_last_is_shorter() -> None:
    assert (BLOCK.members, BLOCK.last) == (4, 5)
    assert [BLOCK.symbol(index) for index in range(4)] == [
        (1000, 1010), (1010, 1020), (1020, 1030), (1030, 1035),
    ]  # fmt: skip


def test_any_four_of_eight_symbols_give_the_block() -> None:
    symbols = {index: DATA[index * 10 : index * 10 + 10].ljust(10, b"\0") for index in range(4)}
    symbols |= {4 + index: encode(DATA, BLOCK, index) for index in range(4)}
    for chosen in combinations(symbols, 4):
        assert decode({index: symbols[index] for index in chosen}, BLOCK) == DATA


def test_padding_that_is_not_zero_gives_nothing() -> None:
    symbols = {index: DATA[index * 10 : index * 10 + 10].ljust(10, b"\0") for index in range(3)}
    assert decode({**symbols, 4: bytes(10)}, BLOCK) is None


def test_lost_segments_come_back() -> None:
    bench = Bench(nxt=START + 10)
    bench.have(1030, 1035)
    assert not bench.fec(0)
    assert bench.waiting == 1
    assert bench.fec(3)
    assert bench.reassembly.take(1010) == (1035, DATA[10:])
    assert bench.decoder.recovered == 20


def test_data_completes_a_block_that_waits() -> None:
    bench = Bench()
    assert not bench.fec(0)
    assert bench.waiting == 3
    bench.have(1000, 1010)
    bench.have(1020, 1030)
    assert not bench.decoder.handle_data(START)
    assert bench.waiting == 1
    bench.have(1030, 1035)
    assert bench.waiting == 0
    assert bench.decoder.handle_data(START)
    assert bench.reassembly.take(START) == (1035, DATA)


def test_pieces_of_symbols_are_kept_as_they_came() -> None:
    bench = Bench(nxt=START + 4)
    bench.have(1007, 1013)
    bench.have(1020, 1035)
    for index in range(2):
        done = bench.fec(index)
    assert done
    assert bench.reassembly.take(START + 4) == (1035, DATA[4:])
    assert bench.decoder.recovered == 3 + 7


def test_octets_that_differ_from_the_decoded_ones_win() -> None:
    bench = Bench()
    bench.have(1007, 1013, b"x" * 35)
    bench.have(1020, 1035)
    assert not any([bench.fec(0), bench.fec(1)])
    assert bench.reassembly.copy(1007, 1013) == b"x" * 6
    assert bench.decoder.recovered == 0


def test_a_block_that_is_complete_is_forgotten() -> None:
    bench = Bench()
    bench.fec(0)
    bench.nxt = 1035
    bench.decoder.handle_data(1035)
    assert bench.waiting == 0
    assert not bench.fec(1)


@pytest.mark.parametrize(
    "change",
    [
        {"members": 0},
        {"members": 255, "index": 1},
        {"last": 0},
        {"last": 11},
        {"start": START - 1},
        {"start": LIMIT},
        {"payload": b""},
        {"start": START + (1 << 31)},
    ],
)
def test_fec_that_contradicts_itself_or_the_window_is_ignored(change: dict[str, int]) -> None:
    bench = Bench()
    assert not bench.fec(**change)  # type: ignore[arg-type]
    assert bench.decoder._stored == 0


def test_memory_is_bounded_by_the_buffer() -> None:
    bench = Bench(most=100)
    for index in range(200):
        bench.fec(index % 50, start=START + 40 * (index // 50), members=100)
    assert bench.decoder._stored <= 100
    for _ in range(100):
        bench.decoder.keep(bytes(30))
    assert len(bench.decoder._kept) <= 200


def test_blocks_that_are_done_give_their_memory_back() -> None:
    bench = Bench(most=40)
    for start in range(START, START + 1000, 40):
        bench.nxt = start
        # one block is reconstructed, the next one arrives whole
        done = [bench.fec(index, start=start, last=10, payload=bytes(10)) for index in range(4)]
        assert done == [False, False, False, True]
        assert not bench.fec(0, start=start + 40, last=10, payload=bytes(10))
        assert not bench.decoder.handle_data(start + 80)
        bench.reassembly.take(start)
    assert bench.decoder._stored == 0


def test_blocks_of_no_use_are_bounded() -> None:
    bench = Bench()
    for start in range(START, START + 100):
        bench.fec(0, start=start)
    assert len(bench.decoder._blocks) == 32


def test_sizes_alone_are_reconstructed_as_octets_are() -> None:
    rng = Random(3)
    for _ in range(200):
        got = sorted(rng.sample(range(4), rng.randint(0, 3)))
        redundant = rng.sample(range(5), rng.randint(1, 4))
        real, sized = Bench(), Bench()
        for index in got:
            start, end = BLOCK.symbol(index)
            real.have(start, end)
            sized.reassembly.add(start, end, None)
        for index in redundant:
            done = real.fec(index)
            assert sized.decoder.handle_fec((START, 4, index, 5, 7), None, 10, START, LIMIT) == done
        assert real.reassembly.missing(START, 1035) == sized.reassembly.missing(START, 1035)
        assert bool(real.reassembly.missing(START, 1035)) == (len(got) + len(redundant) < 4)


def test_a_block_of_octets_takes_no_segment_of_size_alone() -> None:
    bench = Bench()
    assert not bench.fec(0)
    assert bench.decoder.handle_fec((START, 4, 1, 5, 7), None, 10, START, LIMIT) is False
    assert bench.waiting == 3


numbers = st.tuples(
    st.one_of(st.integers(0, 2**32 - 1), st.integers(START - 50, START + 200)),
    st.integers(0, 255), st.integers(0, 255), st.integers(0, 65_535), st.integers(0, 65_535),
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(numbers, st.binary(max_size=30), st.integers(0, 40)), max_size=20))
def test_no_fec_segment_raises_or_replaces_octets(segments: list[tuple[Fec, bytes, int]]) -> None:
    bench = Bench(nxt=START + 15, most=300)
    bench.have(1020, 1026)
    for fec, payload, more in segments:
        bench.decoder.handle_fec(fec, payload, len(payload), bench.nxt, START + 300)
        bench.decoder.handle_data(bench.nxt)
        assert bench.reassembly.copy(1020, 1026) == DATA[20:26]
        assert bench.decoder._stored <= 300
        assert 0 <= bench.decoder.need(bench.nxt) <= 255
        assert bench.reassembly._ends[-1] <= START + 300
        if more < 3:
            bench.have(1100 + more, 1110, bytes(400))
