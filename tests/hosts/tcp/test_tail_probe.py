"""Tail loss probes (RFC 8985 section 7), one test for each rule."""

from tests.hosts.tcp.script import PLAIN, MakeScript, Script, window_of

RACK = PLAIN.but(recovery="rack")


def test_two_round_trips_without_an_ack_send_new_data(script: MakeScript) -> None:
    # 7.2 and 7.3: beyond the congestion window, which stays
    s = window_of(10, script, RACK)
    s.expect(300, "10001:11001", cwnd=10_000, retransmits=0, timeouts=0)
    assert s.connection.counters.tail_probes == 1
    # 7.3: then the retransmission timer, anew
    s.expect(1300, "1:1001", timeouts=1)


def test_without_new_data_the_last_segment_is_sent_again(script: MakeScript) -> None:
    s = window_of(10, script, RACK, nbytes=10_000)
    s.expect(300, "9001:10001", cwnd=10_000, retransmits=1, timeouts=0)


def test_without_room_in_the_peers_window_the_last_segment_is_sent_again(script: MakeScript) -> None:
    s = script(RACK.but(initial_window=10), peer="mss 1000 sackok", window=4000)
    s.write(100_000)
    assert len(s.skip()) == 4
    s.expect(300, "3001:4001")


def test_the_ack_of_a_single_segment_may_be_delayed(script: MakeScript) -> None:
    # 7.2: 200 ms more
    s = window_of(1, script, RACK, nbytes=1000)
    s.expect(500, "1:1001", timeouts=0)


def test_a_round_trip_below_the_clocks_resolution_does_not_probe_at_once(script: MakeScript) -> None:
    s = script(RACK.but(initial_window=4), peer="mss 1000 sackok", rtt_ms=0)
    s.write(4000, sends=...)
    s.expect(10, "3001:4001")


def test_every_ack_of_new_data_starts_the_timer_again(script: MakeScript) -> None:
    s = window_of(4, script, RACK, nbytes=4000)
    s.inject(290, "ack 1001", sends=[])
    # SRTT is 111.25 ms
    s.expect(290 + 222.5, "3001:4001")


def test_the_probe_takes_the_place_of_a_timeout_that_comes_first(script: MakeScript) -> None:
    # 7.2: PTO = min(PTO, RTO); 7 samples of 700 ms make an RTO that is less than two round trips
    s = script(RACK.but(min_rto_ns=200_000_000), peer="mss 1000 sackok", rtt_ms=700)
    at = 700
    for number in range(6):
        s.write(1000, sends=[f"{1000 * number + 1}:{1000 * number + 1001}"])
        at += 700
        s.inject(at, f"ack {1000 * number + 1001}", sends=[])
    assert s.rto_ms < 1400
    s.write(2000, sends=...)
    s.expect(at + s.rto_ms, "7001:8001", timeouts=0)
    assert s.connection.counters.tail_probes == 1


def test_one_probe_is_outstanding_at_most(script: MakeScript) -> None:
    # 7.3: until it is acknowledged there is no PTO
    s = window_of(4, script, RACK, nbytes=4000)
    s.expect(300, "3001:4001")
    s.inject(310, "ack 2001", sends=[])
    s.expect(1310, "2001:3001", timeouts=1)


def test_a_probe_turns_a_lost_tail_into_a_fast_recovery(script: MakeScript) -> None:
    # section 3.3
    s = window_of(4, script, RACK, nbytes=4000)
    s.inject(200, "ack 2001", sends=[])
    s.expect(400, "3001:4001")
    s.inject(500, "ack 2001 sack 3001:4001", sends=["2001:3001"], fast_retransmits=1, timeouts=0)
    s.inject(600, "ack 4001", sends=[])


def test_no_probe_is_sent_while_sack_blocks_wait(script: MakeScript) -> None:
    # 7.2: RACK's timer is at work
    s = window_of(10, script, RACK)
    s.inject(200, "ack 1 sack 1001:2001", sends=[])
    s.expect(225, "1:1001")
    assert s.connection.counters.tail_probes == 0


# -- 7.4: was the segment lost that a probe has sent again? ----------------------------------------------------------


def probed(make: MakeScript) -> Script:
    """1:2001 is acknowledged, 2001:3001 was sent again at 600 ms by a probe; cwnd is 5000."""
    s = window_of(3, make, RACK, nbytes=3000)
    s.inject(200, "ack 2001", sends=[])
    s.expect(610, "2001:3001") if s.connection.srtt_ns != 100_000_000 else s.expect(600, "2001:3001")
    return s


def test_a_loss_that_a_probe_has_repaired_reduces_the_window(script: MakeScript) -> None:
    s = probed(script)
    before = s.cwnd
    s.inject(700, "ack 3001", sends=[])
    assert s.cwnd >= before
    s.write(1000, sends=["3001:4001"])
    # beyond the probe, and no D-SACK has come
    s.inject(800, "ack 4001", sends=[], ssthresh=2000)


def test_a_d_sack_of_the_probe_says_that_nothing_was_lost(script: MakeScript) -> None:
    s = probed(script)
    s.inject(610, "ack 3001", sends=[])
    s.inject(700, "ack 3001 sack 2001:3001", sends=[])
    s.write(1000, sends=["3001:4001"])
    s.inject(800, "ack 4001", sends=[])
    assert s.ssthresh is None


def test_a_plain_duplicate_of_the_probe_says_that_nothing_was_lost(script: MakeScript) -> None:
    # from a receiver without D-SACK
    s = probed(script)
    s.inject(610, "ack 3001", sends=[])
    s.inject(700, "ack 3001", sends=[])
    s.write(1000, sends=["3001:4001"])
    s.inject(800, "ack 4001", sends=[])
    assert s.ssthresh is None


def test_new_data_as_a_probe_repairs_nothing(script: MakeScript) -> None:
    s = window_of(2, script, RACK)
    s.expect(300, "2001:3001")
    s.inject(310, "ack 3001", sends=...)
    s.inject(420, "ack 5001", sends=...)
    assert s.ssthresh is None
