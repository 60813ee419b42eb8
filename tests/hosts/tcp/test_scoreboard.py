"""The scoreboard against RFC 6675 section 4, octet by octet."""

from hypothesis import given
from hypothesis import strategies as st

from hosts.tcp.scoreboard import DUP_THRESH, Scoreboard

UNA, END = 100, 160
_RANGES = st.lists(st.tuples(st.integers(UNA, END - 1), st.integers(1, 15)), max_size=8)


def marked(ranges: list[tuple[int, int]]) -> tuple[Scoreboard, set[int]]:
    """A scoreboard, and the octets it should hold."""
    board, octets = Scoreboard(), set[int]()
    for start, length in ranges:
        end = min(start + length, END)
        fresh = set(range(start, end)) - octets
        assert board.add(start, end) == len(fresh)
        octets |= fresh
    return board, octets


def is_lost(octets: set[int], seq: int, smss: int) -> bool:
    """IsLost: three separate ranges, or more than two segments' octets, above `seq`."""
    above = sorted(octet for octet in octets if octet > seq)
    ranges = sum(octet - 1 not in octets or octet - 1 <= seq for octet in above)
    return ranges >= DUP_THRESH or len(above) > (DUP_THRESH - 1) * smss


@given(_RANGES)
def test_what_is_marked(ranges: list[tuple[int, int]]) -> None:
    board, octets = marked(ranges)
    assert board.sacked == len(octets)
    assert {octet for start, end in board.ranges for octet in range(start, end)} == octets
    assert all(before[1] < after[0] for before, after in zip(board.ranges, board.ranges[1:], strict=False))
    for seq in range(UNA - 1, END + 1):
        assert board.covers(seq) is (seq in octets)
        assert board.sacked_below(seq) == sum(octet < seq for octet in octets)


@given(_RANGES, st.integers(UNA, END))
def test_what_is_acknowledged_is_forgotten(ranges: list[tuple[int, int]], una: int) -> None:
    board, octets = marked(ranges)
    board.advance(una)
    assert {octet for start, end in board.ranges for octet in range(start, end)} == {o for o in octets if o >= una}
    assert board.sacked == sum(octet >= una for octet in octets)


@given(_RANGES, st.integers(1, 12))
def test_what_is_lost(ranges: list[tuple[int, int]], smss: int) -> None:
    board, octets = marked(ranges)
    limit = board.lost_below(smss)
    for seq in set(range(UNA, END)) - octets:
        assert (seq < limit) is is_lost(octets, seq, smss)


@given(_RANGES, st.integers(1, 12), st.integers(UNA, END))
def test_the_pipe(ranges: list[tuple[int, int]], smss: int, high_rxt: int) -> None:
    # SetPipe: (a) what is not lost, (b) what was sent again
    board, octets = marked(ranges)
    pipe = 0
    for seq in set(range(UNA, END)) - octets:
        pipe += not is_lost(octets, seq, smss)
        pipe += seq < high_rxt
    assert board.pipe(UNA, END, high_rxt, smss) == pipe


@given(_RANGES, st.integers(UNA, END), st.integers(UNA, END))
def test_the_next_hole(ranges: list[tuple[int, int]], seq: int, end: int) -> None:
    board, octets = marked(ranges)
    missing = [octet for octet in range(seq, end) if octet not in octets]
    hole = board.hole(seq, end)
    if not missing:
        assert hole is None
    else:
        assert hole is not None
        assert hole[0] == missing[0]
        assert octets.isdisjoint(range(*hole))
        assert hole[1] == end or hole[1] in octets
