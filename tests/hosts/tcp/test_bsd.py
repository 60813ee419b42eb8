"""4.4BSD: timers in ticks of 500 ms, delayed ACKs by a clock of 200 ms, and its windows."""

import pytest

from common.units import MS, SECOND
from hosts.tcp.profiles import USER_PROFILES
from tests.hosts.tcp.script import PLAIN, MakeScript, window_of

BSD = USER_PROFILES["bsd"].config.but(mss=1000)
#: with the growth of windows that 4.4BSD has beside
GROWING = BSD.but(extra_increase=True, slow_start_at_ssthresh=True, grow_after_recovery=True)
#: the clocks alone
TICKS = PLAIN.but(tick_ns=500 * MS, initial_rto_ns=6 * SECOND, max_rto_ns=64 * SECOND, initial_window=8)


# -- the slow clock ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase_ms", "set_ms", "expires_ms"), [(0, 100, 1500), (0, 499, 1500), (0, 500, 2000), (130, 100, 1130)]
)
def test_a_timer_of_three_ticks_expires_at_the_third(
    script: MakeScript, phase_ms: int, set_ms: int, expires_ms: int
) -> None:
    # no tick within the handshake: the first sample counts as one, and varies by half of it
    s = script(TICKS.but(clock_phase_ns=phase_ms * MS), rtt_ms=100)
    assert s.rto_ms == 1500
    s.run_to(set_ms)
    s.write(1000, sends=["1:1001"])
    s.expect(expires_ms, "1:1001")


def test_a_round_trip_counts_the_ticks_in_it(script: MakeScript) -> None:
    # SRTT 8/8, variation 2/4 after the handshake
    s = script(TICKS, rtt_ms=100).measure(100, from_ms=600)
    # none: SRTT 7/8, variation 2 + |0 - 1| - 0 = 3/4
    assert s.rto_ms == 1500
    s.measure(200, from_ms=900)
    # one: SRTT 7 + 1 = 8/8, variation 3 + 1 - 0 = 4/4
    assert s.rto_ms == 2500
    s.measure(100, from_ms=1200)
    # none: SRTT 7/8, variation 4 + 1 - 1
    assert s.rto_ms == 2000
    s.measure(10)
    assert s.rto_ms == 1500


def test_one_segment_is_timed_at_a_time(script: MakeScript) -> None:
    s = script(TICKS, rtt_ms=100)
    s.run_to(450)
    s.write(1000)
    s.run_to(510)
    s.write(1000, sends=...)
    # the first took one tick; the second, which took none, is not looked at
    s.inject(520, "ack 1001")
    assert s.rto_ms == (1 + 2) * 500
    s.inject(530, "ack 2001")
    assert s.rto_ms == (1 + 2) * 500


def test_the_syn_waits_six_seconds_and_then_24(script: MakeScript) -> None:
    s = script(BSD, connected=False)
    s.connect(sends=["S 0:0"])
    s.expect(6000, "S 0:0")
    s.expect(30_000, "S 0:0")


def test_backoff_ends_at_the_maximum(script: MakeScript) -> None:
    s = script(TICKS, rtt_ms=100)
    s.write(1000, sends=["1:1001"])
    # three ticks, doubled each time; no more than 64 s
    for at_ms in (1500, 4500, 10_500, 22_500, 46_500, 94_500, 158_500, 222_500):
        s.expect(at_ms, "1:1001")
    # Karn: nothing is timed beside a retransmission, and the backoff stays
    s.inject(222_600, "ack 1001")
    assert s.rto_ms == 64_000


def test_the_timeout_is_two_ticks_at_least(script: MakeScript) -> None:
    # variation 1/4 and SRTT below one tick are what it can come to
    s = script(TICKS.but(min_rto_ns=2 * SECOND), rtt_ms=100)
    assert s.rto_ms == 2000


# -- delayed ACKs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("comes_ms", "leaves_ms"), [(110, 200), (199, 200), (200, 400), (320, 400)])
def test_a_delayed_ack_leaves_at_the_next_tick(script: MakeScript, comes_ms: float, leaves_ms: float) -> None:
    s = script(BSD)
    s.inject(comes_ms, "1:1001")
    s.expect(leaves_ms, "1:1 ack 1001")


def test_every_second_segment_is_acknowledged_at_once(script: MakeScript) -> None:
    s = script(BSD)
    s.inject(110, "1:1001", "1001:2001", "2001:3001", sends=["1:1 ack 2001"])
    s.expect(200, "1:1 ack 3001")


# -- windows -------------------------------------------------------------------------------------------------


def test_a_second_hole_reduces_again(script: MakeScript) -> None:
    # no `recover`: 1 and 3001 are lost
    s = window_of(8, script, GROWING)
    s.inject(200, *["ack 1"] * 6, sends=["1:1001", "8001:9001", "9001:10001"], ssthresh=4000)
    s.inject(300, "ack 3001")
    # ssthresh, and the segment that this ACK is worth
    assert s.cwnd == 5000
    s.inject(310, *["ack 3001"] * 3, sends=["3001:4001"], ssthresh=2000, fast_retransmits=2)


def test_the_lesser_of_both_windows_is_halved_in_whole_segments(script: MakeScript) -> None:
    s = window_of(8, script, GROWING)
    s.inject(150, "ack 1001 win 7500", sends=...)
    s.inject(200, *["ack 1001 win 7500"] * 3, ssthresh=3000)


def test_every_timeout_halves(script: MakeScript) -> None:
    s = window_of(8, script, GROWING)
    s.expect(1500, "1:1001", cwnd=1000, ssthresh=4000)
    s.expect(4500, "1:1001", cwnd=1000, ssthresh=2000)


def test_duplicates_after_a_timeout_begin_a_fast_retransmit(script: MakeScript) -> None:
    s = window_of(8, script, GROWING)
    s.expect(1500, "1:1001")
    s.inject(1600, "ack 1001", sends=["1001:2001", "2001:3001"])
    s.inject(1610, *["ack 1001"] * 3, sends=["1001:2001", "3001:4001", "4001:5001", "5001:6001"], fast_retransmits=1)


def test_a_window_of_ssthresh_is_slow_start_and_beyond_an_eighth_of_a_segment_is_added(script: MakeScript) -> None:
    s = window_of(8, script, GROWING.but(initial_ssthresh=8000))
    s.inject(200, "ack 1001", cwnd=9000)
    s.skip()
    s.inject(210, "ack 2001")
    assert s.cwnd == 9000 + 1000 * 1000 // 9000 + 125


def test_a_retransmission_starts_the_timer_again(script: MakeScript) -> None:
    s = window_of(8, script, GROWING)
    s.run_to(1200)
    s.inject(1200, *["ack 1"] * 3, sends=["1:1001"])
    # the third tick from there
    s.expect(2500, "1:1001")
