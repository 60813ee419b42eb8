"""The erasure codes: any `actual` symbols of a block give all of it, for octets and for size-only packets alike."""

from collections.abc import Sized
from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklayer.slacp.fec import MAX_REDUNDANCY, Counting, ErasureCode, Member, ReedSolomon, redundancy_for
from linklayer.slacp.frames import SYMBOL_BYTES

SEQS = st.integers(0, 0xFFFF_FFFF)


@st.composite
def blocks(draw: st.DrawFn) -> tuple[list[Member], int]:
    """Up to 16 packets of very different lengths and up to 16 redundancy frames."""
    members = draw(st.lists(st.tuples(SEQS, st.binary(min_size=1, max_size=60)), min_size=1, max_size=16))
    return [(seq, packet) for seq, packet in members], draw(st.integers(1, 16))


def decoded(code: ErasureCode, members: list[Member], redundant: int, arrived: set[int]) -> list[Member]:
    shards = code.encode(members, redundant)
    assert len(shards) == redundant
    actual = len(members)
    known = {index: members[index] for index in arrived if index < actual}
    kept = {index: shards[index - actual] for index in arrived if index >= actual}
    return code.decode(actual, known, kept)


@given(blocks(), st.data())
def test_any_actual_frames_give_the_rest_and_both_codes_agree(
    block: tuple[list[Member], int], data: st.DataObject
) -> None:
    members, redundant = block
    actual = len(members)
    order = data.draw(st.permutations(range(actual + redundant)))
    n = data.draw(st.integers(actual, actual + redundant))
    arrived = set(order[:n])
    if all(index < actual for index in arrived):
        return  # nothing to decode, and never asked for
    missing = [members[index] for index in range(actual) if index not in arrived]
    assert decoded(ReedSolomon(), members, redundant, arrived) == missing
    assert decoded(Counting(), members, redundant, arrived) == missing


@given(blocks(), st.integers(1, 16))
def test_a_redundancy_symbol_does_not_depend_on_how_many_there_are(block: tuple[list[Member], int], more: int) -> None:
    members, redundant = block
    code = ReedSolomon()
    assert code.encode(members, redundant + more)[:redundant] == code.encode(members, redundant)


@given(blocks())
def test_both_codes_make_shards_of_one_length(block: tuple[list[Member], int]) -> None:
    members, redundant = block
    width = SYMBOL_BYTES + max(len(packet) for _, packet in members)
    for code in (ReedSolomon(), Counting()):
        assert [len(shard) for shard in code.encode(members, redundant)] == [width] * redundant


def test_a_whole_field_of_symbols_works() -> None:
    members: list[Member] = [(index, bytes([index]) * 3) for index in range(127)]
    assert decoded(ReedSolomon(), members, 128, set(range(127, 254))) == members


SHARD = bytes(ReedSolomon().encode([(1, b"one"), (2, b"two")], 1)[0])  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("known", "shards", "words"),
    [
        ({}, {2: bytes(9), 3: bytes(10)}, "differ"),
        ({0: (1, bytes(10))}, {2: bytes(9)}, "longer"),
        ({0: (1, b"xxx")}, {2: bytes(255 - octet for octet in SHARD)}, "longer"),
    ],
    ids=["shards of different length", "a member longer than its block", "a rebuilt length that cannot be"],
)
def test_what_cannot_be_is_a_contradiction(known: dict[int, Member], shards: dict[int, Sized], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ReedSolomon().decode(2, known, shards)


def residual(actual: int, redundant: int, loss: float) -> float:
    """Packets of a block lost for good, relative to all packets, by going through all fates of the block's frames."""
    total = 0.0
    for fates in product((False, True), repeat=actual + redundant):
        if sum(fates) > redundant:
            chance = prod(loss if lost else 1 - loss for lost in fates)
            total += chance * sum(fates[:actual])
    return loss * total / actual


@pytest.mark.parametrize("actual", [1, 2, 4])
@pytest.mark.parametrize("loss", [0.02, 0.1, 0.3, 0.5])
@pytest.mark.parametrize("residual_loss", [0.02, 0.1])
def test_redundancy_is_the_least_that_leaves_the_residual_loss(actual: int, loss: float, residual_loss: float) -> None:
    redundant = redundancy_for(actual, loss, residual_loss)
    assert residual(actual, redundant, loss) <= residual_loss
    if redundant:
        assert residual(actual, redundant - 1, loss) > residual_loss


def test_redundancy_is_bounded_by_frame_and_by_block() -> None:
    assert redundancy_for(1, 0.99, 1e-6) == MAX_REDUNDANCY
    assert redundancy_for(3, 1.0, 1e-6) == 3 * MAX_REDUNDANCY
    assert redundancy_for(200, 0.9, 1e-6) == 55
    assert redundancy_for(8, 0.0, 1e-6) == 0
