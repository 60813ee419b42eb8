"""SLOWLINK: its cells, their scenarios, and the findings of the paper on medians. Seeds are stated where runs are.

`tests/conformance/test_papers.py` has the rules of all papers.
"""

from typing import Any

import pytest

from experiments.slowlink import PAPER, parameters
from experiments.slowlink.cells import Case
from experiments.slowlink.findings import STATEMENTS
from experiments.slowlink.jobs import FirstBytes, drawn, four, one, scenario
from experiments.slowlink.traces import trace
from tcpip.segment import ACK, RST, SYN, Flow, Segment
from testbed.errors import FadelabError
from testbed.model.link_network import LinkNetwork
from testbed.model.traffic import Traffic
from testbed.papers.computing import reproduce
from testbed.papers.paper import chosen
from testbed.papers.question import Question
from testbed.papers.results import NO_FIGURE, CellResult, Results, Sample
from testbed.papers.runs import seeded
from testbed.papers.statements import Finding
from testbed.simulation import simulate

pytestmark = pytest.mark.slow

#: seeds on which no parameter was chosen
FIRST_SEED, REPLICATIONS = 2001, 5
ONE = Case("one", "20", "steady", "newreno", "whole")
FOUR = Case("four", "7", "delays", "window", "slowest")


def found_in(results: Results) -> dict[str, Finding]:
    return {finding.statement.name: finding for finding in PAPER.findings(results)}


def test_every_flow_count_queue_delay_and_variant_is_there_once() -> None:
    assert len(PAPER.cells) == (2 + 3) * 2 * 2 * len(parameters.VARIANTS)
    assert {cell.paper for cell in PAPER.cells} == {NO_FIGURE}
    assert min(cell.replications for cell in PAPER.cells) >= 20
    assert all(statement.cases for statement in STATEMENTS)


def test_scenario_follows_cell_name_and_shares_the_rest() -> None:
    varied: dict[str, Any] = {"tcp": "x", "link": None, "channel": None, "workloads": ()}
    for case in (cell.case for cell in PAPER.cells):
        made = scenario(case)
        assert made.model_copy(update=varied) == scenario(ONE).model_copy(update=varied)
        assert made.tcp == parameters.VARIANTS[case.variant].tcp
        assert made.link.queue.option_values(["limit_packets"]) == {"limit_packets": int(case.queue)}
        assert len(made.workloads) == (1 if case.place == "one" else 4)
        excess = made.channel.direction("down").excess_delay
        assert excess == made.channel.direction("up").excess_delay
        assert (excess is not None) == (case.delays == "delays")
        assert made.link.filters == (("window",) if "window" in case.variant else ())


@pytest.mark.parametrize(
    ("queue", "variant", "packets"),
    [("20", "window", 22), ("7", "window", 9), ("20", "window-misset", 9), ("7", "window-misset", 22)],
)
def test_window_is_set_for_a_queue(queue: str, variant: str, packets: int) -> None:
    link = scenario(Case("four", queue, "steady", variant, "slowest")).link
    assert link.window.shared_bytes == packets * parameters.MSS_BYTES  # type: ignore[attr-defined]


@pytest.mark.parametrize("setting", ["link.queue={kind: red}", "link.window.shared_bytes=9", "link.filters=snoop"])
def test_settings_do_not_make_a_cell_another_one(setting: str) -> None:
    with pytest.raises(FadelabError):
        scenario(FOUR, [setting])
    assert scenario(FOUR, ["channel.rate_bps=14400"]).channel.rate_bps == 14_400


def test_replications_are_paired() -> None:
    cases = [scenario(ONE._replace(variant=variant)) for variant in ("newreno", "window")]
    first, second = (drawn(seeded(made, 5)) for made in cases)
    assert first.wired == second.wired != drawn(seeded(cases[0], 6)).wired
    starts = [[part.start_s for part in drawn(seeded(scenario(FOUR), seed)).workloads] for seed in (5, 5, 6)]
    assert starts[0] == starts[1] != starts[2]
    assert len(set(starts[0])) == 4


def test_first_bytes_count_from_each_flows_syn_to_their_acknowledgement() -> None:
    clock = FirstBytes(1000)
    flow = Flow(1, 2, 3, 4)
    for name, begins in (("a", 100), ("b", 300)):
        clock.sent(name, Segment(flow, 2**32 - 10, 0, SYN, 9), begins)
    assert clock.latest_s(2) == float("inf")
    clock.received("a", Segment(flow.reversed(), 0, 0, RST, 0), 400)
    # one number is the SYN's
    clock.received("a", Segment(flow.reversed(), 0, 990, ACK, 9), 500)
    clock.received("a", Segment(flow.reversed(), 0, 991, ACK, 9), 600)
    clock.received("b", Segment(flow.reversed(), 0, 5000, ACK, 9), 700)
    assert clock.latest_s(2) == pytest.approx(500e-9)


def test_runs_tell_times_that_fit_the_link() -> None:
    single = one(seeded(scenario(ONE), 1))
    # 391 packets of 300 octets at 9600 bit/s
    assert 97.7 < single.value < 120
    assert 20 < single.counts["first_s"] < single.value
    parallel = four(seeded(scenario(FOUR), 1))
    assert 195 < parallel.value < 400
    assert 2 < parallel.counts["start_s"] < parallel.counts["fastest_s"] < parallel.value


def test_trace_has_the_drops_of_the_overshoot_alone() -> None:
    [flow] = trace(ONE, 1).flows.values()
    run = one(seeded(scenario(ONE), 1))
    assert len(flow.drops) == run.counts["congestion_losses"] > 20
    assert len(flow.again) == run.counts["tcp_retransmissions"]
    assert flow.acked[-1][1] >= parameters.ONE_BYTES
    [calm] = trace(ONE._replace(variant="window"), 1).flows.values()
    assert (calm.drops, calm.again) == ([], [])


def test_filter_does_what_the_receivers_own_window_does() -> None:
    """The paper changed the receiver's TCP; `hosts/tcp/shared.py` does so for ours."""
    case = Case("four", "20", "steady", "window", "slowest")
    made = drawn(seeded(scenario(case), 1))
    own = made.model_copy(update={"link": made.link.model_copy(update={"filters": ()})})

    def limit(network: LinkNetwork, traffic: Traffic) -> None:
        network.hosts["h1"].shared.window_bytes = parameters.window_bytes("20")

    by_filter, by_host = simulate(made), simulate(own, begun=limit)
    assert by_host.link["down"].congestion_losses < simulate(own).link["down"].congestion_losses / 4
    for one_end, other_end in zip(by_filter.flows, by_host.flows, strict=True):
        assert one_end.duration_s == pytest.approx(other_end.duration_s, rel=0.05)


@pytest.mark.parametrize(
    ("sack_s", "newreno_s", "misses"),
    [(90.0, 100.0, ()), (100.0, 90.0, ("one/20/steady/sack/whole, one/20/steady/newreno/whole (0/1)",))],
)
def test_findings_say_for_which_pairs_they_do_not_hold(sack_s: float, newreno_s: float, misses: tuple[str]) -> None:
    by_name = {cell.name: cell for cell in PAPER.cells}
    pair = tuple(
        CellResult(by_name[f"one/20/steady/{tcp}/whole"], 1, (Sample(value, {"congestion_losses": 0.0}),))
        for tcp, value in (("sack", sack_s), ("newreno", newreno_s))
    )
    found = found_in(Results("slowlink", pair))["one/sack_whole"]
    assert (len(found.cases), found.misses) == (1, misses)


def test_what_holds_on_fresh_seeds() -> None:
    """Statements that hold for every pair; those that do not hold yet are in docs/papers/slowlink.md, with no test."""
    parallel = (f"four/*/steady/{name}/*" for name in parameters.VARIANTS if "fack" not in name)
    delayed = (f"one/*/delays/{name}/whole" for name in parameters.VARIANTS if "fack" not in name)
    cells = chosen(PAPER, ("one/*/steady/*", *parallel, *delayed))
    found = found_in(reproduce(Question(PAPER, cells, replications=REPLICATIONS, first_seed=FIRST_SEED)))
    one = ("one/sack_first", "one/sack_whole", "one/window_best", "one/window_misset")
    for name in (*one, "four/window_best", "four/window_fairest", "four/window_misset"):
        assert found[name].misses == (), name
