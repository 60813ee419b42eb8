"""Loss recovery without SACK: RFC 5681 section 3.2 (Reno), RFC 6582 (NewReno), RFC 3042 (limited transmit)."""

import pytest

from hosts.tcp.config import TcpConfig
from tests.hosts.tcp.script import PLAIN, Case, MakeScript, by_script, window_of

NEWRENO = PLAIN.but(initial_window=8)
RENO = NEWRENO.but(recovery="reno")
BOTH = pytest.mark.parametrize("config", [RENO, NEWRENO], ids=["reno", "newreno"])


@BOTH
@by_script(
    """
    the third duplicate retransmits and each further one inflates
        200 < ack 1, ack 1 > nothing
        # half the flight, and three segments that have left
        200 < ack 1 > 1:1001 | cwnd 7000, ssthresh 4000, fast_retransmits 1
        200 < ack 1 > nothing | cwnd 8000
        200 < ack 1 > 8001:9001
        200 < ack 1, ack 1 > 9001:10001, 10001:11001
        # everything sent before the loss was found is acknowledged
        300 < ack 8001 > 11001:12001 | cwnd 4000, ssthresh 4000
        # congestion avoidance from there
        310 < ack 9001 > 12001:13001 | cwnd 4250
    two duplicates are reordering
        200 < ack 1, ack 1
        210 < ack 3001 > 8001:9001, 9001:10001, 10001:11001, 11001:12001
        220 < ack 3001, ack 3001 > nothing | ssthresh none
    with nothing on its way there are no duplicates [nbytes=0]
        200 < ack 1, ack 1, ack 1, ack 1 > nothing | dupacks 0
    a timeout halves the flight without limited transmit [limited_transmit=True]
        # RFC 5681 section 3.1, equation 4, and section 3.2, step 2
        200 < ack 1, ack 1 > 8001:9001, 9001:10001
        1100 > 1:1001 | cwnd 1000, ssthresh 4000
    limited transmit ends with a new ack [limited_transmit=True]
        200 < ack 1, ack 1 > 8001:9001, 9001:10001
        # the window grows to nine; nine are out
        210 < ack 1001 > nothing
        220 < ack 2001 > 10001:11001, 11001:12001
    after a timeout limited transmit sends nothing [limited_transmit=True]
        # RFC 3042 is about new data; what is sent again waits for the acknowledgement
        1100 > 1:1001
        1150 < ack 1, ack 1, ack 1 > nothing
        1200 < ack 1001 > 1001:2001, 2001:3001
    an ack with another window is no duplicate
        # section 2: the same number and the same window, no data
        200 < ack 1, ack 1
        210 < ack 1 win 60000 > ... | ssthresh none, dupacks 2
    data is no duplicate
        200 < ack 1, ack 1
        210 < 1:101 ack 1 > ... | ssthresh none, dupacks 2
    an older ack is no duplicate
        200 < ack 1, ack 1
        210 < ack 0 > ... | ssthresh none, dupacks 2
    """
)
def test_reno_and_newreno_alike(script: MakeScript, config: TcpConfig, case: Case) -> None:
    case.play(script, config, nbytes=100_000)


@by_script(
    """
    newreno sends the next hole at each partial ack
        # section 3.2, step 3: 1, 3 and 5 are lost
        200 < ack 1 x5 > 1:1001, 8001:9001 | cwnd 9000
        300 < ack 2001
        # 2000 octets less, one segment more: room for one new segment
        300 > 2001:3001, 9001:10001 | cwnd 8000
        310 < ack 2001 > 10001:11001
        400 < ack 4001 > 4001:5001, 11001:12001 | fast_retransmits 1
        500 < ack 11001 > 12001:13001 | cwnd 2000, ssthresh 4000
    newreno deflates by what is acknowledged [nbytes=8000]
        # a partial ACK of less than a segment adds none
        200 < ack 1 x3 > 1:1001
        300 < ack 501 > 501:1501 | cwnd 6500
    newreno ends without a burst [nbytes=8000]
        # section 3.2, step 3, full acknowledgment, (1): min(ssthresh, max(FlightSize, SMSS) + SMSS)
        200 < ack 1 x7 > 1:1001
        300 < ack 8001 | cwnd 2000
    beyond it there is [nbytes=20_000]
        1100 > 1:1001
        1200 < ack 1001 > ...
        1300 < ack 8001 > 8001:9001, 9001:10001, 10001:11001
        1310 < ack 9001 > ...
        1400 < ack 9001, ack 9001, ack 9001 > 9001:10001, ... | fast_retransmits 1
    a timeout in recovery does not raise the threshold
        # RFC 5681 section 3.1: no more than equation 4 gives; FlightSize counts what has arrived, too
        200 < ack 1 x15 > 1:1001, ... | flight 19000, ssthresh 4000
        1100 > 1:1001 | cwnd 1000, ssthresh 4000
        # and it ends recovery
        1200 < ack 1001 > 1001:2001, 2001:3001 | cwnd 2000
    reno leaves recovery at the first new ack [recovery='reno', nbytes=8000]
        # 1 and 3 are lost: the second has to wait for the timer
        200 < ack 1 x6 > 1:1001
        300 < ack 2001 > nothing | cwnd 4000
        1300 > 2001:3001 | timeouts 1
    limited transmit heeds the peers window [limited_transmit=True, window=8000]
        200 < ack 1, ack 1 > nothing
    """
)
def test_newreno(script: MakeScript, case: Case) -> None:
    case.play(script, NEWRENO, nbytes=100_000)


@pytest.mark.parametrize(("impatient", "expires_ms"), [(True, 1900), (False, 2600)])
def test_the_first_partial_ack_restarts_the_timer_and_each_one_if_it_is_patient(
    script: MakeScript, impatient: bool, expires_ms: float
) -> None:
    # section 4: to an impatient timer a window of losses is its own, in the end
    s = window_of(8, script, NEWRENO.but(impatient=impatient), nbytes=8000)
    s.inject(200, *["ack 1"] * 3, sends=["1:1001"])
    s.inject(900, "ack 1001", sends=["1001:2001"])
    s.inject(1600, "ack 2001", sends=["2001:3001"])
    s.expect(expires_ms, "2001:3001", timeouts=1)


@pytest.mark.parametrize("recovery", ["reno", "newreno", "sack"])
@pytest.mark.parametrize(("careful", "expires_ms"), [(False, 1100), (True, 1900)])
def test_what_is_sent_again_restarts_a_careful_timer(
    script: MakeScript, recovery: str, careful: bool, expires_ms: float
) -> None:
    # RFC 6675 section 6: in recovery the timer may wait for the retransmission, not only for acknowledgements
    config = NEWRENO.but(recovery=recovery, careful_timer=careful)
    s = script(config, peer="mss 1000 sackok")
    s.write(8000, sends=...)
    for count in (2, 3, 4):
        s.inject(900, "ack 1" + f" sack 1001:{1000 * count + 1}" * (recovery == "sack"))
    s.expect(900, "1:1001")
    s.expect(expires_ms, "1:1001", timeouts=1)


@pytest.mark.parametrize("recovery", ["reno", "newreno", "sack"])
def test_no_second_fast_retransmit_for_one_window(script: MakeScript, recovery: str) -> None:
    # section 3.2, step 1, RFC 6675 section 5.1: dupacks below `recover` are of what a timeout has sent needlessly
    s = window_of(8, script, NEWRENO.but(recovery=recovery), nbytes=20_000)
    s.expect(1100, "1:1001")
    s.inject(1200, "ack 1001", sends=...)
    s.inject(1210, *["ack 1001 sack 3001:7001"] * 4, sends=..., fast_retransmits=0)
    assert s.ssthresh == 4000


@pytest.mark.parametrize(("recovery", "cwnd"), [("reno", 7000), ("newreno", 7000), ("sack", 4000)])
def test_limited_transmit(script: MakeScript, recovery: str, cwnd: int) -> None:
    # RFC 3042, RFC 6675 section 5, step 3: one new segment for each of the first two duplicates, the window as it was
    s = window_of(8, script, NEWRENO.but(recovery=recovery, limited_transmit=True))
    first, second, third = ("ack 1" + f" sack 1001:{n}001" * (recovery == "sack") for n in (2, 3, 4))
    s.inject(200, first, sends=["8001:9001"])
    s.inject(210, second, sends=["9001:10001"], cwnd=8000)
    # what limited transmit has sent is not counted (RFC 5681 section 3.2, step 2)
    s.inject(220, third, sends=["1:1001"], cwnd=cwnd, ssthresh=4000)
