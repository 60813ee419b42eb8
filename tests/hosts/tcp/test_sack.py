"""Selective acknowledgements: RFC 2018 (receiver), RFC 6675 (sender)."""

import pytest

from tests.hosts.tcp.script import PLAIN, Case, MakeScript, by_script, window_of

SACK = PLAIN.but(recovery="sack")


@by_script(
    """
    blocks are listed latest first [nbytes=0]
        # RFC 2018 section 4
        200 < 1001:2001 > ack 1 sack 1001:2001
        210 < 3001:4001 > ack 1 sack 3001:4001 1001:2001
        220 < 5001:6001 > ack 1 sack 5001:6001 3001:4001 1001:2001
        230 < 7001:8001 > ack 1 sack 7001:8001 5001:6001 3001:4001 1001:2001
        # four fit, the oldest goes
        240 < 9001:10001 > ack 1 sack 9001:10001 7001:8001 5001:6001 3001:4001
        # one that grows is the latest
        250 < 4001:5001 > ack 1 sack 3001:6001 9001:10001 7001:8001 1001:2001
        260 < 1:1001 > ack 2001 sack 3001:6001 9001:10001 7001:8001
        270 < 2001:3001 > ack 6001 sack 9001:10001 7001:8001
    one loss
        # section 5: what is sent follows from pipe, octet by octet
        200 < ack 1 sack 1001:2001, ack 1 sack 1001:3001 > nothing
        200 < ack 1 sack 1001:4001 > 1:1001 | cwnd 5000, ssthresh 5000, fast_retransmits 1
        # pipe: the retransmission and 4001:10001 make 7000
        201 < ack 1 sack 1001:5001, ack 1 sack 1001:6001 > nothing
        202 < ack 1 sack 1001:7001 > 10001:11001
        203 < ack 1 sack 1001:9001 > 11001:12001, 12001:13001
        204 < ack 1 sack 1001:10001 > 13001:14001
        # beyond RecoveryPoint
        300 < ack 10001 > 14001:15001 | cwnd 5000
    holes are filled from below
        # NextSeg rule 1; 1, 3 and 5 are lost
        200 < ack 1 sack 1001:2001, ack 1 sack 3001:4001 1001:2001 > nothing
        200 < ack 1 sack 5001:6001 3001:4001 1001:2001 > 1:1001
        # lost: 2001:3001 (two segments above it are held, not more than two): not yet
        201 < ack 1 sack 5001:7001 3001:4001 1001:2001
        # lost 2001:3001 now; pipe: 1:1001 again, 4001:5001, 7001:10001
        201 > nothing
        202 < ack 1 sack 5001:8001 3001:4001 1001:2001
        # lost 4001:5001, too; pipe: 1:1001 again and 8001:10001
        202 > 2001:3001, 4001:5001
        203 < ack 1 sack 5001:9001 3001:4001 1001:2001 > 10001:11001
        300 < ack 2001 sack 5001:10001 3001:4001 > 11001:12001, 12001:13001
    a partial ack goes on with recovery [nbytes=10_000]
        200 < ack 1 sack 2001:5001 > 1:1001
        201 < ack 1 sack 2001:8001
        # pipe: 1:1001 again, 8001:10001; the second is the rescue
        201 > 1001:2001, 9001:10001
        300 < ack 1001 sack 2001:8001 > nothing
        310 < ack 10001 | cwnd 5000, ssthresh 5000, fast_retransmits 1
    without new data what may be lost is sent [nbytes=10_000]
        # NextSeg rule 3: below HighData and not held, though not known to be lost
        200 < ack 1 sack 1001:4001 > 1:1001
        # 8001:9001 is not lost: only one segment above it is held
        210 < ack 1 sack 9001:10001 1001:8001 > 8001:9001
    the rescue retransmission [nbytes=10_000]
        # NextSeg rule 4: the end of the window was lost, too, and nothing above it can be held
        200 < ack 1 sack 1001:4001 > 1:1001
        210 < ack 1 sack 1001:8001 > 9001:10001
        # once per entry
        220 < ack 1 sack 1001:8001 > nothing
        300 < ack 8001 > nothing
        # it has told what else is missing
        310 < ack 8001 sack 9001:10001 > 8001:9001
    a duplicate must tell something new
        # section 2: DupAcks counts ACKs with SACK information that was not there
        200 < ack 1 sack 1001:2001 x4 > nothing
        210 < ack 1 x4 > nothing | ssthresh none
    a window update with sack is a duplicate
        200 < ack 1 sack 1001:2001 win 60000, ack 1 sack 1001:3001 win 50000, ack 1 sack 1001:4001 win 40000
        200 > 1:1001
    a timeout during recovery [nbytes=10_000]
        # section 5.1: what the receiver holds is not sent again
        200 < ack 1 sack 1001:4001 > 1:1001
        201 < ack 1 sack 5001:7001 1001:4001
        1100 > 1:1001 | cwnd 1000
        1200 < ack 4001 sack 5001:7001 > 4001:5001, 7001:8001
        1300 < ack 7001 > ...
        1400 < ack 10001 | drained
    a receiver that reneges is sent everything again [initial_window=4, nbytes=0]
        # RFC 2018 section 8: at a timeout what was only selectively acknowledged may be gone
        write 4000 > ...
        200 < ack 1 sack 1001:4001 > 1:1001
        # the hole is filled, what was behind it is forgotten
        300 < ack 1001
        1300 > 1001:2001
        1400 < ack 2001 > 2001:3001, 3001:4001
    with timestamps three blocks fit [timestamps=True, peer='mss 1012 sackok ts 1/0', nbytes=0]
        200 < 1001:2001 ts 2/100, 3001:4001 ts 3/100, 5001:6001 ts 4/100 > ...
        200 < 7001:8001 ts 5/100 > ack 1 sack 7001:8001 5001:6001 3001:4001
    the second ack can tell of a loss
        200 < ack 1 sack 1001:3001 > nothing
        210 < ack 1 sack 1001:4001 > 1:1001
    one ack can tell of a loss
        # section 4, IsLost: more than two segments above are held, where ACKs were lost
        200 < ack 1 sack 1001:4001 > 1:1001
    """
)
def test_sack(script: MakeScript, case: Case) -> None:
    case.play(script, SACK, initial_window=10, nbytes=100_000, peer="mss 1000 sackok")


@pytest.mark.parametrize("recovery", ["sack", "rack"])
@pytest.mark.parametrize("edges", ["20001:21001", "10001:11001", "3001:11001", "3001:2001", "2001:2001"])
def test_blocks_of_what_was_never_sent_say_nothing(script: MakeScript, edges: str, recovery: str) -> None:
    s = window_of(10, script, SACK.but(recovery=recovery), nbytes=10_000)
    s.inject(200, *[f"ack 1 sack {edges}"] * 5, sends=[])
    assert s.ssthresh is None
