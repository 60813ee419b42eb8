"""RFC 5681: slow start, congestion avoidance, loss window, restart after idle; RFC 3390 and 6928 for IW."""

import pytest

from hosts.tcp.shared import Shared
from tcpip.segment import Flow
from tests.hosts.tcp.growing import SMSS, grown, sender_of
from tests.hosts.tcp.script import PLAIN, Case, MakeScript, by_script


@pytest.mark.parametrize("segments", [1, 3, 4, 10])
def test_the_initial_window(script: MakeScript, segments: int) -> None:
    s = script(PLAIN.but(initial_window=segments))
    s.write(50_000, sends=[*(f"{1 + 1000 * i}:{1001 + 1000 * i}" for i in range(segments))])


@by_script(
    """
    slow start adds a segment per ack
        write 50000 > 1:1001, 1001:2001, 2001:3001
        200 < ack 1001 > 3001:4001, 4001:5001 | cwnd 4000
        # an ACK of two segments adds no more than one
        210 < ack 3001 > 5001:6001, 6001:7001, 7001:8001 | cwnd 5000
    counting bytes adds two segments at most [byte_counting=True, initial_window=4]
        # RFC 3465 section 2.2, L = 2
        write 50000 > ...
        200 < ack 2001 > ... | cwnd 6000
        210 < ack 7001 | cwnd 8000
    the threshold divides the two [initial_window=3, initial_ssthresh=4000]
        write 50000 > ...
        200 < ack 1001 > ... | cwnd 4000
        200 < ack 2001 > ... | cwnd 4250
    a window that was not filled does not grow [initial_window=10]
        write 1000 > ...
        200 < ack 1001 | cwnd 10000
    after a timeout what was lost is sent again in slow start [initial_window=8]
        write 8000 > ...
        1100 > 1:1001
        1200 < ack 1001 > 1001:2001, 2001:3001
        1300 < ack 2001 > 3001:4001, 4001:5001
        1300 < ack 3001 > 5001:6001, 6001:7001 | cwnd 4000
    what the receiver held is not sent again [initial_window=4]
        # an ACK that jumps over what came out of order
        write 6000 > ...
        1100 > 1:1001
        1200 < ack 4001 > 4001:5001, 5001:6001
    the mss of the peer counts [peer='mss 536', initial_window=2]
        # RFC 9293 section 3.7.1
        write 5000 > 1:537, 537:1073 | cwnd 1072
    the mss is 536 if the peer says none [peer='', initial_window=2]
        write 5000 > 1:537, 537:1073 | cwnd 1072
    """
)
def test_the_window(script: MakeScript, case: Case) -> None:
    case.play(script, PLAIN)


@pytest.mark.parametrize("byte_counting", [False, True])
def test_congestion_avoidance_adds_one_segment_per_round_trip(script: MakeScript, byte_counting: bool) -> None:
    config = PLAIN.but(initial_window=10, initial_ssthresh=10_000, byte_counting=byte_counting)
    s = script(config)
    s.write(100_000, sends=...)
    for segment in range(10):
        s.inject(200, f"ack {1001 + 1000 * segment}", sends=...)
    assert 10_900 < s.cwnd <= 11_000


def test_congestion_avoidance_adds_an_octet_at_least() -> None:
    # RFC 5681 section 3.1, equation 3: 0 is rounded up
    growth = grown("standard", sender_of(segments=10))
    growth.start(SMSS * SMSS + 1, 0)
    growth.handle_ack(SMSS, 0)
    assert growth.cwnd == SMSS * SMSS + 2


def test_a_timeout_counts_bytes_from_nothing() -> None:
    sender = sender_of(segments=10)
    growth = grown("standard", sender, byte_counting=True)
    growth.start(10_000, 0)
    growth.handle_ack(9999, 0)
    growth.handle_timeout(10_000, 10_000, first=False, recovering=False)
    growth.handle_ack(9999, 0)
    assert growth.cwnd == 10_000
    growth.handle_ack(1, 0)
    assert growth.cwnd == 11_000


@pytest.mark.parametrize(("flight", "ssthresh"), [(1000, 2000), (6000, 3000), (8000, 4000)])
def test_a_timeout_leaves_one_segment_and_half_the_flight_once(script: MakeScript, flight: int, ssthresh: int) -> None:
    # section 3.1, equation 4: half of what was in flight, not of the window, and two segments at least
    s = script(PLAIN.but(initial_window=8))
    s.write(flight, sends=...)
    s.expect(1100, "1:1001", cwnd=1000, ssthresh=ssthresh)
    s.expect(3100, "1:1001", cwnd=1000, ssthresh=ssthresh)


@pytest.mark.parametrize(("restart", "idle_ms"), [(True, 1100), (True, 900), (False, 5000)])
def test_idle_for_longer_than_the_timeout_it_starts_from_iw(script: MakeScript, restart: bool, idle_ms: float) -> None:
    # section 4.1
    s = script(PLAIN.but(restart_after_idle=restart))
    s.write(10_000, sends=...)
    for ack in range(1001, 11_001, 1000):
        s.inject(200, f"ack {ack}", sends=...)
    assert s.cwnd > 5000
    window, ssthresh = (3000 if restart and idle_ms > s.rto_ms else s.cwnd), s.ssthresh
    s.run_to(200 + idle_ms)
    s.write(20_000)
    assert len(s.skip()) == window // 1000
    assert (s.cwnd, s.ssthresh) == (window, ssthresh)


def test_ssthresh_of_the_connection_before(script: MakeScript) -> None:
    # CBI, RFC 9040: to the same address, from a connection that had learnt one
    shared = Shared()
    config = PLAIN.but(cbi=True, initial_window=8)
    s = script(config, shared=shared)
    assert s.ssthresh is None
    s.write(8000, sends=...)
    s.expect(1100, "1:1001")
    s.inject(1200, "ack 8001")
    s.close(sends=["F 8001:8001"])
    s.inject(1300, "ack 8002")
    s.inject(1300, "F 1:1 ack 8002", sends=["8002:8002 ack 2"])
    assert script(config, shared=shared).ssthresh == 4000
    other = Flow(0x0A000001, 40_000, 0x0A000003, 80)
    assert script(config, shared=shared, flow=other).ssthresh is None
    assert script(config.but(cbi=False), shared=shared).ssthresh is None
