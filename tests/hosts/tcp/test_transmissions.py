"""The outstanding segments of a sender, compared with a list of octets."""

from hypothesis import given, settings
from hypothesis import strategies as st

from hosts.tcp.recovery.transmissions import Transmission, Transmissions
from hosts.tcp.scoreboard import Scoreboard

MSS = 10


def sent(*times: int) -> Transmissions:
    """Segments of ten octets from 0 on, sent at these times."""
    made = Transmissions()
    for number, time in enumerate(times):
        made.handle_sent(MSS * number, MSS * (number + 1), False, time)
    return made


def test_what_was_sent_before_a_segment_ends_at_equal_times_with_its_octets() -> None:
    made = sent(1, 2, 2, 2, 3)
    assert [each.start for each in made.sent_before(2, 30)] == [0, 10]


def test_restored_segments_are_in_the_order_of_their_times() -> None:
    made = sent(1, 2, 3)
    for each in made.flying()[:2]:
        made.mark_lost(each)
    made.restore()
    assert [each.start for each in made.flying()] == [0, 10, 20]
    assert made.first_lost() is None


def test_what_nobody_knows_of_is_lost() -> None:
    made, board = sent(1, 2), Scoreboard()
    board.add(30, 40)
    made.find_missing(0, 55, MSS, board, 5)
    assert (made.in_flight, made.lost) == (20, 25)
    first = made.first_lost()
    assert first is not None
    assert (first.start, first.end) == (20, 30)


EDGES = st.integers(0, 60)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), EDGES, st.integers(1, 15)),
        st.tuples(st.just("ack"), EDGES, st.just(0)),
        st.tuples(st.just("block"), EDGES, st.integers(1, 30)),
        st.tuples(st.just("lose"), st.integers(0, 5), st.just(0)),
    ),
    max_size=30,
)


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_octets_are_counted_as_one_by_one(steps: list[tuple[str, int, int]]) -> None:
    made, una = sent(0, 0, 0), 0
    #: by octet: when it was last sent, and whether it is lost
    octets = dict.fromkeys(range(3 * MSS), (0, False))
    for time, (step, where, length) in enumerate(steps, 1):
        arrived: list[Transmission] = []
        if step == "send":
            start, end = max(where, una), max(where, una) + length
            # not what has arrived: a sender does not send that
            if all(number in octets for number in range(start, min(end, max(octets, default=0)))):
                made.handle_sent(start, end, start in octets, time)
                octets |= dict.fromkeys(range(start, end), (time, False))
        elif step == "ack" and where > una:
            una = where
            gone = [number for number in octets if number < una]
            assert made.advance(una, arrived) == len(gone)
            assert arrived == sorted(arrived, key=lambda each: each.start)
            for number in gone:
                del octets[number]
        elif step == "block":
            count = made.handle_block(max(where, una), where + length, arrived)
            gone = [number for each in arrived for number in range(each.start, each.end)]
            assert gone == sorted(gone)
            assert len(gone) == count
            for number in gone:
                assert where <= number < where + length
                del octets[number]
        elif step == "lose" and where < len(made.flying()):
            each = made.flying()[where]
            made.mark_lost(each)
            octets |= {number: (octets[number][0], True) for number in range(each.start, each.end)}
        assert made.lost == sum(lost for _, lost in octets.values())
        assert made.in_flight == len(octets) - made.lost
        times = [each.sent_at for each in made.flying()]
        assert times == sorted(times)
        lowest = made.first_lost()
        assert (None if lowest is None else lowest.start) == min(
            (number for number, (_, lost) in octets.items() if lost), default=None
        )
