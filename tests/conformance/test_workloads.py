"""The rules of every workload, on tier `model`; a new workload is covered as soon as its file is there."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.options import check_ranges
from common.sides import SIDES, Side, peer_of
from hosts.codec import Codec, Kinds, codec
from hosts.engine.results import EndReport, Sent
from hosts.workloads import WORKLOADS, Workload, sender_of
from testbed.model.link_network import LinkNetwork
from testbed.model.traffic import Traffic
from testbed.results.summary import Summary
from testbed.scenario.file import validate
from testbed.scenario.schema import Scenario
from testbed.simulation import simulate
from tests.conformance.options import WORKLOAD

AS_JSON: Codec = codec(Annotated[Workload, Kinds(WORKLOADS)])
#: those that tier `model` runs
SIMULATED = [name for name, plugin in WORKLOADS.items() if plugin.simulated]
#: values of all types that JSON has, wrong ones for most options
VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.builds(list), st.builds(dict))


def sample(name: str, **changes: Any) -> Scenario:
    """The workload's example over a link that loses some frames and repairs most of them."""
    raw = WORKLOAD.example(name, **changes).model_dump(mode="json")
    raw |= {"tier": "model", "tcp": "sack", "trace": False}
    raw["channel"] |= {"rate_bps": 1_000_000, "errors": {"model": "bernoulli", "per": 0.05}}
    return validate(raw, "sample")


def example(name: str) -> Workload:
    [work] = WORKLOAD.example(name).make_workloads()
    return work


def carried(
    scenario: Scenario, look: Callable[[Traffic], None] = lambda traffic: None
) -> tuple[Summary, Sequence[EndReport]]:
    """The result of a run, and the reports of all ends; `look` sees the traffic when the run is over."""
    traffics: list[Traffic] = []

    def begun(network: LinkNetwork, traffic: Traffic) -> None:
        traffics.append(traffic)

    summary = simulate(scenario, begun=begun)
    [traffic] = traffics
    look(traffic)
    return summary, list(traffic.reports)


def ends(reports: Sequence[EndReport]) -> Counter[tuple[str, str, int]]:
    return Counter((report.role, report.flow, report.index) for report in reports)


@pytest.mark.parametrize("direction", SIDES)
@pytest.mark.parametrize("name", SIMULATED)
def test_each_end_reports_once_and_the_flows_are_complete(name: str, direction: Side) -> None:
    scenario = sample(name, direction=direction)
    [work] = scenario.make_workloads()
    summary, reports = carried(scenario)
    assert set(ends(reports).values()) == {1}
    assert Counter(report.role for report in reports) == {"sender": work.transfers, "receiver": work.transfers}
    hosts = {"sender": sender_of(work), "receiver": peer_of(sender_of(work))}
    assert {(report.host, report.kind) for report in reports} == {(host, name) for host in hosts.values()}
    assert all(report.host == hosts[report.role] and report.result.error is None for report in reports)
    assert {report.flow for report in reports} == set(work.ports().values()) == {flow.flow for flow in summary.flows}
    assert summary.finished
    assert all(flow.finished and flow.intact is not False and flow.bytes > 0 for flow in summary.flows)
    assert all(flow.start_s <= flow.end_s for flow in summary.flows)
    if work.payload_bytes is not None:
        assert sum(flow.bytes for flow in summary.flows) == work.payload_bytes


@pytest.mark.parametrize("name", SIMULATED)
def test_the_seed_fixes_every_report(name: str) -> None:
    first, again, other = (carried(sample(name).model_copy(update={"seed": seed})) for seed in (7, 7, 8))
    assert first == again
    assert first[1] != other[1]


@pytest.mark.parametrize("name", SIMULATED)
def test_no_end_begins_before_the_start(name: str) -> None:
    _, reports = carried(sample(name, start_s=2))
    assert min(report.result.started_ns for report in reports if isinstance(report.result, Sent)) >= 2_000_000_000


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.95])
@pytest.mark.parametrize("name", SIMULATED)
def test_a_stop_ends_each_begun_end_once(name: str, share: float) -> None:
    scenario = sample(name)
    whole, all_reports = carried(scenario)
    limit_s = share * max(flow.end_s for flow in whole.flows)

    def look(traffic: Traffic) -> None:
        assert not traffic.sending()
        count = len(traffic.reports)
        traffic.stop()
        assert len(traffic.reports) == count

    summary, reports = carried(scenario.model_copy(update={"limit_s": limit_s}), look)
    found = ends(reports)
    assert set(found.values()) == {1}
    assert found.keys() <= ends(all_reports).keys()
    assert not summary.finished
    for report in reports:
        assert report.result.error in (None, "stopped")
    # an end that had finished says the same as in the whole run, and each begun sender is among them
    for report in all_reports:
        key = report.role, report.flow, report.index
        if isinstance(report.result, Sent) and report.result.started_ns < limit_s * 1e9:
            assert key in found
        if report.result.finished_ns is not None and report.result.finished_ns < limit_s * 1e9:
            assert report in reports
    assert all(flow.bytes <= complete.bytes for flow, complete in zip(summary.flows, whole.flows, strict=True))


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_survives_json(name: str) -> None:
    work = example(name)
    assert AS_JSON.decode(json.loads(json.dumps(AS_JSON.encode(work))), "workload") == work
    check_ranges(work)


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_out_of_range_is_one_line(name: str) -> None:
    [raw] = AS_JSON.encode(example(name)).values()
    for key, value in (("port", 0), ("start_s", -1)):
        with pytest.raises(ValueError, match=f"^{key} is {value}: must be "):
            AS_JSON.decode({name: raw | {key: value}}, "workload")


@pytest.mark.parametrize("name", WORKLOADS)
@given(data=st.data())
def test_any_value_makes_a_workload_or_a_line(name: str, data: st.DataObject) -> None:
    [raw] = AS_JSON.encode(example(name)).values()
    key = data.draw(st.sampled_from(sorted(raw)))
    refusal = ""
    try:
        work = AS_JSON.decode({name: {**raw, key: data.draw(VALUES)}}, "workload")
    except ValueError as error:
        refusal = str(error)
    else:
        assert work.kind == name
    assert "\n" not in refusal


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_without_its_time_limit_lasts_or_ends_by_size(name: str) -> None:
    work = example(name)
    lasting = work.lasting()
    assert lasting.payload_bytes == work.payload_bytes
    assert lasting.ends_s is None or lasting.ends_s > 1e8 or lasting.payload_bytes is not None
