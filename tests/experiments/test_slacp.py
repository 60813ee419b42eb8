"""The SLACP paper: its cells, their scenarios, and what is made of their times. Seeds are stated where runs are.

`tests/conformance/test_papers.py` has the rules of all papers.
"""

import math
from typing import Any

import pytest

from experiments.slacp import PAPER, cells, figures, jobs, parameters
from experiments.slacp.cells import Case
from experiments.slacp.findings import headlines
from experiments.slacp.jobs import _FirstBytesClock, _Reached, job, scenario
from tcpip.segment import ACK, Flow, Segment
from testbed.papers import report
from testbed.papers.computing import reproduce
from testbed.papers.question import Question
from testbed.papers.results import Cell, CellResult, Results, Sample, reference
from testbed.papers.runs import Measurement
from testbed.scenario.schema import error_part

pytestmark = pytest.mark.slow

HIGH = Case(2, "rbdc", "high", "ref", "1x1MB", "none")


def segment(seq: int = 0, ack: int = 0, length: int = 0) -> Segment:
    return Segment(Flow(1, 2, 3, 4), seq, ack, ACK, 8192, length=length)


def test_every_row_of_the_reference_is_a_cell_in_its_place_with_its_figures() -> None:
    rows = {number: reference(cells.__file__, f"table{number}") for number in (2, 3, 4)}
    names = [
        *(f"table2/{r['dama']}/{r['error_model']}/{r['tcp']}/{r['workload']}/{r['link_layer']}" for r in rows[2]),
        *(f"table3/{r['error_model']}/{r['tcp']}/{r['link_layer']}" for r in rows[3]),
        *(f"table4/{r['error_model']}/{r['tcp']}" for r in rows[4]),
    ]
    assert [cell.name for cell in PAPER.cells] == names
    assert len(names) == 144 + 16 + 24
    for cell, row in zip(PAPER.cells, (row for table in rows.values() for row in table), strict=True):
        assert cell.paper.median == (math.inf if row["median_s"] == ">10800" else float(row["median_s"]))
        for quartile, text in ((cell.paper.p25, row.get("p25_s")), (cell.paper.p75, row.get("p75_s"))):
            assert quartile == (float(text) if text else None)


def test_replications_are_those_of_most_cells() -> None:
    # section 5: five, for which table 2 has medians alone, of very high and huge errors without SLACP
    assert {cell.replications for cell in PAPER.cells} == {32}


def test_scenario_follows_cell_name_and_shares_the_rest() -> None:
    varied = {"tcp": "x", "workloads": (), "link": None, "channel": None}
    first = scenario(HIGH)
    for cell in PAPER.cells:
        case, made = cell.case, scenario(cell.case)
        up, down = made.channel.direction("up"), made.channel.direction("down")
        assert (made.tier, made.tcp, made.link.scheme) == ("model", parameters.TCP[case.tcp], case.link)
        assert (up.assignment.kind, down.assignment.kind) == (case.dama, "cra")
        assert (up.rate_bps, down.rate_bps, up.delay_ms, down.delay_ms) == (128_000, 512_000, 400, 400)
        assert up.errors.model == down.errors.model == case.errors
        for direction in (up, down):
            assert (direction.mac_buffer_bytes, direction.bare_buffer_bytes) == (14_400, 28_800)
        [workload] = made.make_workloads()
        assert (workload.direction, len(workload.ports())) == ("up", 4 if case.workload == "4x250KB" else 1)
        assert made.model_copy(update=varied) == first.model_copy(update=varied)
        assert made.link.model_copy(update={"scheme": ""}) == first.link.model_copy(update={"scheme": ""})


def test_each_table_has_its_measurement() -> None:
    first = Case(3, "vbdc", "low", "ref", "50KB", "slacp")
    last = Case(4, "vbdc", "low", "enh+cbi", "1x1MB", "slacp")
    for case, measure in ((HIGH, jobs.elapsed), (first, jobs.first_bytes), (last, jobs.last_transfer)):
        assert job(case, ()) == Measurement(scenario(case), measure)
    # table 4 repeats two columns of table 2
    for errors in cells.ERRORS:
        for tcp in ("ref", "enh"):
            again = Case(4, "vbdc", errors, tcp, "1x1MB", "slacp")
            assert job(again, ()) == job(again._replace(table=2), ())


def test_settings_change_all_cells() -> None:
    made: Any = scenario(HIGH, ["link.slacp.block_frames=4", "channel.up.assignment.drain_ms=900"])
    up = made.channel.direction("up")
    assert (made.link.slacp.block_frames, up.assignment.drain_ms, up.errors) == (4, 900, error_part("high"))


@pytest.mark.parametrize("at_sender", [True, False])
def test_the_first_bytes_are_timed_from_the_syn_across_the_wrap(at_sender: bool) -> None:
    iss = 2**32 - 100
    clock = _FirstBytesClock(1000, at_sender=at_sender)
    clock.sent("bulk", segment(seq=iss), 50)
    clock.sent("bulk", segment(seq=iss + 1, length=1410), 60)
    clock.received("bulk", segment(ack=iss + 1), 70)
    # an ACK counts at the sender, a read at the receiver
    clock.received("bulk", segment(ack=(iss + (1000 if at_sender else 5000)) % 2**32), 80)
    clock.delivered("bulk", 5000 if at_sender else 999, 85)
    with pytest.raises(_Reached) as reached:
        clock.received("bulk", segment(ack=901), 90) if at_sender else clock.delivered("bulk", 1000, 90)
    assert reached.value.elapsed_ns == 40


def test_trace_separates_retransmissions() -> None:
    seen = figures.Trace()
    second = 1_000_000_000
    seen.sent("bulk", segment(seq=2**32 - 1), second)
    for time, seq in ((2, 0), (3, 1410), (4, 0), (5, 2820)):
        seen.sent("bulk", segment(seq=seq, length=1410), time * second)
    seen.received("bulk", segment(ack=1410), 6 * second)
    assert seen.first_sent == [(1.0, 0), (2.0, 1410), (4.0, 2820)]
    assert seen.retransmitted == [(3.0, 0)]
    assert seen.acked == [(5.0, 1410)]


def results(*rows: tuple[str, str, str, tuple[float, ...]]) -> Results:
    """Rows of table 2: DAMA, errors, workload, and our medians of the four columns."""
    by_case = {cell.case: cell for cell in PAPER.cells}
    made = [
        CellResult(by_case[Case(2, dama, errors, tcp, workload, link)], 1, (Sample(median),))
        for dama, errors, workload, ours in rows
        for (tcp, link), median in zip(cells.COLUMNS, ours, strict=False)
    ]
    return Results("slacp", tuple(made))


def test_columns_are_ordered_by_pairs() -> None:
    found = PAPER.findings(
        results(
            # the paper's: 101.19, 95.04, 95.30, 93.19; the middle two are within 5 % of one another, and of the last
            ("rbdc", "med", "4x250KB", (101, 94, 93, 95)),
            # 1125.12, 113.79, 359.58, 106.34
            ("rbdc", "high", "1x1MB", (300, 110, 400, 100)),
            # a column is missing
            ("cra", "high", "1x1MB", (240, 104, 153)),
        )
    )
    [order] = [finding for finding in found if finding.statement.name == "table2/order"]
    assert [case.name.count("rbdc/med/") for case in order.cases].count(2) == 3
    bare = "table2/rbdc/high/{}/1x1MB/none"
    assert order.misses == (f"{bare.format('enh')}, {bare.format('ref')} (0/1)",)


def test_a_reduction_needs_transfers_that_ended() -> None:
    def shares(bare_s: float) -> dict[str, float | None]:
        found = headlines(results(("rbdc", "high", "1x1MB", (bare_s, 114, 360, 106))))
        return {headline.name: headline.ours for headline in found}

    high, best = "reduction/slacp/rbdc/high", "reduction/enhancements/best"
    assert shares(math.inf) == {high: None, best: None}
    assert shares(1140) == {high: pytest.approx(0.9), best: pytest.approx(1 - 360 / 1140)}


def test_the_report_has_the_papers_tables() -> None:
    def factor(cell: Cell) -> tuple[Sample, ...]:
        return tuple(Sample(cell.paper.median * 1.5 * (1 + step / 100)) for step in (-1, 0, 1))

    whole = Results("slacp", tuple(CellResult(cell, 1, factor(cell)) for cell in PAPER.cells))
    lines = report.markdown(PAPER, whole).splitlines()
    assert "| rbdc | high | ref | **1687.7 (1679.2 to 1696.1) / 1125.1 (1019.1 to 1454.5)** | " in "".join(lines)
    assert sum(line.startswith(("| cra |", "| rbdc |", "| vbdc |")) for line in lines) == 36
    assert sum(line.startswith(("| bare |", "| SLACP |")) for line in lines) == 4
    [huge] = [line for line in lines if line.startswith("| rbdc | huge | enh |")]
    assert "never / never" in huge
    assert "**never" not in huge


def computed(*names: str, replications: int = 3) -> list[CellResult]:
    chosen = [cell for name in names for cell in PAPER.cells if cell.name == name]
    return list(reproduce(Question(PAPER, chosen, replications=replications)).cells)


def test_a_clean_constant_link_takes_the_air_time_and_little_more() -> None:
    """Seed 1; nothing is random but initial sequence numbers."""
    for result in computed("table2/cra/none/enh/1x1MB/slacp", "table2/cra/none/ref/4x250KB/none", replications=1):
        assert 744 * 31 * 424 / 128_000 < result.ours.median < 1.25 * result.cell.paper.median


def test_short_transfers_are_the_beginning_of_long_ones() -> None:
    """Seeds 1 and 2."""
    first, whole = computed("table3/low/enh/slacp", "table2/vbdc/low/enh/1x1MB/slacp", replications=2)
    for part, all_of_it in zip(first.samples, whole.samples, strict=True):
        assert part.value < 0.5 * all_of_it.value
