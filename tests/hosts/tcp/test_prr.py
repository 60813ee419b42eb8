"""Proportional rate reduction: RFC 9937 section 6, and what of it is seen from outside."""

import pytest

from hosts.tcp.recovery.prr import Prr
from tests.hosts.tcp.script import PLAIN, Case, MakeScript, by_script

MSS = 1000


#: ssthresh, octets sent since a recovery with 10,000 in flight began; of each ACK: what arrives, what is in flight,
#: whether it moves the window without a further loss, and the window
WINDOWS = {
    # half of 1000 has arrived, which is less than a segment
    "a recovery begins with a retransmission": (5000, 0, [(1000, 9000, False, 10_000)]),
    "and then waits": (5000, 1000, [(1000, 9000, False, 9000), (1000, 9000, False, 9000)]),
    # ceil(delivered * 7 / 10) - out
    "above ssthresh it falls in proportion": (7000, 1000, [(3000, 8000, True, 9100), (1, 8000, True, 9101)]),
    # the conservative reduction bound, and what has arrived and was not sent for
    "below it as much is sent as arrives": (5000, 3000, [(1000, 2000, False, 3000), (4000, 1000, False, 5000)]),
    # the slow start reduction bound
    "and a segment more without a further loss": (5000, 3000, [(1000, 2000, True, 4000)]),
    "it returns to ssthresh and no further": (5000, 1000, [(9000, 4500, True, 5000)]),
}


@pytest.mark.parametrize(("ssthresh", "sent", "acks"), WINDOWS.values(), ids=WINDOWS)
def test_window(ssthresh: int, sent: int, acks: list[tuple[int, int, bool, int]]) -> None:
    prr = Prr()
    prr.begin(ssthresh, 10_000)
    prr.handle_sent(sent)
    for delivered, in_flight, moves, window in acks:
        assert prr.window(delivered, in_flight, moves, MSS) == window


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
