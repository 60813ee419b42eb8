"""Percentiles of delays, and the delays of networks in which they are known."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.engine.delays import Delays
from testbed.model.model_run import Simulation
from testbed.results.quality import joined, percentiles
from testbed.results.summary import Summary
from testbed.scenario.resolver import resolve
from testbed.scenario.schema import Scenario
from tests.harness.scenarios import scenario

#: of the LAN and the wire at 100 Mbit/s each, for a packet of 1000 octets
LANS_MS = 0.16
#: frame of scheme none with such a packet
FRAME_BITS = 8 * 1004


@given(st.lists(st.integers(min_value=0, max_value=10_000_000_000), min_size=1))
def test_percentiles_are_numpys_nearest_ranks(delays_ns: list[int]) -> None:
    delays = Delays()
    for each in delays_ns:
        delays.add(each)
    found = percentiles(delays.counts())
    assert found is not None
    whole_us = np.array(delays_ns) // 1000
    expected = np.percentile(whole_us, [50, 95, 99], method="inverted_cdf") / 1e3
    assert [found.p50_ms, found.p95_ms, found.p99_ms] == list(expected)
    assert found.n == len(delays_ns)
    assert found.mean_ms == pytest.approx(whole_us.mean() / 1e3)


def test_delays_of_several_ends_count_together() -> None:
    assert joined([((1, 2), (5, 1)), ((3, 1), (5, 4)), ()]) == ((1, 2), (3, 1), (5, 5))
    assert percentiles(()) is None


@given(st.lists(st.integers(min_value=0, max_value=10_000_000), min_size=1))
def test_many_values_double_the_unit(steps_us: list[int]) -> None:
    delays, values = Delays(), list(np.cumsum(steps_us * 3) % 10_000_000) + list(range(0, 9_999_000, 1000))
    for each in values:
        delays.add(1000 * int(each))
    found = percentiles(delays.counts())
    assert found is not None
    assert len(delays.counts()) <= 8192
    exact_ms = np.percentile(values, [50, 95, 99], method="inverted_cdf") / 1e3
    for ours, theirs in zip((found.p50_ms, found.p95_ms, found.p99_ms), exact_ms, strict=True):
        assert theirs - max(values) / 4096e3 <= ours <= theirs


def test_delay_below_zero_counts_as_zero() -> None:
    delays = Delays()
    delays.add(-5)
    assert delays.counts() == ((0, 1),)


def timed(made: Scenario) -> Summary:
    return Simulation(resolve(made), timed=True).run()


def _udp(**values: Any) -> dict[str, Any]:
    return {"kind": "onoff-udp", "flow": "udp", "packet_bytes": 1000, "off_ms": 0, **values}


def test_packets_that_find_empty_queues_have_the_paths_delay() -> None:
    s = timed(
        scenario(
            tier="model",
            link={"scheme": "none"},
            channel={"rate_bps": 2_000_000, "delay_ms": 20},
            workloads=[_udp(rate_bps=80_000, duration_s=2)],
        )
    )
    found = s.quality.one_way
    assert found is not None
    known_ms = round(LANS_MS + FRAME_BITS / 2000 + 20, 3)
    assert (found.n, found.p50_ms, found.p99_ms) == (20, known_ms, known_ms)
    assert s.quality.round_trip is None


def test_highest_delays_are_the_drain_time_of_a_full_buffer() -> None:
    mac, queue = 50_000, 64_000
    s = timed(
        scenario(
            tier="model",
            link={"scheme": "none", "ip_queue_bytes": queue},
            channel={"rate_bps": 1_000_000, "delay_ms": 10, "mac_buffer_bytes": mac},
            workloads=[_udp(rate_bps=1_500_000, duration_s=5)],
        )
    )
    found = s.quality.one_way
    assert found is not None
    frame_ms = FRAME_BITS / 1000
    drained_ms = (mac + queue) // 1004 * frame_ms + 10 + LANS_MS
    # a packet that is taken waits for a full buffer, but for the part of the first frame that has left
    assert drained_ms - frame_ms < found.p99_ms <= drained_ms


def test_round_trip_of_tcp_is_that_of_data_and_ack() -> None:
    s = timed(
        scenario(
            tier="model",
            tcp="modern",
            link={"scheme": "none"},
            channel={"rate_bps": 10_000_000, "delay_ms": 30},
            workloads=[{"kind": "short", "flow": "one", "bytes": 100, "count": 5, "gap_ms": 50}],
        )
    )
    flow = s.quality.flows["one"]
    assert flow.one_way is not None
    assert flow.round_trip is not None
    assert (flow.one_way.n, flow.one_way.p50_ms) == (5, flow.one_way.p99_ms)
    # data of 100 octets and options: 0.13 ms on the air, some µs on the LANs; ACK: less
    assert 30.1 < flow.one_way.p50_ms < 30.2
    assert 60.1 < flow.round_trip.p50_ms < 60.3
    assert s.quality.round_trip == flow.round_trip


def test_retransmitted_packets_count_from_their_last_sending() -> None:
    s = timed(
        scenario(
            tier="model",
            tcp="sack",
            link={"scheme": "none"},
            channel={"rate_bps": 10_000_000, "delay_ms": 30, "per": 0.1},
            workloads=[{"kind": "bulk", "flow": "b", "bytes": 200_000}],
        )
    )
    assert s.timeouts > 0 or s.retransmissions > 0
    found = s.quality.one_way
    assert found is not None
    # the queue holds no more than the transfer; a sample from a first sending would have a timeout in it
    assert found.p99_ms < 30.2 + 1000 * 200_000 * 8 * 1.1 / 10_000_000


def test_split_connections_have_no_delay_from_host_to_host() -> None:
    s = timed(
        scenario(
            tier="model",
            link={"scheme": "split"},
            workloads=[{"kind": "bulk", "flow": "b", "bytes": 50_000}, _udp(rate_bps=50_000, duration_s=0.5)],
        )
    )
    assert (s.quality.flows["b"].one_way, s.quality.flows["b"].round_trip) == (None, None)
    assert s.quality.flows["udp"].one_way is not None
