"""Selective acknowledgements: RFC 2018 (receiver), RFC 6675 (sender)."""

from functools import partial

import pytest

from tests.hosts.tcp.script import PLAIN, MakeScript, window_of

SACK = PLAIN.but(recovery="sack")
window_of_10 = partial(window_of, 10)


# -- the receiver: RFC 2018 -------------------------------------------------------------------


def test_blocks_are_listed_latest_first(script: MakeScript) -> None:
    # RFC 2018 section 4
    s = script(SACK, peer="mss 1000 sackok")
    s.inject(200, "1001:2001", sends=["ack 1 sack 1001:2001"])
    s.inject(210, "3001:4001", sends=["ack 1 sack 3001:4001 1001:2001"])
    s.inject(220, "5001:6001", sends=["ack 1 sack 5001:6001 3001:4001 1001:2001"])
    s.inject(230, "7001:8001", sends=["ack 1 sack 7001:8001 5001:6001 3001:4001 1001:2001"])
    # four fit, the oldest goes
    s.inject(240, "9001:10001", sends=["ack 1 sack 9001:10001 7001:8001 5001:6001 3001:4001"])
    # one that grows is the latest
    s.inject(250, "4001:5001", sends=["ack 1 sack 3001:6001 9001:10001 7001:8001 1001:2001"])
    s.inject(260, "1:1001", sends=["ack 2001 sack 3001:6001 9001:10001 7001:8001"])
    s.inject(270, "2001:3001", sends=["ack 6001 sack 9001:10001 7001:8001"])


def test_with_timestamps_three_fit(script: MakeScript) -> None:
    s = script(SACK.but(timestamps=True), peer="mss 1012 sackok ts 1/0")
    for number, left in enumerate((1001, 3001, 5001)):
        s.inject(200, f"{left}:{left + 1000} ts {2 + number}/100", sends=...)
    s.inject(200, "7001:8001 ts 5/100", sends=["ack 1 sack 7001:8001 5001:6001 3001:4001"])


# -- the sender: RFC 6675 ----------------------------------------------------------------------------------------------


def test_one_loss(script: MakeScript) -> None:
    # section 5: what is sent follows from pipe, octet by octet
    s = window_of_10(script, SACK)
    s.inject(200, "ack 1 sack 1001:2001", "ack 1 sack 1001:3001", sends=[])
    s.inject(200, "ack 1 sack 1001:4001", sends=["1:1001"], cwnd=5000, ssthresh=5000, fast_retransmits=1)
    # pipe: the retransmission and 4001:10001 make 7000
    s.inject(201, "ack 1 sack 1001:5001", "ack 1 sack 1001:6001", sends=[])
    s.inject(202, "ack 1 sack 1001:7001", sends=["10001:11001"])
    s.inject(203, "ack 1 sack 1001:9001", sends=["11001:12001", "12001:13001"])
    s.inject(204, "ack 1 sack 1001:10001", sends=["13001:14001"])
    # beyond RecoveryPoint
    s.inject(300, "ack 10001", sends=["14001:15001"], cwnd=5000)


def test_one_ack_can_tell_of_a_loss(script: MakeScript) -> None:
    # section 4, IsLost: more than two segments above are held, where ACKs were lost
    s = window_of_10(script, SACK)
    s.inject(200, "ack 1 sack 1001:3001", sends=[])
    s.inject(210, "ack 1 sack 1001:4001", sends=["1:1001"])
    once = window_of_10(script, SACK)
    once.inject(200, "ack 1 sack 1001:4001", sends=["1:1001"])


def test_holes_are_filled_from_below(script: MakeScript) -> None:
    # NextSeg rule 1; 1, 3 and 5 are lost
    s = window_of_10(script, SACK)
    s.inject(200, "ack 1 sack 1001:2001", "ack 1 sack 3001:4001 1001:2001", sends=[])
    s.inject(200, "ack 1 sack 5001:6001 3001:4001 1001:2001", sends=["1:1001"])
    # lost: 2001:3001 (two segments above it are held, not more than two): not yet
    s.inject(201, "ack 1 sack 5001:7001 3001:4001 1001:2001")
    # lost 2001:3001 now; pipe: 1:1001 again, 4001:5001, 7001:10001
    s.expect(201)
    s.inject(202, "ack 1 sack 5001:8001 3001:4001 1001:2001")
    # lost 4001:5001, too; pipe: 1:1001 again and 8001:10001
    s.expect(202, "2001:3001", "4001:5001")
    s.inject(203, "ack 1 sack 5001:9001 3001:4001 1001:2001", sends=["10001:11001"])
    s.inject(300, "ack 2001 sack 5001:10001 3001:4001", sends=["11001:12001", "12001:13001"])


def test_a_partial_ack_goes_on_with_recovery(script: MakeScript) -> None:
    s = window_of_10(script, SACK, nbytes=10_000)
    s.inject(200, "ack 1 sack 2001:5001", sends=["1:1001"])
    s.inject(201, "ack 1 sack 2001:8001")
    # pipe: 1:1001 again, 8001:10001; the second is the rescue
    s.expect(201, "1001:2001", "9001:10001")
    s.inject(300, "ack 1001 sack 2001:8001", sends=[])
    s.inject(310, "ack 10001", cwnd=5000, ssthresh=5000, fast_retransmits=1)


def test_without_new_data_what_may_be_lost_is_sent(script: MakeScript) -> None:
    # NextSeg rule 3: below HighData and not held, though not known to be lost
    s = window_of_10(script, SACK, nbytes=10_000)
    s.inject(200, "ack 1 sack 1001:4001", sends=["1:1001"])
    # 8001:9001 is not lost: only one segment above it is held
    s.inject(210, "ack 1 sack 9001:10001 1001:8001", sends=["8001:9001"])


def test_the_rescue_retransmission(script: MakeScript) -> None:
    # NextSeg rule 4: the end of the window was lost, too, and nothing above it can be held
    s = window_of_10(script, SACK, nbytes=10_000)
    s.inject(200, "ack 1 sack 1001:4001", sends=["1:1001"])
    s.inject(210, "ack 1 sack 1001:8001", sends=["9001:10001"])
    # once per entry
    s.inject(220, "ack 1 sack 1001:8001", sends=[])
    s.inject(300, "ack 8001", sends=[])
    # it has told what else is missing
    s.inject(310, "ack 8001 sack 9001:10001", sends=["8001:9001"])


def test_a_duplicate_must_tell_something_new(script: MakeScript) -> None:
    # section 2: DupAcks counts ACKs with SACK information that was not there
    s = window_of_10(script, SACK)
    s.inject(200, *["ack 1 sack 1001:2001"] * 4, sends=[])
    s.inject(210, *["ack 1"] * 4, sends=[])
    assert s.ssthresh is None


def test_a_window_update_with_sack_is_a_duplicate(script: MakeScript) -> None:
    s = window_of_10(script, SACK)
    s.inject(200, "ack 1 sack 1001:2001 win 60000", "ack 1 sack 1001:3001 win 50000", "ack 1 sack 1001:4001 win 40000")
    s.expect(200, "1:1001")


def test_a_timeout_during_recovery(script: MakeScript) -> None:
    # section 5.1: what the receiver holds is not sent again
    s = window_of_10(script, SACK, nbytes=10_000)
    s.inject(200, "ack 1 sack 1001:4001", sends=["1:1001"])
    s.inject(201, "ack 1 sack 5001:7001 1001:4001")
    s.expect(1100, "1:1001", cwnd=1000)
    s.inject(1200, "ack 4001 sack 5001:7001", sends=["4001:5001", "7001:8001"])
    s.inject(1300, "ack 7001", sends=...)
    s.inject(1400, "ack 10001")
    assert s.connection.drained


@pytest.mark.parametrize("edges", ["20001:21001", "10001:11001", "3001:2001", "2001:2001"])
def test_blocks_of_what_was_never_sent_say_nothing(script: MakeScript, edges: str) -> None:
    s = window_of_10(script, SACK, nbytes=10_000)
    s.inject(200, *[f"ack 1 sack {edges}"] * 5, sends=[])
    assert s.ssthresh is None


def test_a_receiver_that_reneges_is_sent_everything_again(script: MakeScript) -> None:
    # RFC 2018 section 8: at a timeout what was only selectively acknowledged may be gone
    s = script(SACK.but(initial_window=4), peer="mss 1000 sackok")
    s.write(4000, sends=...)
    s.inject(200, "ack 1 sack 1001:4001", sends=["1:1001"])
    # the hole is filled, what was behind it is forgotten
    s.inject(300, "ack 1001")
    s.expect(1300, "1001:2001")
    s.inject(1400, "ack 2001", sends=["2001:3001", "3001:4001"])
