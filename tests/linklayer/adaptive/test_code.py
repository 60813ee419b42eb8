"""The sliding-window code: enough combinations of any packets restore them, for octets and size-only packets alike."""

import random
from collections.abc import Collection, Sequence, Sized
from functools import cache
from typing import NamedTuple, cast

import pytest
import zfec
from hypothesis import given, settings
from hypothesis import strategies as st

from linklayer.adaptive.code import (
    _PRODUCTS,
    MAX_EQUATIONS,
    MAX_INDEXES,
    MAX_PACKET_BYTES,
    MAX_SPAN,
    Code,
    Counting,
    Decoder,
    Field,
    coefficient,
)

CODES: list[Code] = [Field(), Counting()]
both_codes = pytest.mark.parametrize("code", CODES, ids=["octets", "counting"])
Row = dict[int, int]


@cache
def product(a: int, b: int) -> int:
    """The definition: polynomials over GF(2), modulo x^8 + x^4 + x^3 + x^2 + 1."""
    whole = 0
    for bit in range(8):
        whole ^= (a << bit) * (b >> bit & 1)
    for bit in range(14, 7, -1):
        whole ^= (0x11D << (bit - 8)) * (whole >> bit & 1)
    return whole


@cache
def inverse_of(a: int) -> int:
    return next(value for value in range(256) if product(a, value) == 1)


def rank(rows: Sequence[Row]) -> int:
    """Rank of a matrix over the field, its columns by number, by plain elimination."""
    left = [dict(row) for row in rows]
    found = 0
    while left:
        row = {seq: value for seq, value in left.pop().items() if value}
        if not row:
            continue
        found += 1
        pivot = next(iter(row))
        inverse = inverse_of(row[pivot])
        for other in left:
            factor = product(other.get(pivot, 0), inverse)
            for seq, value in row.items():
                other[seq] = other.get(seq, 0) ^ product(factor, value)
    return found


def without(rows: Sequence[Row], seqs: Collection[int]) -> list[Row]:
    return [{seq: value for seq, value in row.items() if seq not in seqs} for row in rows]


def deficit(rows: Sequence[Row], wanted: Collection[int]) -> int:
    """How many more equations would determine all of these unknowns."""
    return len(wanted) - (rank(rows) - rank(without(rows, wanted)))


def restored(decoder: Decoder) -> dict[int, Sized]:
    """What the decoder gives now."""
    packets: dict[int, Sized] = {}
    while (found := decoder.poll()) is not None:
        assert found[0] not in packets
        packets[found[0]] = found[1]
    return packets


# -- the field -------------------------------------------------------------------------------------------------------


def test_multiplication_is_that_of_polynomials() -> None:
    assert len(_PRODUCTS) == 256
    for a in range(256):
        assert list(_PRODUCTS[a]) == [product(a, b) for b in range(256)]


def test_multiplication_is_zfecs() -> None:
    """Two packets are points of a line: with 0 at 0 and d at 1, zfec's share i is d times 2 to the i - 1."""
    every = bytes(range(256))
    shares = zfec.Encoder(2, 256).encode([bytes(256), every], list(range(1, 256)))
    power = 1
    for share in shares:
        assert _PRODUCTS[power] == share
        power = product(power, 2)


def test_coefficients_are_cauchys() -> None:
    for x in range(128):
        for index in range(MAX_INDEXES):
            assert product(coefficient(x, index), x ^ (128 + index)) == 1
    assert coefficient(128 * 10**9 + 5, 7) == coefficient(5, 7)


# -- combinations ----------------------------------------------------------------------------------------------------


def test_combination_has_the_documented_octets() -> None:
    members = [(130, b"ab"), (133, b"xyz"), (134, b"")]
    assert Field().combine(members, 0) == bytes.fromhex("00 16 b0 82 22")
    assert Field().combine(members, 127) == bytes.fromhex("00 c6 b9 4d 2c")


@pytest.mark.parametrize("count", [1, 15, 16, 17, MAX_SPAN])
def test_combination_is_the_sum_of_symbols_times_coefficients(count: int) -> None:
    rng = random.Random(count)
    members = [(seq, rng.randbytes(rng.choice([0, 1, 30, 300]))) for seq in range(100, 100 + count)]
    width = 2 + max(len(packet) for _, packet in members)
    expected = [0] * width
    for seq, packet in members:
        symbol = (len(packet).to_bytes(2, "big") + packet).ljust(width, b"\0")
        expected = [sum_ ^ product(coefficient(seq, 9), octet) for sum_, octet in zip(expected, symbol, strict=True)]
    assert Field().combine(members, 9) == bytes(expected)


@both_codes
def test_combination_is_as_long_as_its_longest_member_and_a_length(code: Code) -> None:
    assert len(code.combine([(1, b"")], 0)) == 2
    assert len(code.combine([(1, bytes(7)), (9, bytes(1400)), (64, b"")], 5)) == 1402
    assert len(code.combine([(1, bytes(MAX_PACKET_BYTES))], 0)) == MAX_PACKET_BYTES + 2


@both_codes
@pytest.mark.parametrize(
    ("seqs", "index", "words"),
    [
        ([], 0, "members"),
        ([1, 65], 0, "within"),
        (list(range(65)), 0, "within"),
        ([1, 1], 0, "ascend"),
        ([1, 3, 2], 0, "ascend"),
        ([1], -1, "indexes"),
        ([1], 128, "indexes"),
    ],
)
def test_impossible_combinations_are_refused(code: Code, seqs: list[int], index: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        code.combine([(seq, b"x") for seq in seqs], index)
    decoder = Decoder(code)
    with pytest.raises(ValueError, match=words):
        decoder.equation(seqs, index, code.combine([(1, b"x")], 0))
    assert decoder.held == 0


@both_codes
def test_packets_too_long_for_the_length_field_are_refused(code: Code) -> None:
    long = bytes(MAX_PACKET_BYTES + 1)
    with pytest.raises(ValueError, match="65536"):
        code.combine([(1, long)], 0)
    with pytest.raises(ValueError, match="65536"):
        Decoder(code).known(1, long)


# -- decoding --------------------------------------------------------------------------------------------------------


class Loss(NamedTuple):
    packets: dict[int, bytes]
    lost: list[int]
    indexes: list[int]


@st.composite
def losses(draw: st.DrawFn) -> Loss:
    """Up to 64 packets of a window, the lost ones, and as many indexes as are lost."""
    start = draw(st.integers(0, 1 << 40))
    offsets = draw(st.sets(st.integers(0, MAX_SPAN - 1), min_size=1, max_size=MAX_SPAN))
    packets = {start + offset: draw(st.binary(max_size=6)) for offset in sorted(offsets)}
    lost = draw(st.permutations(list(packets)))[: draw(st.integers(1, 24))]
    count = len(lost)
    return Loss(packets, lost, draw(st.lists(st.integers(0, 127), min_size=count, max_size=count, unique=True)))


@given(losses(), st.randoms(use_true_random=False))
def test_as_many_combinations_as_lost_packets_restore_them(loss: Loss, rng: random.Random) -> None:
    members = sorted(loss.packets.items())
    come = [seq for seq in loss.packets if seq not in loss.lost]
    events: list[tuple[str, int]] = [("known", seq) for seq in come] + [("equation", index) for index in loss.indexes]
    rng.shuffle(events)
    for code in CODES:
        decoder = Decoder(code)
        found: dict[int, Sized] = {}
        for what, number in events:
            if what == "known":
                decoder.known(number, loss.packets[number])
            else:
                decoder.equation([seq for seq, _ in members], number, code.combine(members, number))
            found |= restored(decoder)
        # a packet may be restored before it comes
        assert {seq: found[seq] for seq in loss.lost} == {seq: loss.packets[seq] for seq in loss.lost}
        assert decoder.held == decoder.needs(list(loss.packets)) == decoder.contradictions == 0


@both_codes
def test_a_whole_span_is_restored_from_combinations_alone(code: Code) -> None:
    members = [(1000 + place, bytes([place]) * place) for place in range(MAX_SPAN)]
    seqs = [seq for seq, _ in members]
    decoder = Decoder(code)
    for index in range(MAX_SPAN):
        assert decoder.poll() is None
        assert decoder.needs(seqs) == MAX_SPAN - index
        decoder.equation(seqs, index + 60, code.combine(members, index + 60))
    assert restored(decoder) == dict(members)


class Op(NamedTuple):
    kind: str
    seqs: list[int]
    combination: int


@st.composite
def histories(draw: st.DrawFn) -> list[Op]:
    """Packets, combinations of sets that slide, grow or nest, and numbers that are forgotten."""
    made = []
    base = 0
    for _ in range(draw(st.integers(1, 30))):
        base += draw(st.integers(0, 2))
        near = st.integers(max(base - 4, 0), base + 6)
        kind = draw(st.sampled_from(["known", "equation", "equation", "equation", "forget"]))
        if kind == "equation":
            made.append(Op(kind, sorted(draw(st.sets(near, min_size=1))), draw(st.integers(0, 3))))
        else:
            made.append(Op(kind, [draw(near)] if kind == "known" else [base], 0))
    return made


@settings(max_examples=60)
@given(histories())
def test_decoder_gives_what_its_equations_determine(history: list[Op]) -> None:
    """Both codes, beside plain elimination of all that ever came."""
    packets = {seq: bytes([seq]) * (seq % 5) for seq in range(70)}
    decoders = [Decoder(code) for code in CODES]
    rows: list[Row] = []
    have: set[int] = set()
    floor = 0
    for kind, seqs, index in history:
        for code, decoder in zip(CODES, decoders, strict=True):
            if kind == "known":
                decoder.known(seqs[0], packets[seqs[0]])
            elif kind == "forget":
                decoder.forget(seqs[0])
            else:
                decoder.equation(seqs, index, code.combine([(seq, packets[seq]) for seq in seqs], index))
        if kind == "known" and seqs[0] >= floor:
            have.add(seqs[0])
        elif kind == "forget":
            floor = max(floor, seqs[0])
        elif kind == "equation" and seqs[0] >= floor:
            rows.append({seq: coefficient(seq, index) for seq in seqs})
        unknown = sorted({seq for row in rows for seq in row if seq >= floor} - have)
        left = without(rows, have)
        due = {seq: packets[seq] for seq in unknown if deficit(left, [seq]) == 0}
        for decoder in decoders:
            assert restored(decoder) == due
        have |= due.keys()
        left, unknown = without(left, due), [seq for seq in unknown if seq not in due]
        wanted = [*unknown[::2], floor + 69]
        for decoder in decoders:
            assert decoder.needs(wanted) == deficit(left, wanted)
            assert decoder.needs([*have, *range(floor)]) == 0
            # equations of forgotten packets say nothing of others
            assert decoder.held == rank(left) - rank(without(left, range(floor, floor + 99)))
    assert [decoder.contradictions for decoder in decoders] == [0, 0]


@both_codes
def test_a_packet_that_came_is_not_restored_and_a_restored_one_not_twice(code: Code) -> None:
    members = [(1, b"one"), (2, b"two")]
    decoder = Decoder(code)
    decoder.known(1, b"one")
    decoder.equation([1, 2], 0, code.combine(members, 0))
    decoder.known(2, b"two")
    assert decoder.poll() is None
    decoder.equation([1, 2], 1, code.combine(members, 1))
    assert decoder.poll() is None
    decoder.equation([3], 1, code.combine([(3, b"three")], 1))
    assert restored(decoder) == {3: b"three"}
    decoder.known(3, b"three")
    decoder.equation([3], 2, code.combine([(3, b"three")], 2))
    assert decoder.poll() is None


@both_codes
def test_forgotten_packets_neither_come_nor_help(code: Code) -> None:
    members = [(1, b"one"), (2, b"two")]
    decoder = Decoder(code)
    decoder.known(1, b"one")
    decoder.forget(2)
    decoder.equation([1, 2], 0, code.combine(members, 0))
    decoder.known(1, b"one")
    assert decoder.poll() is None
    assert decoder.held == 0
    for seq in range(2, 40):
        decoder.known(seq, b"x")
    decoder.forget(1)
    assert len(decoder._known) == 38
    decoder.forget(20)
    assert len(decoder._known) == 20
    decoder.forget(100)
    assert len(decoder._known) == 0
    decoder.equation([102], 0, code.combine([(102, b"two")], 0))
    decoder.forget(1 << 60)
    assert restored(decoder) == {102: b"two"}


# -- what hostile frames say ------------------------------------------------------------------------------------------


@both_codes
def test_short_payloads_are_refused(code: Code) -> None:
    decoder = Decoder(code)
    decoder.known(1, b"a")
    for payload in (b"", b"\0"):
        with pytest.raises(ValueError, match="coded payload"):
            decoder.equation([1, 2], 0, payload)
    with pytest.raises(ValueError, match="longer"):
        decoder.equation([1, 2], 0, code.combine([(1, b""), (2, b"")], 0))
    assert decoder.held == 0


@pytest.mark.parametrize(
    "symbol",
    [b"\0\4abc", b"\xff\xffabc", b"\0\2abc", b"\0\0\0\1"],
    ids=["length beyond the payload", "largest length", "octets behind the packet", "octets of an empty packet"],
)
def test_lengths_that_cannot_be_restore_nothing(symbol: bytes) -> None:
    inverse = _PRODUCTS[coefficient(5, 0)]
    decoder = Decoder(Field())
    decoder.equation([5], 0, symbol.translate(inverse))
    assert (decoder.poll(), decoder.held, decoder.contradictions) == (None, 0, 1)
    # an honest one still does
    decoder.equation([5], 1, cast(bytes, Field().combine([(5, b"abc")], 1)))
    assert restored(decoder) == {5: b"abc"}


def test_counting_restores_no_packet_that_was_not_combined() -> None:
    decoder = Decoder(Counting())
    decoder.equation([2], 0, Counting().combine([(1, b"one")], 0))
    assert (decoder.poll(), decoder.held, decoder.contradictions) == (None, 0, 1)


@pytest.mark.parametrize("seed", range(4))
def test_arbitrary_equations_raise_nothing_but_valueerror_and_are_bounded(seed: int) -> None:
    rng = random.Random(seed)
    decoder = Decoder(Field())
    largest = 0
    for _ in range(1500):
        start = rng.randrange(-200, 400)
        seqs = sorted(rng.sample(range(start, start + 70), rng.randrange(12)))
        try:
            match rng.randrange(8):
                case 0:
                    decoder.known(start, rng.randbytes(rng.randrange(4)))
                case 1 if not rng.randrange(20):
                    decoder.forget(start - 300)
                case _:
                    decoder.equation(seqs, rng.randrange(-2, 130), rng.randbytes(rng.randrange(12)))
        except ValueError:
            pass
        restored(decoder)
        largest = max(largest, decoder.held)
    assert 100 < largest <= MAX_EQUATIONS


@both_codes
def test_the_oldest_equations_leave(code: Code) -> None:
    decoder = Decoder(code)
    pairs = [[(seq, b"x"), (seq + 1, b"y")] for seq in range(0, 2 * MAX_EQUATIONS + 20, 2)]
    for pair in pairs:
        decoder.equation([seq for seq, _ in pair], 0, code.combine(pair, 0))
        assert decoder.held <= MAX_EQUATIONS
    assert decoder.held == MAX_EQUATIONS
    for (seq, _), (last, packet) in pairs:
        decoder.known(last, packet)
        assert restored(decoder) == ({} if seq < 20 else {seq: b"x"})


@both_codes
@pytest.mark.parametrize("step", [32, -32])
def test_equations_of_too_many_unknown_packets_leave(code: Code, step: int) -> None:
    """Sets of 33 that share one packet: to be rid of it, an equation takes on the unknown packets of another."""
    decoder = Decoder(code)
    for start in range(0, step * 40, step):
        members = [(seq, b"x") for seq in range(start, start + 33)]
        for index in range(4):
            decoder.equation([seq for seq, _ in members], index, code.combine(members, index))
            sizes = [len(equation.coefficients) for equation in decoder._equations.values()]
            assert max(sizes) <= MAX_EQUATIONS
            assert len(sizes) <= MAX_EQUATIONS
    assert max(sizes) > MAX_EQUATIONS // 2
