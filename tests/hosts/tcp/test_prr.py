"""Proportional rate reduction: RFC 9937 section 6, and what of it is seen from outside."""

from hosts.tcp.recovery.prr import Prr
from tests.hosts.tcp.script import PLAIN, Case, MakeScript, by_script

MSS = 1000


def reduction(ssthresh: int = 5000, flight: int = 10_000) -> Prr:
    prr = Prr()
    prr.begin(ssthresh, flight)
    return prr


def test_a_recovery_begins_with_a_retransmission() -> None:
    prr = reduction()
    # half of 1000 has arrived, which is less than a segment
    assert prr.window(1000, 9000, False, MSS) == 10_000
    prr.handle_sent(1000)
    assert prr.window(1000, 9000, False, MSS) == 9000


def test_above_ssthresh_the_window_falls_in_proportion_to_what_arrives() -> None:
    prr = reduction(ssthresh=7000)
    prr.handle_sent(1000)
    # ceil(delivered * 7 / 10) - out
    assert prr.window(3000, 8000, True, MSS) == 8000 + 2100 - 1000
    assert prr.window(1, 8000, True, MSS) == 8000 + 2101 - 1000


def test_below_ssthresh_as_much_is_sent_as_arrives() -> None:
    # the conservative reduction bound
    prr = reduction()
    prr.handle_sent(3000)
    assert prr.window(1000, 2000, False, MSS) == 3000
    # what has arrived and was not sent for is caught up on
    assert prr.window(4000, 1000, False, MSS) == 5000


def test_an_ack_that_moves_the_window_without_a_further_loss_sends_a_segment_more() -> None:
    # the slow start reduction bound
    prr = reduction()
    prr.handle_sent(3000)
    assert prr.window(1000, 2000, True, MSS) == 4000


def test_the_window_returns_to_ssthresh_and_no_further() -> None:
    prr = reduction()
    prr.handle_sent(1000)
    assert prr.window(9000, 4500, True, MSS) == 5000


@by_script(
    """
    a burst of losses does not stop the sender
        # 1 to 7 are lost: what is in flight is below ssthresh at once, and each ACK sends as much as it tells of
        200 < ack 1 sack 7001:10001 > 1:1001, 1001:2001, 2001:3001 | ssthresh 5000
        300 < ack 1001 sack 7001:10001 > 3001:4001, 4001:5001
        301 < ack 2001 sack 7001:10001 > 5001:6001, 6001:7001
        # ssthresh is reached
        302 < ack 3001 sack 7001:10001 > 10001:11001 | cwnd 5000
    the window after the recovery is ssthresh
        200 < ack 1 sack 1001:4001 > 1:1001
        300 < ack 10001 > ... | cwnd 5000, ssthresh 5000
    """
)
def test_plain(script: MakeScript, case: Case) -> None:
    case.play(script, PLAIN, initial_window=10, nbytes=100_000, peer="mss 1000 sackok", recovery="rack")
