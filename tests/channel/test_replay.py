"""Replay of a trace: the outcome that belongs to the frame, or to the instant."""

from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from channel.errors import ERASED, INTACT, Fate, Verdict
from channel.replay import HEADER_BYTES, Outcome, Trace, TraceError, TraceReplay

OK, PAYLOAD, MISSED = Outcome.OK, Outcome.PAYLOAD, Outcome.MISSED
HIT = Verdict(Fate.DAMAGED, (8 * HEADER_BYTES,))


def make_trace(times: list[int], outcomes: list[Outcome]) -> Trace:
    return Trace(time_ns=times, nbytes=[100] * len(times), outcome=outcomes)


def replay_of(trace: Trace, by: Literal["index", "time"] = "index", loop: bool = True) -> TraceReplay:
    return TraceReplay(trace, by, loop)


@given(st.lists(st.sampled_from([OK, PAYLOAD, MISSED]), min_size=1, max_size=30), st.integers(1, 100))
def test_by_index_the_nth_frame_gets_the_nth_outcome(outcomes: list[Outcome], frames: int) -> None:
    replay = replay_of(make_trace(list(range(len(outcomes))), outcomes))
    expected = {OK: INTACT, PAYLOAD: HIT, MISSED: ERASED}
    got = [replay.judge(7 * n, 7 * n + 1, 1000) for n in range(frames)]
    assert got == [expected[outcomes[n % len(outcomes)]] for n in range(frames)]


def test_by_time_the_latest_row_is_in_force() -> None:
    trace = make_trace([1_000, 1_010, 1_010, 1_030], [OK, OK, MISSED, PAYLOAD])
    replay = replay_of(trace, by="time")
    # The first frame meets the first row; the trace lasts 30 and, for its last row, a mean distance of 10.
    got = [replay.judge(at, at + 1, 1000) for at in (500, 509, 510, 529, 530, 539, 540, 549, 550, 590)]
    assert got == [INTACT, INTACT, ERASED, ERASED, HIT, HIT, INTACT, INTACT, ERASED, ERASED]


def test_a_used_up_trace_is_an_error() -> None:
    trace = make_trace([0, 10], [OK, MISSED])
    replay = replay_of(trace, loop=False)
    assert [replay.judge(n, n, 100) for n in range(2)] == [INTACT, ERASED]
    with pytest.raises(TraceError, match="used up"):
        replay.judge(2, 2, 100)
    replay = replay_of(trace, by="time", loop=False)
    assert [replay.judge(at, at, 100) for at in (5, 15, 24)] == [INTACT, ERASED, ERASED]
    with pytest.raises(TraceError, match="used up"):
        replay.judge(25, 25, 100)


@given(st.integers(1, 2000))
@example(HEADER_BYTES)
@example(HEADER_BYTES + 1)
def test_payload_damage_spares_the_header(nbytes: int) -> None:
    verdict = replay_of(make_trace([0], [PAYLOAD])).judge(0, 1, nbytes)
    (bit,) = verdict.bit_errors
    assert verdict.fate is Fate.DAMAGED
    assert 0 <= bit < 8 * nbytes
    assert bit >= 8 * HEADER_BYTES or nbytes <= HEADER_BYTES


@pytest.mark.parametrize("by", ["index", "time"])
def test_unknown_outcomes_are_left_out(by: Literal["index", "time"]) -> None:
    unknown = Outcome.UNKNOWN
    whole = make_trace([0, 10, 20, 30, 40, 50], [unknown, OK, unknown, unknown, MISSED, unknown])
    bare = make_trace([10, 40], [OK, MISSED])
    ours, theirs = replay_of(whole, by=by), replay_of(bare, by=by)
    for start in range(0, 200, 7):
        assert ours.judge(start, start + 5, 100) == theirs.judge(start, start + 5, 100)
    with pytest.raises(TraceError, match="no rows"):
        replay_of(make_trace([5], [unknown]))


def test_traces_that_make_no_sense() -> None:
    with pytest.raises(TraceError, match="no rows"):
        replay_of(make_trace([], []))
    with pytest.raises(TraceError, match="no duration"):
        replay_of(make_trace([5, 5], [OK, OK]), by="time")
    with pytest.raises(TraceError, match="time_ns goes back"):
        make_trace([5, 4], [OK, OK])
    with pytest.raises(TraceError, match="outcome has 1 rows; time_ns has 2"):
        Trace(time_ns=[1, 2], nbytes=[1, 1], outcome=[OK])
