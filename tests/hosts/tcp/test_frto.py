"""RFC 5682: spurious timeouts, found without SACK (section 2.1) and with it (section 3.1)."""

import pytest

from tests.hosts.tcp.script import PLAIN, MakeScript, Script

BASIC = PLAIN.but(initial_window=6, frto=True)
SACK = BASIC.but(recovery="sack")
BOTH = pytest.mark.parametrize("peer", ["mss 1000", "mss 1000 sackok"], ids=["basic", "sack"])


def timed_out(make: MakeScript, peer: str = "mss 1000", nbytes: int = 50_000) -> Script:
    """Six segments, 1:6001, left at 100 ms; the timer expires at 1100."""
    s = make(SACK, peer=peer)
    s.write(nbytes)
    assert len(s.skip()) == min(6, nbytes // 1000)
    s.expect(1100, "1:1001", cwnd=1000, ssthresh=3000)
    return s


@BOTH
def test_a_delay_is_found_out(script: MakeScript, peer: str) -> None:
    s = timed_out(script, peer)
    # step 2b: new data, not what is outstanding
    s.inject(1200, "ack 1001", sends=["6001:7001", "7001:8001"])
    # step 3b: acknowledged without having been sent again
    s.inject(1210, "ack 2001", spurious_timeouts=1)
    s.expect(1210)
    # half the window, and on in congestion avoidance; 2001:8001 is more than that
    assert (s.cwnd, s.ssthresh) == (3000, 3000)
    s.inject(1220, "ack 3001", "ack 4001", "ack 5001", sends=[])
    s.inject(1230, "ack 6001", sends=["8001:9001", "9001:10001"], retransmits=1)


@BOTH
def test_a_loss_is_a_loss(script: MakeScript, peer: str) -> None:
    # step 3a: the new segments' duplicates
    s = timed_out(script, peer)
    s.inject(1200, "ack 1001", sends=["6001:7001", "7001:8001"])
    s.inject(1300, "ack 1001" + " sack 6001:7001" * ("sackok" in peer), sends=["1001:2001", "2001:3001", "3001:4001"])
    assert s.cwnd == 3000
    assert s.connection.counters.spurious_timeouts == 0


@BOTH
def test_everything_acknowledged_proves_nothing(script: MakeScript, peer: str) -> None:
    # step 2a: only the first segment was lost, or all of it was late
    s = timed_out(script, peer)
    s.inject(1200, "ack 6001", sends=["6001:7001", "7001:8001"], cwnd=2000, spurious_timeouts=0)


def test_basic_a_duplicate_first_means_a_loss(script: MakeScript) -> None:
    # step 2a
    s = timed_out(script)
    s.inject(1200, "ack 1", sends=[])
    s.inject(1210, "ack 1001", sends=["1001:2001", "2001:3001"])


def test_with_sack_duplicates_are_waited_out(script: MakeScript) -> None:
    # section 3.1, step 2: they fill the scoreboard
    s = timed_out(script, "mss 1000 sackok")
    s.inject(1200, "ack 1 sack 2001:3001", sends=[])
    s.inject(1210, "ack 1001 sack 2001:3001", sends=["6001:7001", "7001:8001"])
    # step 3b: 3001:4001 was not sent again, and is there
    s.inject(1220, "ack 1001 sack 2001:4001", spurious_timeouts=1)


def test_with_sack_what_lies_beyond_decides(script: MakeScript) -> None:
    # section 3.1, step 3a, before 3b: new data has overtaken what was outstanding
    s = timed_out(script, "mss 1000 sackok")
    s.inject(1200, "ack 1001", sends=["6001:7001", "7001:8001"])
    s.inject(1300, "ack 1001 sack 6001:7001 2001:3001", spurious_timeouts=0)
    s.expect(1300, "1001:2001", "3001:4001", "4001:5001")


def test_with_sack_an_ack_beyond_is_no_proof(script: MakeScript) -> None:
    s = timed_out(script, "mss 1000 sackok")
    s.inject(1200, "ack 1001", sends=["6001:7001", "7001:8001"])
    s.inject(1300, "ack 7001", spurious_timeouts=0)
    assert s.cwnd == 3000
    # 7001:8001 left after the timeout
    s.expect(1300, "8001:9001", "9001:10001")


@BOTH
def test_without_new_data_recovery_is_conventional(script: MakeScript, peer: str) -> None:
    s = timed_out(script, peer, nbytes=6000)
    s.inject(1200, "ack 1001", sends=["1001:2001", "2001:3001"])


@BOTH
def test_a_second_timeout_in_a_row_is_watched_as_well(script: MakeScript, peer: str) -> None:
    # step 2: `recover` moves only with an acknowledgement, so that step 1 begins anew until one comes
    s = timed_out(script, peer)
    s.expect(3100, "1:1001")
    s.inject(3200, "ack 1001", sends=["6001:7001", "7001:8001"])
    s.inject(3210, "ack 2001", spurious_timeouts=1)


@BOTH
def test_a_timeout_during_conventional_recovery_is_not_watched(script: MakeScript, peer: str) -> None:
    # step 1
    s = timed_out(script, peer, nbytes=20_000)
    s.inject(1200, "ack 1001", sends=...)
    s.inject(1300, "ack 1001" + " sack 6001:7001" * ("sackok" in peer), sends=...)
    at = s.connection.next_deadline()
    assert at is not None
    s.expect(at / 1e6, "1001:2001")
    s.inject(at / 1e6 + 100, "ack 2001", sends=["2001:3001", ...])


def test_a_timeout_during_fast_recovery_is_not_watched(script: MakeScript) -> None:
    # section 3.1, step 1: RecoveryPoint has not been reached
    s = script(SACK, peer="mss 1000 sackok")
    s.write(20_000, sends=...)
    s.inject(200, "ack 1 sack 1001:4001", sends=["1:1001"])
    s.run_to(1099)
    s.skip()
    s.expect(1100, "1:1001")
    s.inject(1200, "ack 4001", sends=["4001:5001", "5001:6001"], spurious_timeouts=0)


@BOTH
def test_after_a_spurious_timeout_a_loss_is_found_as_ever(script: MakeScript, peer: str) -> None:
    s = script(SACK.but(initial_window=12), peer=peer)
    s.write(50_000, sends=...)
    s.expect(1100, "1:1001")
    s.inject(1200, "ack 1001", sends=["12001:13001", "13001:14001"])
    s.inject(1210, "ack 12001", sends=["14001:15001", "15001:16001", "16001:17001", "17001:18001"])
    s.inject(1220, "ack 13001", sends=["18001:19001"])
    for end in (15_001, 16_001, 17_001):
        s.inject(1300, "ack 13001" + f" sack 14001:{end}" * ("sackok" in peer))
    s.expect(1300, "13001:14001", fast_retransmits=1)


@BOTH
def test_the_duplicates_of_needless_retransmissions_are_no_losses(script: MakeScript, peer: str) -> None:
    # section 2.1, step 2, and RFC 6582: `recover` is what had been sent by then
    s = timed_out(script, peer)
    for at_ms in (3100, 7100):
        s.expect(at_ms, "1:1001")
    for ack in (1001, 2001, 3001, 4001, 5001, 6001):
        s.inject(7200, f"ack {ack}", sends=...)
    assert s.connection.counters.spurious_timeouts == 1
    s.inject(7210, "ack 6001", "ack 6001", "ack 6001", sends=[], fast_retransmits=0)
