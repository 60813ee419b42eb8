"""4.4BSD: timers in ticks of 500 ms, delayed ACKs by a clock of 200 ms, and its windows."""

import pytest

from common.units import MS, SECOND
from hosts.tcp.profiles import USER_PROFILES
from tests.hosts.tcp.script import PLAIN, Case, MakeScript, by_script

BSD = USER_PROFILES["bsd"].config.but(mss=1000)
#: with the growth of windows that 4.4BSD has beside
GROWING = BSD.but(extra_increase=True, slow_start_at_ssthresh=True, grow_after_recovery=True)
#: the clocks alone
TICKS = PLAIN.but(tick_ns=500 * MS, initial_rto_ns=6 * SECOND, max_rto_ns=64 * SECOND, initial_window=8)


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


@by_script(
    """
    a round trip counts the ticks in it
        # SRTT 8/8, variation 2/4 after the handshake
        # none: SRTT 7/8, variation 2 + |0 - 1| - 0 = 3/4
        600
        measure 100 | rto_ms 1500
        # one: SRTT 7 + 1 = 8/8, variation 3 + 1 - 0 = 4/4
        900
        measure 200 | rto_ms 2500
        # none: SRTT 7/8, variation 4 + 1 - 1
        1200
        measure 100 | rto_ms 2000
        measure 10 | rto_ms 1500
    one segment is timed at a time
        450
        write 1000
        510
        write 1000 > ...
        # the first took one tick; the second, which took none, is not looked at
        520 < ack 1001 | rto_ms 1500
        530 < ack 2001 | rto_ms 1500
    backoff ends at the maximum
        write 1000 > 1:1001
        # three ticks, doubled each time; no more than 64 s
        1500 4500 10500 22500 46500 94500 158500 222500 > 1:1001
        # Karn: nothing is timed beside a retransmission, and the backoff stays
        222600 < ack 1001 | rto_ms 64000
    the timeout is two ticks at least [min_rto_ns=2_000_000_000]
        # variation 1/4 and SRTT below one tick are what it can come to
        skip | rto_ms 2000
    """
)
def test_the_slow_clock(script: MakeScript, case: Case) -> None:
    case.play(script, TICKS, rtt_ms=100)


@by_script(
    """
    the syn waits six seconds and then 24 [connected=False]
        connect > S 0:0
        6000 > S 0:0
        30000 > S 0:0
    every second segment is acknowledged at once
        110 < 1:1001, 1001:2001, 2001:3001 > 1:1 ack 2001
        200 > 1:1 ack 3001
    """
)
def test_delayed_acks(script: MakeScript, case: Case) -> None:
    case.play(script, BSD)


@pytest.mark.parametrize(("comes_ms", "leaves_ms"), [(110, 200), (199, 200), (200, 400), (320, 400)])
def test_a_delayed_ack_leaves_at_the_next_tick(script: MakeScript, comes_ms: float, leaves_ms: float) -> None:
    s = script(BSD)
    s.inject(comes_ms, "1:1001")
    s.expect(leaves_ms, "1:1 ack 1001")


@by_script(
    """
    a second hole reduces again
        # no `recover`: 1 and 3001 are lost
        200 < ack 1 x6 > 1:1001, 8001:9001, 9001:10001 | ssthresh 4000
        # ssthresh, and the segment that this ACK is worth
        300 < ack 3001 | cwnd 5000
        310 < ack 3001 x3 > 3001:4001 | ssthresh 2000, fast_retransmits 2
    the lesser of both windows is halved in whole segments
        150 < ack 1001 win 7500 > ...
        200 < ack 1001 win 7500 x3 | ssthresh 3000
    every timeout halves
        1500 > 1:1001 | cwnd 1000, ssthresh 4000
        4500 > 1:1001 | cwnd 1000, ssthresh 2000
    duplicates after a timeout begin a fast retransmit
        1500 > 1:1001
        1600 < ack 1001 > 1001:2001, 2001:3001
        1610 < ack 1001 x3 > 1001:2001, 3001:4001, 4001:5001, 5001:6001 | fast_retransmits 1
    a window of ssthresh is slow start and beyond an eighth of a segment is added [initial_ssthresh=8000]
        200 < ack 1001 | cwnd 9000
        skip
        210 < ack 2001 | cwnd 9236
    a retransmission starts the timer again
        1200
        1200 < ack 1 x3 > 1:1001
        # the third tick from there
        2500 > 1:1001
    """
)
def test_the_window(script: MakeScript, case: Case) -> None:
    case.play(script, GROWING, initial_window=8, nbytes=100_000, peer="mss 1000 sackok")
