"""Loss recovery without SACK: RFC 5681 section 3.2 (Reno), RFC 6582 (NewReno), RFC 3042 (limited transmit)."""

from functools import partial

import pytest

from hosts.tcp.config import TcpConfig
from tests.hosts.tcp.script import PLAIN, MakeScript, window_of

NEWRENO = PLAIN.but(initial_window=8)
RENO = NEWRENO.but(recovery="reno")
BOTH = pytest.mark.parametrize("config", [RENO, NEWRENO], ids=["reno", "newreno"])
window_of_8 = partial(window_of, 8)


@BOTH
def test_the_third_duplicate_retransmits_and_each_further_one_inflates(script: MakeScript, config: TcpConfig) -> None:
    s = window_of_8(script, config)
    s.inject(200, "ack 1", "ack 1", sends=[])
    # half the flight, and three segments that have left
    s.inject(200, "ack 1", sends=["1:1001"], cwnd=7000, ssthresh=4000, fast_retransmits=1)
    s.inject(200, "ack 1", sends=[], cwnd=8000)
    s.inject(200, "ack 1", sends=["8001:9001"])
    s.inject(200, "ack 1", "ack 1", sends=["9001:10001", "10001:11001"])
    # everything sent before the loss was found is acknowledged
    s.inject(300, "ack 8001", sends=["11001:12001"], cwnd=4000, ssthresh=4000)
    # congestion avoidance from there
    s.inject(310, "ack 9001", sends=["12001:13001"], cwnd=4250)


@BOTH
def test_two_duplicates_are_reordering(script: MakeScript, config: TcpConfig) -> None:
    s = window_of_8(script, config)
    s.inject(200, "ack 1", "ack 1")
    s.inject(210, "ack 3001", sends=["8001:9001", "9001:10001", "10001:11001", "11001:12001"])
    s.inject(220, "ack 3001", "ack 3001", sends=[])
    assert s.ssthresh is None


@BOTH
@pytest.mark.parametrize(
    "other",
    ["ack 1 win 60000", "1:101 ack 1", "ack 0"],
    ids=["another window", "data", "older"],
)
def test_what_is_no_duplicate(script: MakeScript, config: TcpConfig, other: str) -> None:
    # section 2: the same number and the same window, no data
    s = window_of_8(script, config)
    s.inject(200, "ack 1", "ack 1")
    s.inject(210, other, sends=...)
    assert s.ssthresh is None
    assert s.connection.counters.dupacks == 2


@BOTH
def test_with_nothing_on_its_way_there_are_no_duplicates(script: MakeScript, config: TcpConfig) -> None:
    s = script(config)
    s.inject(200, "ack 1", "ack 1", "ack 1", "ack 1", sends=[], dupacks=0)


def test_reno_leaves_recovery_at_the_first_new_ack(script: MakeScript) -> None:
    # 1 and 3 are lost: the second has to wait for the timer
    s = window_of_8(script, RENO, nbytes=8000)
    s.inject(200, *["ack 1"] * 6, sends=["1:1001"])
    s.inject(300, "ack 2001", sends=[], cwnd=4000)
    s.expect(1300, "2001:3001", timeouts=1)


def test_newreno_sends_the_next_hole_at_each_partial_ack(script: MakeScript) -> None:
    # section 3.2, step 3: 1, 3 and 5 are lost
    s = window_of_8(script, NEWRENO)
    s.inject(200, *["ack 1"] * 5, sends=["1:1001", "8001:9001"], cwnd=9000)
    s.inject(300, "ack 2001")
    # 2000 octets less, one segment more: room for one new segment
    s.expect(300, "2001:3001", "9001:10001", cwnd=8000)
    s.inject(310, "ack 2001", sends=["10001:11001"])
    s.inject(400, "ack 4001", sends=["4001:5001", "11001:12001"], fast_retransmits=1)
    s.inject(500, "ack 11001", sends=["12001:13001"], cwnd=2000, ssthresh=4000)


def test_newreno_deflates_by_what_is_acknowledged(script: MakeScript) -> None:
    # a partial ACK of less than a segment adds none
    s = window_of_8(script, NEWRENO, nbytes=8000)
    s.inject(200, *["ack 1"] * 3, sends=["1:1001"])
    s.inject(300, "ack 501", sends=["501:1501"], cwnd=6500)


def test_newreno_ends_without_a_burst(script: MakeScript) -> None:
    # section 3.2, step 3, full acknowledgment, (1): min(ssthresh, max(FlightSize, SMSS) + SMSS)
    s = window_of_8(script, NEWRENO, nbytes=8000)
    s.inject(200, *["ack 1"] * 7, sends=["1:1001"])
    s.inject(300, "ack 8001", cwnd=2000)


@pytest.mark.parametrize(("impatient", "expires_ms"), [(True, 1900), (False, 2600)])
def test_the_first_partial_ack_restarts_the_timer_and_each_one_if_it_is_patient(
    script: MakeScript, impatient: bool, expires_ms: float
) -> None:
    # section 4: to an impatient timer a window of losses is its own, in the end
    s = window_of_8(script, NEWRENO.but(impatient=impatient), nbytes=8000)
    s.inject(200, *["ack 1"] * 3, sends=["1:1001"])
    s.inject(900, "ack 1001", sends=["1001:2001"])
    s.inject(1600, "ack 2001", sends=["2001:3001"])
    s.expect(expires_ms, "2001:3001", timeouts=1)


@pytest.mark.parametrize("recovery", ["reno", "newreno", "sack"])
@pytest.mark.parametrize(("careful", "expires_ms"), [(False, 1100), (True, 1900)])
def test_what_is_sent_again_restarts_a_careful_timer(
    script: MakeScript, recovery: str, careful: bool, expires_ms: float
) -> None:
    # RFC 6675 section 6: in recovery the timer may wait for the retransmission, not only for acknowledgements
    config = NEWRENO.but(recovery=recovery, careful_timer=careful)
    s = script(config, peer="mss 1000 sackok")
    s.write(8000, sends=...)
    for count in (2, 3, 4):
        s.inject(900, "ack 1" + f" sack 1001:{1000 * count + 1}" * (recovery == "sack"))
    s.expect(900, "1:1001")
    s.expect(expires_ms, "1:1001", timeouts=1)


@pytest.mark.parametrize("recovery", ["reno", "newreno", "sack"])
def test_no_second_fast_retransmit_for_one_window(script: MakeScript, recovery: str) -> None:
    # section 3.2, step 1, RFC 6675 section 5.1: dupacks below `recover` are of what a timeout has sent needlessly
    s = window_of_8(script, NEWRENO.but(recovery=recovery), nbytes=20_000)
    s.expect(1100, "1:1001")
    s.inject(1200, "ack 1001", sends=...)
    s.inject(1210, *["ack 1001 sack 3001:7001"] * 4, sends=..., fast_retransmits=0)
    assert s.ssthresh == 4000


def test_beyond_it_there_is(script: MakeScript) -> None:
    s = window_of_8(script, NEWRENO, nbytes=20_000)
    s.expect(1100, "1:1001")
    s.inject(1200, "ack 1001", sends=...)
    s.inject(1300, "ack 8001", sends=["8001:9001", "9001:10001", "10001:11001"])
    s.inject(1310, "ack 9001", sends=...)
    s.inject(1400, "ack 9001", "ack 9001", "ack 9001", sends=["9001:10001", ...], fast_retransmits=1)


@pytest.mark.parametrize(("recovery", "cwnd"), [("reno", 7000), ("newreno", 7000), ("sack", 4000)])
def test_limited_transmit(script: MakeScript, recovery: str, cwnd: int) -> None:
    # RFC 3042, RFC 6675 section 5, step 3: one new segment for each of the first two duplicates, the window as it was
    s = window_of_8(script, NEWRENO.but(recovery=recovery, limited_transmit=True))
    first, second, third = ("ack 1" + f" sack 1001:{n}001" * (recovery == "sack") for n in (2, 3, 4))
    s.inject(200, first, sends=["8001:9001"])
    s.inject(210, second, sends=["9001:10001"], cwnd=8000)
    # what limited transmit has sent is not counted (RFC 5681 section 3.2, step 2)
    s.inject(220, third, sends=["1:1001"], cwnd=cwnd, ssthresh=4000)


@BOTH
def test_a_timeout_halves_the_flight_without_limited_transmit(script: MakeScript, config: TcpConfig) -> None:
    # RFC 5681 section 3.1, equation 4, and section 3.2, step 2
    s = window_of_8(script, config.but(limited_transmit=True))
    s.inject(200, "ack 1", "ack 1", sends=["8001:9001", "9001:10001"])
    s.expect(1100, "1:1001", cwnd=1000, ssthresh=4000)


@BOTH
def test_limited_transmit_ends_with_a_new_ack(script: MakeScript, config: TcpConfig) -> None:
    s = window_of_8(script, config.but(limited_transmit=True))
    s.inject(200, "ack 1", "ack 1", sends=["8001:9001", "9001:10001"])
    # the window grows to nine; nine are out
    s.inject(210, "ack 1001", sends=[])
    s.inject(220, "ack 2001", sends=["10001:11001", "11001:12001"])


@BOTH
def test_after_a_timeout_limited_transmit_sends_nothing(script: MakeScript, config: TcpConfig) -> None:
    # RFC 3042 is about new data; what is sent again waits for the acknowledgement
    s = window_of_8(script, config.but(limited_transmit=True))
    s.expect(1100, "1:1001")
    s.inject(1150, "ack 1", "ack 1", "ack 1", sends=[])
    s.inject(1200, "ack 1001", sends=["1001:2001", "2001:3001"])


def test_a_timeout_in_recovery_does_not_raise_the_threshold(script: MakeScript) -> None:
    # RFC 5681 section 3.1: no more than equation 4 gives; FlightSize counts what has arrived, too
    s = window_of_8(script, NEWRENO)
    s.inject(200, *["ack 1"] * 15, sends=["1:1001", ...])
    assert (s.connection.flight, s.ssthresh) == (19_000, 4000)
    s.expect(1100, "1:1001", cwnd=1000, ssthresh=4000)
    # and it ends recovery
    s.inject(1200, "ack 1001", sends=["1001:2001", "2001:3001"], cwnd=2000)


def test_limited_transmit_heeds_the_peers_window(script: MakeScript) -> None:
    s = script(NEWRENO.but(limited_transmit=True), window=8000)
    s.write(20_000)
    assert len(s.skip()) == 8
    s.inject(200, "ack 1", "ack 1", sends=[])
