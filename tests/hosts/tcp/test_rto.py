"""RFC 6298: computing the retransmission timeout, and managing its timer."""

import hashlib
from random import Random
from typing import Any

import pytest

from common.units import MS, SECOND
from hosts.tcp.bsd import BsdRto
from hosts.tcp.config import TcpConfig
from hosts.tcp.connection import State
from hosts.tcp.options import TimerOptions
from hosts.tcp.rto import RtoEstimator
from tests.hosts.tcp.script import PLAIN, Case, MakeScript, by_script

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


@by_script(
    """
    later samples are smoothed [rtt_ms=100]
        # RTTVAR = 3/4 50 + 1/4 60 = 52.5, SRTT = 7/8 100 + 1/8 160 = 107.5
        measure 160 | rto_ms 317.5, srtt_ns 107500000
        # RTTVAR = 3/4 52.5 + 1/4 27.5 = 46.25, SRTT = 7/8 107.5 + 1/8 80 = 104.0625
        measure 80 | rto_ms 289.0625
    what was sent twice is no sample and the backoff stays
        # section 3 (Karn), section 5 behind (5.7)
        write 1000 > 1:1001
        400 > 1:1001
        410 < ack 1001 | srtt_ns 100000000, rto_ms 600
        measure 100 | rto_ms 250
    with timestamps what was sent twice is a sample [mss=1012, timestamps=True, peer='mss 1012 ts 7000/0']
        # RFC 7323 section 4.1: the echo tells which transmission is acknowledged
        write 1000 > 1:1001 ts 100/7000
        400 > 1:1001 ts 400/7000
        # RTTVAR = 3/4 50 + 1/4 80, SRTT = 7/8 100 + 1/8 20
        420 < ack 1001 ts 7100/400 | rto_ms 320
    """
)
def test_the_formula(script: MakeScript, case: Case) -> None:
    case.play(script, EXACT)


def test_the_variance_term_is_at_least_the_granularity(script: MakeScript) -> None:
    s = script(EXACT.but(granularity_ns=50 * MS)).measure(*[100] * 20)
    assert s.rto_ms == 150


@by_script(
    """
    backoff ends at the maximum [max_rto_ns=5_000_000_000]
        write 1000
        100 1100 3100 7100 12100 17100 > 1:1001 | rto_ms 5000
    sending more does not restart the timer
        # (5.1)
        write 1000 > 1:1001
        500
        write 1000 > 1001:2001
        1100 > 1:1001
    with everything acknowledged the timer is off
        # (5.2)
        write 1000 > 1:1001
        200 < ack 1001 | next_deadline none
    only the earliest segment is sent again and the timeout doubles
        # (5.4) to (5.6)
        write 3000 > 1:1001, 1001:2001, 2001:3001
        1100 > 1:1001 | rto_ms 2000
        3100 > 1:1001 | rto_ms 4000, timeouts 2
    it gives up [data_retries=2]
        write 1000
        100 1100 3100 > 1:1001
        20000 | state CLOSED, error, closed
    an answer begins the count of retries anew [data_retries=2]
        write 2000 > 1:1001, 1001:2001
        1100 3100 > 1:1001
        3200 < ack 1001 > ...
        8000 | error none
    """
)
def test_the_timer(script: MakeScript, case: Case) -> None:
    case.play(script, PLAIN)


@pytest.mark.parametrize(("ack", "expires_ms"), [(1001, 1400), (1, 1100)])
def test_an_ack_restarts_the_timer_if_it_is_of_new_data(script: MakeScript, ack: int, expires_ms: float) -> None:
    # (5.3)
    s = script(PLAIN)
    s.write(2000, sends=["1:1001", "1001:2001"])
    s.inject(400, f"ack {ack}")
    s.expect(expires_ms, f"{ack}:{ack + 1000}")


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({}, ["write 1000 > 1:1001"]),
        ({"config": PLAIN.but(recovery="rack"), "peer": "mss 1000 sackok"}, ["write 1000 > 1:1001", "500 > 1:1001"]),
        ({}, ["200 < 1:1001 > nothing"]),
        ({}, ["write 1000 > ...", "200 < ack 1001 win 0", "write 1000 > nothing"]),
        ({}, ["close > ...", "200 < F 1:1 ack 2 > ..."]),
        ({"connected": False}, ["connect > ..."]),
    ],
    ids=["RTO", "RTO of RACK", "delayed ACK", "persist", "TIME-WAIT", "SYN"],
)
def test_a_timer_does_late_what_it_does_in_time_and_nothing_early(
    script: MakeScript, options: dict[str, Any], steps: list[str]
) -> None:
    s = script(**{"config": PLAIN, **options})
    for step in steps:
        s.take(step)
    connection, found = s.connection, []
    at = connection.next_deadline()
    assert at is not None
    for now in (at - 1, at + 7 * MS):
        connection.handle_deadline(now)
        found.append(connection.state is State.CLOSED or connection.poll_segment(now) is not None)
    assert found == [False, True]


@pytest.mark.parametrize(("make", "fingerprint"), [(RtoEstimator, "29e7f61ef6906c8f"), (BsdRto, "272a9b23e056a681")])
def test_timers_are_what_they_were(make: type[RtoEstimator], fingerprint: str) -> None:
    rto, rng, now, found = make(TimerOptions(tick_ns=500 * MS, clock_phase_ns=123 * MS)), Random(1), 7 * SECOND, []
    for step in range(300):
        if step % 40 < 8:
            rto.back_off()
        elif step == 150:
            rto.restart(3 * SECOND)
        else:
            rto.handle_acked(now - rng.choice((3, 90, 110, 400, 2_000, 9_000)) * MS, now)
        found.append((rto.rto_ns, rto.srtt_ns, rto.rttvar_ns, rto.expiry(now), rto.after(now, 200 * MS)))
        now += rng.randrange(1, 900) * MS
    assert hashlib.sha256(repr(found).encode()).hexdigest()[:16] == fingerprint
