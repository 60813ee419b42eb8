"""Tail loss probes (RFC 8985 section 7), one test for each rule."""

from tests.hosts.tcp.script import PLAIN, Case, MakeScript, by_script

RACK = PLAIN.but(recovery="rack")


@by_script(
    """
    two round trips without an ack send new data [initial_window=10]
        # 7.2 and 7.3: beyond the congestion window, which stays
        300 > 10001:11001 | cwnd 10000, retransmits 0, timeouts 0, tail_probes 1
        # 7.3: then the retransmission timer, anew
        1300 > 1:1001 | timeouts 1
    without new data the last segment is sent again [nbytes=10_000, initial_window=10]
        300 > 9001:10001 | cwnd 10000, retransmits 1, timeouts 0
    without room in the peers window the last segment is sent again [window=4000, initial_window=10]
        300 > 3001:4001
    the ack of a single segment may be delayed [nbytes=1000, initial_window=1]
        # 7.2: 200 ms more
        500 > 1:1001 | timeouts 0
    a round trip below the clocks resolution does not probe at once [rtt_ms=0, nbytes=0]
        write 4000 > ...
        10 > 3001:4001
    every ack of new data starts the timer again [nbytes=4000]
        290 < ack 1001 > nothing
        # SRTT is 111.25 ms
        512.5 > 3001:4001
    one probe is outstanding at most [nbytes=4000]
        # 7.3: until it is acknowledged there is no PTO
        300 > 3001:4001
        310 < ack 2001 > nothing
        1310 > 2001:3001 | timeouts 1
    a probe turns a lost tail into a fast recovery [nbytes=4000]
        # section 3.3
        200 < ack 2001 > nothing
        400 > 3001:4001
        500 < ack 2001 sack 3001:4001 > 2001:3001 | fast_retransmits 1, timeouts 0
        600 < ack 4001 > nothing
    no probe is sent while sack blocks wait [initial_window=10]
        # 7.2: RACK's timer is at work
        200 < ack 1 sack 1001:2001 > nothing
        225 > 1:1001 | tail_probes 0
    a d sack of the probe says that nothing was lost [nbytes=3000, initial_window=3]
        200 < ack 2001 > nothing
        600 > 2001:3001
        610 < ack 3001 > nothing
        700 < ack 3001 sack 2001:3001 > nothing
        write 1000 > 3001:4001
        800 < ack 4001 > nothing | ssthresh none
    a plain duplicate of the probe says that nothing was lost [nbytes=3000, initial_window=3]
        # from a receiver without D-SACK
        200 < ack 2001 > nothing
        600 > 2001:3001
        610 < ack 3001 > nothing
        700 < ack 3001 > nothing
        write 1000 > 3001:4001
        800 < ack 4001 > nothing | ssthresh none
    a loss that a probe has repaired reduces the window [nbytes=3000, initial_window=3]
        200 < ack 2001 > nothing | cwnd 4000
        600 > 2001:3001
        700 < ack 3001 > nothing | cwnd 4000
        write 1000 > 3001:4001
        # beyond the probe, and no D-SACK has come
        800 < ack 4001 > nothing | ssthresh 2000
    new data as a probe repairs nothing [initial_window=2]
        300 > 2001:3001
        310 < ack 3001 > ...
        420 < ack 5001 > ... | ssthresh none
    """
)
def test_probes(script: MakeScript, case: Case) -> None:
    case.play(script, RACK, initial_window=4, nbytes=100_000, peer="mss 1000 sackok")


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
