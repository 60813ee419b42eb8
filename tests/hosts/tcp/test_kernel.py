"""The userspace TCP beside Linux's on the same path with the same losses: what agrees, and what is known to differ."""

import pytest

from benchmarks.kernel_cwnd import PATTERNS, SACK, SEGMENTS, Trace, run_kernel, run_ours
from tests.hosts.harness import needs_network

pytestmark = [*needs_network, pytest.mark.light]

#: where both need no timeout
AGREEING = ("one", "two, apart", "three in a window", "burst of 6")
#: longer than this may look like a loss
STALL_S = 0.1


@pytest.fixture(params=SACK)
def sack(request: pytest.FixtureRequest) -> bool:
    return SACK[request.param]


def punctual(sack: bool, pattern: str) -> Trace:
    """Linux's transfer, on a machine that had time for it: a forwarder that stalls is a path of another kind."""
    for _ in range(5):
        trace = run_kernel(sack, PATTERNS[pattern])
        if max(trace.late_s, default=0) < STALL_S:
            return trace
    raise AssertionError(f"the forwarder was late by {STALL_S} s or more in each of five runs: the machine is too busy")


def same_time(linux: Trace, ours: Trace, within: float = 0.05) -> bool:
    """Whether the transfers took the same time, but for what the machine was late."""
    return ours.duration_s * (1 - within) <= linux.duration_s <= ours.duration_s * (1 + within) + sum(linux.late_s)


@pytest.mark.parametrize("pattern", AGREEING)
def test_both_find_the_same_losses_and_cut_their_windows_alike(pattern: str, sack: bool) -> None:
    linux, ours = punctual(sack, pattern), run_ours(sack, PATTERNS[pattern])
    assert linux.retransmissions == ours.retransmissions == PATTERNS[pattern].losses
    assert len(linux.reductions) == len(ours.reductions)
    for theirs, mine in zip(linux.reductions, ours.reductions, strict=True):
        assert not theirs.timeout
        assert not mine.timeout
        assert abs(theirs.cwnd - mine.cwnd) <= 2
        assert abs(theirs.ssthresh - mine.ssthresh) <= 1
    assert same_time(linux, ours)


def test_with_sack_both_send_again_just_what_was_lost() -> None:
    linux, ours = punctual(True, "2 % at random"), run_ours(True, PATTERNS["2 % at random"])
    assert linux.retransmissions == ours.retransmissions == PATTERNS["2 % at random"].losses
    # half segments, which Linux has not, may put two losses into one window or into two
    assert abs(len(linux.reductions) - len(ours.reductions)) <= 2
    assert same_time(linux, ours, within=0.15)


def test_a_retransmission_that_is_lost_takes_a_timeout_without_sack() -> None:
    linux, ours = punctual(False, "retransmission too"), run_ours(False, PATTERNS["retransmission too"])
    assert linux.retransmissions == ours.retransmissions == {60: 2}
    for trace in (linux, ours):
        assert [cut.timeout for cut in trace.reductions] == [False, True]
        # already reduced for this window
        assert trace.reductions[0].ssthresh == trace.reductions[1].ssthresh
    # slow start counts octets in Linux, without RFC 3465's bound on an ACK that acknowledges a whole window
    assert linux.duration_s - sum(linux.late_s) < ours.duration_s


@pytest.mark.parametrize("pattern", ["held for 1 s", "held for 4 s"])
def test_both_find_a_timeout_spurious(pattern: str) -> None:
    linux, ours = punctual(True, pattern), run_ours(True, PATTERNS[pattern])
    # the one that is held, once per timeout
    assert linux.retransmissions == ours.retransmissions
    assert [*ours.retransmissions] == [PATTERNS[pattern].held]
    assert [cut.timeout for cut in linux.reductions] == [cut.timeout for cut in ours.reductions] == [True]
    # Linux takes the cut back, ours goes on from half
    assert linux.windows[-1][2] is None
    assert ours.windows[-1][2] == ours.reductions[0].ssthresh
    assert same_time(linux, ours)


def test_the_last_segment_takes_a_timeout(sack: bool) -> None:
    linux, ours = punctual(sack, "last"), run_ours(sack, PATTERNS["last"])
    assert linux.retransmissions == ours.retransmissions == {SEGMENTS: 1}
    assert [cut.timeout for cut in linux.reductions] == [cut.timeout for cut in ours.reductions] == [True]
    # Linux halves its window, RFC 5681 what is in flight
    assert linux.reductions[0].ssthresh == linux.reductions[0].cwnd // 2
    assert ours.reductions[0].ssthresh == 2
    assert same_time(linux, ours)
