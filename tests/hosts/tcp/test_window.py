"""The sender and small segments: Nagle (RFC 896), silly windows, zero windows (RFC 9293 section 3.8.6)."""

import pytest

from common.units import MS
from tcpip.segment import PSH
from tests.hosts.tcp.script import PLAIN, Case, MakeScript, by_script


@by_script(
    """
    a small segment waits while data is on its way and a full one does not
        write 100 > 1:101
        write 100
        write 200
        150 > nothing
        write 900 > 101:1101
        200 < ack 1101 > 1101:1301
    nor does the last
        write 100 > ...
        write 100
        close > F 101:201
    without nagle everything leaves at once [nagle=False]
        write 100 > 1:101
        write 100 > 101:201
    the congestion window makes no small segments [initial_window=4, initial_ssthresh=4000]
        write 50000 > 1:1001, 1001:2001, 2001:3001, 3001:4001
        # 4250 octets may be on their way
        200 < ack 1001 > 4001:5001
    a window smaller than a segment is filled when the persist timer expires [window=8000]
        # section 3.8.6.2.1: less than a segment, less than half of the largest window
        write 3000 > ...
        200 < ack 3001 win 400
        write 5000 > nothing
        1200 > 3001:3401
        1300 < ack 3401 win 400 > nothing
        # a segment's is filled at once
        1400 < ack 3401 win 1000 > 3401:4401
    a window that takes all that is left is filled at once [window=8000]
        write 3000 > ...
        200 < ack 3001 win 0
        write 100 > nothing
        300 < ack 3001 win 150 > 3001:3101
        # the persist timer has ended, and the other one runs
        1300 > 3001:3101 | timeouts 1, zero_window_probes 0
    a window of a few octets waits for the persist timer [window=8000]
        write 3000 > ...
        200 < ack 3001 win 0
        write 100 > nothing
        1200 > 3001:3002
        1300 < ack 3001 win 20 > nothing
        3200 > 3001:3021
    half of the largest window is enough [window=1200]
        write 5000 > 1:1001
        200 < ack 1001 win 600 > 1001:1601
    a window that shrinks is obeyed [window=3000]
        # section 3.8.6: it should not, but a sender must be prepared
        write 10000 > 1:1001, 1001:2001, 2001:3001
        200 < ack 1001 win 1000 > nothing
        300 < ack 3001 win 1000 > 3001:4001
    an opened window goes on [window=1000]
        write 3000 > 1:1001
        200 < ack 1001 win 0
        500 < ack 1001 win 4000 > 1001:2001, 2001:3001
        600 < ack 3001 win 4000 | drained, next_deadline none
    a window that shrinks to nothing is probed [window=3000]
        # section 3.8.6: what it does not take any more is not sent again
        write 5000 > 1:1001, 1001:2001, 2001:3001
        200 < ack 1001 win 0
        # the timer of 1001:2001, doubled by its expiry at 1200
        3200 > 1001:1002
        3300 < ack 1001 win 3000 > 1001:2001
        3400 < ack 3001 > 3001:4001, 4001:5001
    a zero window is probed with backoff [window=2000, max_rto_ns=5_000_000_000]
        # section 3.8.6.1: first after an RTO, then ever more slowly
        write 5000 > 1:1001, 1001:2001
        200 < ack 2001 win 0 > nothing
        1200 > 2001:2002
        1300 < ack 2001 win 0
        3200 > 2001:2002
        3300 < ack 2001 win 0
        # duplicates of probes are no losses
        7200 12200 17200 > 2001:2002 | zero_window_probes 5, timeouts 0, fast_retransmits 0, ssthresh none
    the fin is sent into a zero window as a probe [window=1000]
        write 1000 > 1:1001
        200 < ack 1001 win 0
        close
        1200 > F 1001:1001
        1300 < ack 1001 win 0
        3200 > F 1001:1001
        3300 < ack 1002 win 0 | state FIN-WAIT-2
    an idle connection does not probe [window=1000]
        write 1000 > 1:1001
        200 < ack 1001 win 0 | next_deadline none
        write 1000
        1200 > 1001:1002
    """
)
def test_small_segments_and_windows(script: MakeScript, case: Case) -> None:
    case.play(script, PLAIN)


def test_the_last_octets_that_are_buffered_are_pushed(script: MakeScript) -> None:
    # RFC 9293 section 3.9.1.2
    connection = script(PLAIN.but(initial_window=4, nagle=False)).connection
    for nbytes, pushed in ((2500, [False, False, True]), (1000, [True])):
        connection.write(nbytes)
        segments = iter(lambda: connection.poll_segment(100 * MS), None)
        assert [bool(segment.flags & PSH) for segment in segments] == pushed


@pytest.mark.parametrize(("older", "taken"), [("1:1 ack 1001 win 9000", False), ("1001:1001 ack 1001 win 9000", True)])
def test_an_older_segment_does_not_set_the_window(script: MakeScript, older: str, taken: bool) -> None:
    # section 3.10.7.4: SND.WL1, SND.WL2
    s = script(PLAIN.but(initial_window=10), window=2000)
    s.write(20_000, sends=...)
    s.inject(200, "1:1001 ack 1001 win 2000", sends=...)
    s.inject(210, older)
    assert (len(s.skip()) > 1) is taken


@pytest.mark.parametrize("ack", [1001, 1002])
def test_the_answer_to_a_probe_opens_the_window_whether_its_octet_is_taken_or_not(script: MakeScript, ack: int) -> None:
    s = script(PLAIN, window=1000)
    s.write(3000, sends=["1:1001"])
    s.inject(200, "ack 1001 win 0")
    s.expect(1200, "1001:1002")
    s.inject(1300, f"ack {ack} win 5000", sends=[f"{ack}:{ack + 1000}", ...])
    s.inject(1400, f"ack {ack + 1000}", sends=...)
    s.inject(1500, "ack 3001")
    assert s.connection.drained


@pytest.mark.parametrize("window", [100, 250, 499])
def test_a_peer_with_a_tiny_window_is_served(script: MakeScript, window: int) -> None:
    s = script(PLAIN, window=window)
    s.write(1000)
    right = 1
    at_ms = 100.0
    for _ in range(50):
        if s.connection.drained:
            break
        came = s.skip()
        assert came
        right = int(came[-1].split()[0].partition(":")[2])
        at_ms += 100
        s.inject(at_ms, f"ack {right}")
    assert s.connection.drained
