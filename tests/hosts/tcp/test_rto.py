"""RFC 6298: computing the retransmission timeout, and managing its timer."""

import pytest

from common.units import MS, SECOND
from hosts.tcp.config import TcpConfig
from tests.hosts.tcp.script import PLAIN, MakeScript

#: so small a minimum that the formula shows
EXACT = PLAIN.but(min_rto_ns=1)


@pytest.mark.parametrize(
    ("config", "rtt_ms", "rto_ms"), [(EXACT, 100, 300), (EXACT, 40, 120), (PLAIN, 100, 1000), (PLAIN, 400, 1200)]
)
def test_the_first_sample_sets_both_variables_and_there_is_a_minimum(
    script: MakeScript, config: TcpConfig, rtt_ms: float, rto_ms: float
) -> None:
    # SRTT = R, RTTVAR = R / 2: RTO = 3 R, one second at least
    assert script(config, rtt_ms=rtt_ms).rto_ms == rto_ms


def test_later_samples_are_smoothed(script: MakeScript) -> None:
    s = script(EXACT, rtt_ms=100).measure(160)
    # RTTVAR = 3/4 50 + 1/4 60 = 52.5, SRTT = 7/8 100 + 1/8 160 = 107.5
    assert s.rto_ms == 107.5 + 4 * 52.5
    assert s.connection.srtt_ns == 107.5 * MS
    s.measure(80)
    # RTTVAR = 3/4 52.5 + 1/4 27.5 = 46.25, SRTT = 7/8 107.5 + 1/8 80 = 104.0625
    assert s.rto_ms == 104.0625 + 4 * 46.25


def test_the_variance_term_is_at_least_the_granularity(script: MakeScript) -> None:
    s = script(EXACT.but(granularity_ns=50 * MS)).measure(*[100] * 20)
    assert s.rto_ms == 150


def test_backoff_ends_at_the_maximum(script: MakeScript) -> None:
    s = script(PLAIN.but(max_rto_ns=5 * SECOND))
    s.write(1000)
    for at_ms in (100, 1100, 3100, 7100, 12_100, 17_100):
        s.expect(at_ms, "1:1001")
    assert s.rto_ms == 5000


def test_sending_more_does_not_restart_the_timer(script: MakeScript) -> None:
    # (5.1)
    s = script(PLAIN)
    s.write(1000, sends=["1:1001"])
    s.run_to(500)
    s.write(1000, sends=["1001:2001"])
    s.expect(1100, "1:1001")


def test_with_everything_acknowledged_the_timer_is_off(script: MakeScript) -> None:
    # (5.2)
    s = script(PLAIN)
    s.write(1000, sends=["1:1001"])
    s.inject(200, "ack 1001")
    assert s.connection.next_deadline() is None


@pytest.mark.parametrize(("ack", "expires_ms"), [(1001, 1400), (1, 1100)])
def test_an_ack_restarts_the_timer_if_it_is_of_new_data(script: MakeScript, ack: int, expires_ms: float) -> None:
    # (5.3)
    s = script(PLAIN)
    s.write(2000, sends=["1:1001", "1001:2001"])
    s.inject(400, f"ack {ack}")
    s.expect(expires_ms, f"{ack}:{ack + 1000}")


def test_only_the_earliest_segment_is_sent_again_and_the_timeout_doubles(script: MakeScript) -> None:
    # (5.4) to (5.6)
    s = script(PLAIN)
    s.write(3000, sends=["1:1001", "1001:2001", "2001:3001"])
    s.expect(1100, "1:1001")
    assert s.rto_ms == 2000
    s.expect(3100, "1:1001")
    assert s.rto_ms == 4000
    assert s.connection.counters.timeouts == 2


def test_what_was_sent_twice_is_no_sample_and_the_backoff_stays(script: MakeScript) -> None:
    # section 3 (Karn), section 5 behind (5.7)
    s = script(EXACT)
    s.write(1000, sends=["1:1001"])
    s.expect(400, "1:1001")
    s.inject(410, "ack 1001")
    assert s.connection.srtt_ns == 100 * MS
    assert s.rto_ms == 600
    s.measure(100)
    assert s.rto_ms == 100 + 4 * 37.5


def test_with_timestamps_what_was_sent_twice_is_a_sample(script: MakeScript) -> None:
    # RFC 7323 section 4.1: the echo tells which transmission is acknowledged
    s = script(EXACT.but(mss=1012, timestamps=True), peer="mss 1012 ts 7000/0")
    s.write(1000, sends=["1:1001 ts 100/7000"])
    s.expect(400, "1:1001 ts 400/7000")
    s.inject(420, "ack 1001 ts 7100/400")
    # RTTVAR = 3/4 50 + 1/4 80, SRTT = 7/8 100 + 1/8 20
    assert s.rto_ms == 90 + 4 * 57.5


def test_it_gives_up(script: MakeScript) -> None:
    s = script(PLAIN.but(data_retries=2))
    s.write(1000)
    for at_ms in (100, 1100, 3100):
        s.expect(at_ms, "1:1001")
    s.run_to(20_000)
    assert s.state == "CLOSED"
    assert s.connection.error is not None
    assert s.connection.closed


def test_an_answer_begins_the_count_of_retries_anew(script: MakeScript) -> None:
    s = script(TcpConfig().but(mss=1000, data_retries=2, timestamps=False))
    s.write(2000, sends=["1:1001", "1001:2001"])
    s.expect(1100, "1:1001")
    s.expect(3100, "1:1001")
    s.inject(3200, "ack 1001", sends=...)
    s.run_to(8000)
    assert s.connection.error is None
