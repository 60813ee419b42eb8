"""RFC 5682: spurious timeouts, found without SACK (section 2.1) and with it (section 3.1)."""

import pytest

from tests.hosts.tcp.script import PLAIN, Case, MakeScript, by_script

BASIC = PLAIN.but(initial_window=6, frto=True)
SACK = BASIC.but(recovery="sack")
BOTH = pytest.mark.parametrize("peer", ["mss 1000", "mss 1000 sackok"], ids=["basic", "sack"])


@BOTH
@by_script(
    """
    a delay is found out
        1100 > 1:1001 | cwnd 1000, ssthresh 3000
        # step 2b: new data, not what is outstanding
        1200 < ack 1001 > 6001:7001, 7001:8001
        # step 3b: acknowledged without having been sent again
        1210 < ack 2001 | spurious_timeouts 1
        # half the window, and on in congestion avoidance; 2001:8001 is more than that
        1210 > nothing | cwnd 3000, ssthresh 3000
        1220 < ack 3001, ack 4001, ack 5001 > nothing
        1230 < ack 6001 > 8001:9001, 9001:10001 | retransmits 1
    a loss is a loss
        # step 3a: the new segments' duplicates
        1100 > 1:1001 | cwnd 1000, ssthresh 3000
        1200 < ack 1001 > 6001:7001, 7001:8001
        1300 < ack 1001 sack 6001:7001 > 1001:2001, 2001:3001, 3001:4001 | cwnd 3000, spurious_timeouts 0
    everything acknowledged proves nothing
        # step 2a: only the first segment was lost, or all of it was late
        1100 > 1:1001 | cwnd 1000, ssthresh 3000
        1200 < ack 6001 > 6001:7001, 7001:8001 | cwnd 2000, spurious_timeouts 0
    without new data recovery is conventional [nbytes=6000]
        1100 > 1:1001 | cwnd 1000, ssthresh 3000
        1200 < ack 1001 > 1001:2001, 2001:3001
    and where the peers window has no room for it
        # section 2.1, step 2
        1100 > 1:1001
        1200 < ack 1001 win 5999 > 1001:2001, 2001:3001
    one new segment is enough
        1100 > 1:1001
        1200 < ack 1001 win 6000 > 6001:7001
        1210 < ack 2001 win 5000 | spurious_timeouts 1
    a second timeout in a row is watched as well
        # step 2: `recover` moves only with an acknowledgement, so that step 1 begins anew until one comes
        1100 > 1:1001 | cwnd 1000, ssthresh 3000
        3100 > 1:1001
        3200 < ack 1001 > 6001:7001, 7001:8001
        3210 < ack 2001 | spurious_timeouts 1
    a timeout soon after a spurious one is watched as well
        1100 > 1:1001 | cwnd 1000, ssthresh 3000
        1200 < ack 1001 > 6001:7001, 7001:8001
        1210 < ack 2001 | spurious_timeouts 1
        2596.25 > 2001:3001 | cwnd 1000, ssthresh 3000
        2700 < ack 3001 > 8001:9001, 9001:10001
        2710 < ack 4001 | spurious_timeouts 2
    the duplicates of needless retransmissions are no losses
        # section 2.1, step 2, and RFC 6582: `recover` is what had been sent by then
        1100 > 1:1001 | cwnd 1000, ssthresh 3000
        3100 7100 > 1:1001
        7200 < ack 1001, ack 2001, ack 3001, ack 4001, ack 5001, ack 6001 > ... | spurious_timeouts 1
        7210 < ack 6001, ack 6001, ack 6001 > nothing | fast_retransmits 0
    after a spurious timeout a loss is found as ever [initial_window=12]
        1100 > 1:1001
        1200 < ack 1001 > 12001:13001, 13001:14001
        1210 < ack 12001 > 14001:15001, 15001:16001, 16001:17001, 17001:18001
        1220 < ack 13001 > 18001:19001
        1300 < ack 13001 sack 14001:15001, ack 13001 sack 14001:16001, ack 13001 sack 14001:17001
            > 13001:14001 | fast_retransmits 1
    """
)
def test_with_and_without_sack(script: MakeScript, peer: str, case: Case) -> None:
    case.play(script, SACK, nbytes=50_000, peer=peer)


@by_script(
    """
    with sack duplicates are waited out
        # section 3.1, step 2: they fill the scoreboard
        1100 > 1:1001 | cwnd 1000, ssthresh 3000
        1200 < ack 1 sack 2001:3001 > nothing
        1210 < ack 1001 sack 2001:3001 > 6001:7001, 7001:8001
        # step 3b: 3001:4001 was not sent again, and is there
        1220 < ack 1001 sack 2001:4001 | spurious_timeouts 1
    with sack what lies beyond decides
        # section 3.1, step 3a, before 3b: new data has overtaken what was outstanding
        1100 > 1:1001 | cwnd 1000, ssthresh 3000
        1200 < ack 1001 > 6001:7001, 7001:8001
        1300 < ack 1001 sack 6001:7001 2001:3001 | spurious_timeouts 0
        1300 > 1001:2001, 3001:4001, 4001:5001
    with sack an ack beyond is no proof
        1100 > 1:1001 | cwnd 1000, ssthresh 3000
        1200 < ack 1001 > 6001:7001, 7001:8001
        1300 < ack 7001 | spurious_timeouts 0, cwnd 3000
        # 7001:8001 left after the timeout
        1300 > 8001:9001, 9001:10001
    a timeout during fast recovery is not watched [nbytes=0]
        # section 3.1, step 1: RecoveryPoint has not been reached
        write 20000 > ...
        200 < ack 1 sack 1001:4001 > 1:1001
        1099
        skip
        1100 > 1:1001
        1200 < ack 4001 > 4001:5001, 5001:6001 | spurious_timeouts 0
    without sack a duplicate first means a loss [peer='mss 1000']
        # section 2.1, step 2a
        1100 > 1:1001
        1200 < ack 1 > nothing
        1210 < ack 1001 > 1001:2001, 2001:3001
    """
)
def test_with_sack(script: MakeScript, case: Case) -> None:
    case.play(script, SACK, nbytes=50_000, peer="mss 1000 sackok")


@BOTH
def test_a_timeout_during_conventional_recovery_is_not_watched(script: MakeScript, peer: str) -> None:
    # step 1
    s = script(SACK, peer=peer)
    s.write(20_000, sends=...)
    s.expect(1100, "1:1001")
    s.inject(1200, "ack 1001", sends=...)
    s.inject(1300, "ack 1001" + " sack 6001:7001" * ("sackok" in peer), sends=...)
    at = s.connection.next_deadline()
    assert at is not None
    s.expect(at / 1e6, "1001:2001")
    s.inject(at / 1e6 + 100, "ack 2001", sends=["2001:3001", ...])
