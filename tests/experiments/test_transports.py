"""What BBR's draft expects of it, stated and then computed over a bottleneck in virtual time."""

from functools import cache

import pytest

from experiments.transports import Bottleneck, Result, run

#: 2 Mbit/s and 50 ms, with 24 times a BDP of buffer
DEEP = Bottleneck(queue_options={"limit_packets": 200})
FAST_AND_LOSSY = Bottleneck(rate_bps=20_000_000, queue_options={"limit_packets": 1000}, per=0.01)


@cache
def deep(profile: str) -> Result:
    return run(DEEP, [profile], seed=1, duration_s=20)


def test_bbr_fills_the_link() -> None:
    # section 3.1: "high throughput"; ProbeRTT costs 2 %, the pacing margin 1 %
    result = deep("bbr3")
    assert result.utilisation > 0.94
    assert result.drops == 0


def test_the_queue_of_bbr_is_bounded_at_a_deep_buffer_where_that_of_cubic_fills_it() -> None:
    # section 5.3.1.1: "cwnd_gain bounds any queue to (cwnd_gain - 1) * estimated_BDP"
    bbr, cubic = deep("bbr3").flows[0], deep("modern").flows[0]
    assert bbr.wait_p99_ms < 75
    assert cubic.wait_ms > 10 * bbr.wait_p99_ms


@pytest.mark.slow
def test_one_percent_of_loss_does_not_stop_bbr_where_it_stops_cubic() -> None:
    # section 2.8: LossThresh is 2 %; with 88 segments in flight a loss is below it
    bbr, cubic = (
        run(FAST_AND_LOSSY, [profile], seed=1, duration_s=10, warmup_s=3).utilisation for profile in ("bbr3", "modern")
    )
    assert bbr > 0.5
    assert bbr > 3 * cubic


@pytest.mark.slow
def test_two_flows_of_bbr_share_within_a_factor_of_two() -> None:
    # section 1: "Share bandwidth with other flows in an approximately fair manner"
    result = run(DEEP, ["bbr3", "bbr3"], seed=1, duration_s=50, warmup_s=20)
    one, other = (flow.goodput_bps for flow in result.flows)
    assert 0.5 < one / other < 2
    assert result.utilisation > 0.94


def test_a_seed_repeats_and_another_differs() -> None:
    def course(seed: int) -> list[object]:
        flow = run(DEEP, ["bbr3"], seed=seed, duration_s=8, warmup_s=1).flows[0]
        return [flow.goodput_bps, flow.wait_ms, flow.wait_p99_ms, flow.sender.connection.cwnd]

    assert course(1) == course(1) != course(2)


@pytest.mark.slow
def test_prague_beside_cubic_waits_less_than_5_ms_and_shares_within_a_factor_of_two() -> None:
    # RFC 9332 section 2.1 (the coupling, k = 2) and RFC 9330 (L4S): consistently low delay, and about equal rates
    path = Bottleneck(rate_bps=40_000_000, rtt_ns=20_000_000, queue="dualpi2", queue_options={"limit_packets": 2000})
    result = run(path, ["prague", "modern"], seed=1, duration_s=15)
    prague, cubic = result.flows
    assert prague.wait_p99_ms < 5
    assert 0.5 < prague.goodput_bps / cubic.goodput_bps < 2
    assert (prague.retransmits, result.marks > 100) == (0, True)
    assert result.utilisation > 0.95
    # the wait in the classic queue is the controller's target, 15 ms
    assert 10 < cubic.wait_ms < 20


def test_what_is_counted_before_and_after_a_warm_up_is_all_there_is() -> None:
    path = Bottleneck(rate_bps=10_000_000, rtt_ns=20_000_000, queue="dualpi2", queue_options={"limit_packets": 500})

    def counted(duration_s: float, warmup_s: float) -> list[int]:
        result = run(path, ["sack", "sack-ecn"], seed=1, duration_s=duration_s, warmup_s=warmup_s)
        repaired = [count for flow in result.flows for count in (flow.retransmits, flow.timeouts)]
        return [result.drops, result.marks, *repaired]

    first, second, both = counted(3, 0), counted(6, 3), counted(6, 0)
    assert [a + b for a, b in zip(first, second, strict=True)] == both
    # drops, marks and the retransmissions of the flow without ECN
    assert min(*first[:3], *second[:3]) > 0


def test_marks_of_the_queue_reach_a_tcp_with_ecn_which_then_loses_little() -> None:
    # RFC 3168: CE in the IP header, ECE, and a window that is halved
    path = Bottleneck(rate_bps=10_000_000, rtt_ns=20_000_000, queue="dualpi2", queue_options={"limit_packets": 500})
    marked, lost = (run(path, [profile], seed=1, duration_s=10, warmup_s=3) for profile in ("sack-ecn", "sack"))
    # a connection counts from its beginning on
    counters = marked.flows[0].sender.connection.counters
    assert 0 < counters.ecn_reductions <= run(path, ["sack-ecn"], seed=1, duration_s=10, warmup_s=0).marks
    assert counters.fast_retransmits <= 1
    assert (lost.marks, lost.drops > 3) == (0, True)
    # appendix A: the wait is held around 15 ms
    for result in (marked, lost):
        assert result.utilisation > 0.9
        assert result.flows[0].wait_p99_ms < 40
