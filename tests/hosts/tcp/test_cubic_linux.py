"""Linux's CUBIC: what ends slow start and what does not (HyStart, Ha and Rhee 2011), and how fast its Reno is."""

from collections.abc import Sequence

import pytest

from common.units import MS
from hosts.tcp.growth import Growth
from hosts.tcp.send_state import INFINITE, SendState
from testbed.simulation import simulate
from tests.harness.model_runs import model
from tests.hosts.tcp.growing import SMSS, avoid, grown, lose, sender_of, time_out

RTT_NS = 100 * MS
ALPHA = 3 * (1 - 0.7) / (1 + 0.7)


def round_trip(growth: Growth, sender: SendState, start_ns: int, rtts_ns: Sequence[int], apart_ns: int = 5 * MS) -> int:
    """Acknowledge a segment per round-trip time, so far apart; return the time of the last."""
    sender.max = sender.una + len(rtts_ns) * SMSS
    for place, rtt_ns in enumerate(rtts_ns):
        sender.una += SMSS
        sender.rto.handle_sample(rtt_ns)
        growth.handle_ack(SMSS, start_ns + place * apart_ns)
    return start_ns + (len(rtts_ns) - 1) * apart_ns


def begun(segments: int, rtt_ns: int = RTT_NS) -> tuple[Growth, SendState]:
    """A growth after a first round without a queue."""
    sender = sender_of(segments)
    growth = grown("cubic-linux", sender)
    round_trip(growth, sender, 0, [rtt_ns] * 10)
    return growth, sender


@pytest.mark.parametrize(("rtt_ms", "least_ms"), [(10, 5), (100, 13), (400, 17)], ids=["4 ms", "an eighth", "16 ms"])
def test_slow_start_ends_when_all_round_trips_of_a_round_are_longer_by_an_eighth(rtt_ms: int, least_ms: int) -> None:
    for longer_ms in (least_ms - 1, least_ms):
        growth, sender = begun(16, rtt_ms * MS)
        round_trip(growth, sender, rtt_ms * MS, [(rtt_ms + longer_ms) * MS] * 20)
        # 10 and 8 segments more, each by one ACK, before the ninth compares
        assert growth.ssthresh == (INFINITE if longer_ms < least_ms else (16 + 10 + 8) * SMSS)


def test_one_short_round_trip_among_a_rounds_first_is_enough_to_go_on() -> None:
    growth, sender = begun(16)
    round_trip(growth, sender, RTT_NS, [RTT_NS + 50 * MS] * 7 + [RTT_NS] + [RTT_NS + 50 * MS] * 20)
    assert growth.ssthresh == INFINITE


def test_a_train_of_half_a_round_trip_ends_slow_start_and_a_pause_ends_the_train() -> None:
    growth, sender = begun(16)
    round_trip(growth, sender, RTT_NS, [RTT_NS] * 40, apart_ns=3 * MS)
    assert growth.ssthresh == INFINITE
    last_ns = round_trip(growth, sender, 3 * RTT_NS, [RTT_NS] * 26, apart_ns=2 * MS)
    assert (last_ns - 3 * RTT_NS, growth.ssthresh) == (50 * MS, INFINITE)
    round_trip(growth, sender, 5 * RTT_NS, [RTT_NS] * 27, apart_ns=2 * MS)
    assert growth.ssthresh < INFINITE


def test_small_windows_are_left_alone() -> None:
    sender = sender_of(4)
    growth = grown("cubic-linux", sender)
    round_trip(growth, sender, 0, [RTT_NS] * 2)
    round_trip(growth, sender, RTT_NS, [2 * RTT_NS] * 9)
    assert (growth.cwnd, growth.ssthresh) == (15 * SMSS, INFINITE)


def test_only_a_timeout_lets_it_end_slow_start_again() -> None:
    growth, sender = begun(16)
    round_trip(growth, sender, RTT_NS, [2 * RTT_NS] * 20)
    assert growth.ssthresh < INFINITE
    for again in (False, True):
        if again:
            time_out(growth)
        growth.start(20 * SMSS, INFINITE)
        # after a timeout the round trip is a new one, which itself is no sign
        round_trip(growth, sender, 10 * RTT_NS, [2 * RTT_NS] * 20)
        assert growth.ssthresh == INFINITE
        round_trip(growth, sender, 20 * RTT_NS, [3 * RTT_NS] * 20)
        assert (growth.ssthresh < INFINITE) is again


def test_the_reno_that_it_keeps_up_with_does_not_open_faster_from_the_window_before_the_loss_on() -> None:
    courses = {}
    for name in ("cubic", "cubic-linux"):
        sender = sender_of(40, srtt_ns=10 * MS)
        growth = grown(name, sender)
        lose(growth)
        courses[name] = [window for _, window in avoid(growth, 0.5, rtt_ns=10 * MS)]
    assert courses["cubic-linux"] == pytest.approx([28 + ALPHA * (n + 1) for n in range(50)], rel=0.03)
    assert courses["cubic"][-1] > courses["cubic-linux"][-1] + 5


def resent(tcp: str) -> int:
    """Segments sent again in the first two seconds over a link that loses none, its queue apart."""
    scenario = model(
        tcp=tcp,
        seed=1,
        link={"scheme": "slacp"},
        channel={"rate_bps": 2_000_000, "delay_ms": 25},
        workloads=[{"kind": "bulk", "direction": "up", "duration_s": 2}],
    )
    return simulate(scenario).flows[0].retransmits


def test_the_queue_does_not_overflow_in_slow_start() -> None:
    assert resent("sack-cubic-linux") < resent("sack-cubic") / 4
