"""Names of metrics, and their numbers in a result."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from testbed.results.metrics import SummaryError, check_metric, metric
from testbed.simulation import simulate
from tests.harness.model_runs import model
from tests.harness.scenarios import FLOW, summary


@pytest.mark.parametrize(
    "name",
    ["goodput_bps", "link.up.retransmissions", "link.down.fec_repairs", "flows.12.duration_s", "split.resets",
     "flows.1.transfer_s.p95", "quality.one_way.p99_ms", "quality.flows.bulk.round_trip.n", "quality.rpm.foreign",
     "quality.airtime_share.up", "quality.energy_uj_per_bit", "quality.probe_round_trip.p50_ms", "jain"],
)  # fmt: skip
def test_names_of_metrics(name: str) -> None:
    check_metric(name)


@pytest.mark.parametrize(
    "name",
    ["nothing", "link", "link.up", "link.sideways.per", "link.retransmissions.up", "flows.x.duration_s", "flows.0.per",
     "folder", "quality", "quality.rpm", "quality.nothing.p50_ms", "quality.flows.bulk.p50_ms", "flows.0.bytes.p50",
     "flows.0.transfer_s.p10"],
)  # fmt: skip
def test_other_names_are_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(ValueError, match=f"no metric '{name}': choose from "):
        check_metric(name)


@pytest.mark.parametrize(
    ("name", "number"),
    [("a", 1.0), ("b.c", 2.5), ("flows.1.d", 3.0), ("flows.2.d", None), ("a.b", None), ("none", None), ("word", None)],
)
def test_numbers_of_a_result(name: str, number: float | None) -> None:
    result = {"a": True, "b": {"c": 2.5}, "flows": [{"d": 2}, {"d": 3}], "none": None, "word": "7"}
    assert metric(result, name) == number


@pytest.mark.parametrize(
    ("name", "number"),
    [
        *[(name, math.inf) for name in ("duration_s", "flows.0.duration_s", "flows.0.end_s")],
        *[("flows.1.duration_s", 4.0), ("flows.2.duration_s", 4.0)],
        *[("goodput_bps", 2e6), ("flows.0.goodput_bps", 2e6), ("flows.0.start_s", 0.0), ("finished", 0.0)],
    ],
)
def test_duration_of_a_transfer_that_was_cut_off_is_infinite(name: str, number: float) -> None:
    flows = replace(FLOW, finished=False), FLOW, replace(FLOW, direction="down")
    result = json.loads(json.dumps(summary(flows=flows, finished=False).plain()))
    assert metric(result, name) == number


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("jain", {"flows": 5}),
        ("jain", {"flows": [{"kind": "none of ours"}]}),
        ("jain", {"flows": [{"kind": "bulk", "direction": "up", "goodput_bps": "much"}] * 2}),
        ("jain", {"flows": [{"kind": "bulk", "direction": "up", "goodput_bps": 1e200}] * 2}),
        ("flows.0.transfer_s.p95", {"flows": [{"transfer_s": ["x", 1]}]}),
        ("flows.0.transfer_s.p95", {"flows": [{"transfer_s": 1}]}),
        ("duration_s", {"duration_s": 1, "flows": {"a": 1}}),
        ("duration_s", {"duration_s": 1, "flows": [1]}),
    ],
)
def test_summary_of_a_stranger_is_refused_in_one_line(name: str, result: dict[str, Any]) -> None:
    with pytest.raises(SummaryError, match=rf"^summary\.json: {name} is of another form$"):
        metric(result, name)


@pytest.mark.parametrize("result", [{"quality": []}, {"quality": [[1]]}, {"quality": 5}, {"quality": {"one_way": "x"}}])
def test_figure_that_is_no_number_is_none(result: dict[str, Any]) -> None:
    assert metric(result, "quality.one_way.p99_ms") is None


def test_duration_of_a_run_is_that_of_its_main_direction() -> None:
    flows = FLOW, replace(FLOW, direction="down", finished=False)
    assert metric(summary(flows=flows, finished=False).plain(), "duration_s") == 4.0


@pytest.mark.parametrize(
    ("work", "duration_s"),
    [
        ({"kind": "bulk", "bytes": 100_000_000}, math.inf),
        ({"kind": "short", "bytes": 100_000, "count": 1000}, math.inf),
        ({"kind": "bulk", "duration_s": 3}, 3.0),
        ({"kind": "bulk", "bytes": 100_000_000, "duration_s": 3}, 3.0),
        ({"kind": "onoff-udp", "duration_s": 2}, 2.0),
    ],
)
def test_workloads_with_a_set_duration_are_not_censored(work: dict[str, object], duration_s: float) -> None:
    result = simulate(model(workloads=[work], limit_s=4))
    assert metric(result.plain(), "duration_s") == duration_s
    assert result.duration_s == min(duration_s, 4)
    assert result.goodput_bps > 0


def test_percentiles_of_transfer_times_are_nearest_ranks() -> None:
    times = [float(each) for each in range(20, 0, -1)]
    result: dict[str, Any] = {"flows": [{"transfer_s": []}, {"transfer_s": times, "finished": True}]}
    assert [metric(result, f"flows.1.transfer_s.{name}") for name in ("p50", "p95", "p99")] == [10, 19, 20]
    assert (metric(result, "flows.0.transfer_s.p50"), metric(result, "flows.2.transfer_s.p50")) == (None, None)
    result["flows"][1]["finished"] = False
    assert metric(result, "flows.1.transfer_s.p50") == math.inf


@pytest.mark.parametrize(
    ("goodputs", "index"),
    # Jain, Chiu, Hawe: 1 where all have the same, k / n where k of n have all; (1 + 2 + 3)^2 / (3 * 14)
    [((5, 5, 5, 5), 1.0), ((8, 0, 0, 0), 0.25), ((3, 3, 0), 2 / 3), ((1, 2, 3), 36 / 42), ((7,), None), ((0, 0), None)],
)
def test_jain_index_is_of_the_flows_of_the_first_ones_direction(goodputs: tuple[int, ...], index: float | None) -> None:
    flows = [replace(FLOW, goodput_bps=float(each)) for each in goodputs]
    # the others are no part of it
    flows += replace(FLOW, direction="down"), replace(FLOW, kind="probe")
    found = metric(summary(flows=tuple(flows)).plain(), "jain")
    assert found == (None if index is None else pytest.approx(index))
