"""Percentiles of delays, and the delays of networks in which they are known."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.engine.delays import Delays
from testbed.model.model_run import Simulation
from testbed.results.quality import (
    Powers,
    Quality,
    RoundsPerMinute,
    _rounds_per_minute,
    joined,
    percentiles,
    trimmed_mean_us,
)
from testbed.results.show import pyplot
from testbed.results.summary import Summary
from testbed.results.transfers import draw_cdf, plot_transfers
from testbed.scenario.resolver import resolve
from testbed.scenario.schema import Scenario
from tests.harness.scenarios import FLOW, scenario, summary

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


@pytest.mark.slow
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


@given(st.lists(st.lists(st.integers(min_value=0, max_value=10_000_000))))
def test_delays_merge_as_if_one_had_counted_them_all(delays_ns: list[list[int]]) -> None:
    together, merged = Delays(), Delays()
    for part in delays_ns:
        of_part = Delays()
        for each in part:
            together.add(each)
            of_part.add(each)
        merged.merge(of_part.counts())
    assert merged.counts() == together.counts()


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


# -- round trips per minute ----------------------------------------------------------------------------------


@given(st.lists(st.integers(min_value=0, max_value=5000), min_size=1))
def test_trimmed_mean_leaves_out_the_largest_twentieth(delays_us: list[int]) -> None:
    delays = Delays()
    for each in delays_us:
        delays.add(1000 * each)
    kept = sorted(delays_us)[: -(-len(delays_us) * 95 // 100)]
    assert trimmed_mean_us(delays.counts()) == pytest.approx(np.mean(kept))
    assert trimmed_mean_us(()) is None


def _beside(rate_bps: int, delay_ms: int, **main: Any) -> Quality:
    return timed(
        scenario(
            tier="model",
            tcp="modern",
            link={"scheme": "none"},
            channel={"rate_bps": rate_bps, "delay_ms": delay_ms},
            workloads=[
                {"kind": "bulk", "flow": "load", "duration_s": 4, **main},
                {"kind": "probe", "flow": "udp", "duration_s": 4},
                {"kind": "tcp-probe", "flow": "tcp", "count": 10},
            ],
        )
    ).quality


def test_probes_of_an_idle_path_give_its_round_trip() -> None:
    found = _beside(50_000_000, 50, start_s=8).rpm
    # there and back 100 ms, and far below 1 ms of 50 Mbit/s and the LANs
    assert found.udp == pytest.approx(600, rel=0.01)
    # before the load, TCP probes do not count
    assert (found.foreign, found.responsiveness) == (None, None)


def test_responsiveness_is_the_mean_of_probes_and_of_loaded_connections() -> None:
    quality = _beside(1_000_000, 50)
    found = quality.rpm
    assert found.foreign is not None
    assert found.loaded is not None
    assert quality.round_trip is not None
    assert found.responsiveness == pytest.approx((found.foreign + found.loaded) / 2)
    # the mean of all but the largest twentieth is below that of all
    assert found.loaded > 60_000 / quality.round_trip.mean_ms
    # a queue builds up: far from the 600 of the path alone
    assert found.loaded < 300
    assert found.foreign < 300


def test_responsiveness_by_the_drafts_formula() -> None:
    found = _rounds_per_minute((((30_000, 10),), ((50_000, 10),)), ((100_000, 19), (9_000_000, 1)), ((60_000, 1),))
    assert found == RoundsPerMinute(foreign=1500, loaded=600, responsiveness=1050, udp=1000)


def test_probes_are_no_part_of_the_runs_own_figures() -> None:
    load = {"kind": "bulk", "flow": "load", "bytes": 100_000}
    probes = [{"kind": "probe", "flow": "udp", "duration_s": 4}, {"kind": "tcp-probe", "flow": "tcp", "count": 2}]
    s = timed(scenario(tier="model", workloads=[*probes, load]))
    [main] = [flow for flow in s.flows if flow.flow == "load"]
    assert (s.duration_s, s.goodput_bps) == (main.duration_s, main.goodput_bps)
    assert s.quality.one_way == s.quality.flows["load"].one_way
    assert s.quality.probe_round_trip == s.quality.flows["udp"].round_trip


# -- energy --------------------------------------------------------------------------------------------------


def test_airtime_and_energy_of_known_frames() -> None:
    s = timed(
        scenario(
            tier="model",
            link={"scheme": "none"},
            channel={"rate_bps": 1_000_000, "delay_ms": 10},
            workloads=[_udp(rate_bps=80_000, duration_s=2, drain_s=1)],
        )
    )
    # 20 frames of 8.032 ms within 3 s; the path back is silent
    assert s.quality.airtime_share == {"up": pytest.approx(20 * FRAME_BITS / 1e6 / 3), "down": 0.0}
    energy_j = 2 * 0.844 * 3 + (1.327 - 0.844 + 0.967 - 0.844) * 20 * FRAME_BITS / 1e6
    assert s.quality.energy_uj_per_bit == pytest.approx(energy_j * 1e6 / (20 * 972 * 8))


def test_two_idle_radios_take_their_idle_power() -> None:
    assert Powers(idle_w=0.5).energy_j([], 10) == 10
    assert Powers(transmit_w=3, receive_w=2, idle_w=1).energy_j([1.0, 2.0], 10) == 20 + 3 * 3


def test_probes_that_a_limit_stops_report_their_answers() -> None:
    s = Simulation(
        resolve(
            scenario(
                tier="model",
                limit_s=2.5,
                workloads=[{"kind": "bulk", "duration_s": 9}, {"kind": "probe", "flow": "udp", "duration_s": 2}],
            )
        )
    ).run()
    assert s.quality.probe_round_trip is not None
    assert s.quality.probe_round_trip.n > 5


# -- times of transfers --------------------------------------------------------------------------------------


def test_distribution_of_transfer_times() -> None:
    figure, axis = pyplot().subplots()
    draw_cdf(axis, [3.0, 1.0, 2.0, 2.0], {})
    draw_cdf(axis, [], {})
    pyplot().close(figure)
    [line] = axis.lines
    assert list(line.get_xdata()) == [1.0, 1.0, 2.0, 2.0, 3.0]
    assert list(line.get_ydata()) == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_run_draws_the_times_of_several_transfers(tmp_path: Path) -> None:
    target = tmp_path / "transfers.png"
    plot_transfers(summary(flows=(replace(FLOW, transfer_s=(1.0,)),)), target)
    assert not target.exists()
    plot_transfers(summary(flows=(replace(FLOW, transfer_s=(1.0, 2.0)),)), target)
    assert target.read_bytes().startswith(b"\x89PNG")
