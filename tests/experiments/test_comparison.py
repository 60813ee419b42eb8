"""COMPARISON: its cells, their scenarios, and what is made of their figures. Seeds are stated where runs are.

`tests/conformance/test_papers.py` has the rules of all papers.
"""

from typing import Any

import pytest

from channel.errors import ERASED, INTACT
from channel.hop import Arrival
from experiments.comparison import PAPER, cells, parameters
from experiments.comparison.cells import FAMILIES, METRICS, Case
from experiments.comparison.jobs import Meter, job, scenario, transfer
from experiments.comparison.traces import Trace, trace
from linklayer.plain import PlainFrame
from tcpip.segment import ACK, SYN, Flow, Segment
from testbed.errors import FadelabError
from testbed.papers import report
from testbed.papers.computing import reproduce
from testbed.papers.question import Question
from testbed.papers.results import CellResult, Results, Sample, reference
from testbed.scenario.schema import error_part

pytestmark = pytest.mark.slow

E2E = Case("table3", "e2e", "lan-32k")
FLOW = Flow(1, 2, 3, 4)


def segment(seq: int = 0, flags: int = ACK, length: int = 0) -> Segment:
    return Segment(FLOW, seq, 0, flags, 8192, length=length)


def intact(carried: Segment) -> Arrival[PlainFrame]:
    return Arrival(PlainFrame(carried), INTACT, 0, 0)


def test_every_figure_of_the_reference_is_a_cell_in_its_place() -> None:
    throughput = ("throughput_mbps",)
    expected = [
        (row["scheme"], row[setting], float(row[column]))
        for table, setting, columns in (
            ("tables2-4", "setting", (*throughput, "wireless_goodput_pct", "wired_goodput_pct")),
            ("table5", "burst_packets", throughput),
            ("figure12", "mean_error_spacing_kb", throughput),
        )
        for row in reference(cells.__file__, table)
        for column in columns
    ]
    found = [(*cell.name.split("/")[1:3], cell.paper.median) for cell in PAPER.cells]
    assert found == expected
    assert len({cell.name for cell in PAPER.cells}) == len(expected) == 3 * 35 + 6 + 30


def test_all_twelve_schemes_are_there() -> None:
    assert {row["scheme"] for row in reference(cells.__file__, "tables2-4")} == set(parameters.SCHEMES)
    assert {scheme for schemes in FAMILIES.values() for scheme in schemes} == set(parameters.SCHEMES)


def test_units_and_agreement() -> None:
    by_name = {cell.name: cell for cell in PAPER.cells}
    throughput, wired = by_name["table2/ll/lan-8k/throughput"], by_name["table2/ll/lan-8k/wired"]
    assert (throughput.unit, wired.unit) == ("Mbps", "%")
    # 1.20 Mbps and 97.9 %
    assert throughput.agrees(1.44)
    assert not throughput.agrees(1.45)
    assert wired.agrees(99.9)
    assert not wired.agrees(95.8)


def test_scenario_follows_cell_name_and_shares_the_rest() -> None:
    varied: dict[str, Any] = {"tcp": "x", "receive_buffer_bytes": None, "wired": None, "channel": None, "link": None}
    plain = {"scheme": "", "eln": ""}
    first = scenario(E2E)
    for case in (cell.case for cell in PAPER.cells):
        made = scenario(case)
        link, tcp, eln = parameters.SCHEMES[case.scheme]
        assert (made.tier, made.link.scheme, made.tcp, made.link.eln) == ("model", link, tcp, eln)
        assert made.receive_buffer_bytes == (8192 if case.setting == "lan-8k" else 32_768)
        assert (made.wired.delay_ms > 50) == (case.setting == "wan-32k")
        errors = error_part("exponential", mean_spacing_bytes=1024 * case.spacing_kb)
        if case.burst is not None:
            errors = error_part("bursts", burst_frames=case.burst, mean_spacing_bytes=65_536)
        assert made.channel.direction("up").errors == made.channel.direction("down").errors == errors
        [workload] = made.make_workloads()
        assert (workload.direction, workload.payload_bytes) == ("down", 8 * 2**20)
        assert made.model_copy(update=varied) == first.model_copy(update=varied)
        assert made.link.model_copy(update=plain) == first.link.model_copy(update=plain)
        assert made.channel.model_copy(update={"errors": None}) == first.channel.model_copy(update={"errors": None})


def test_the_same_runs_make_the_three_metrics_and_figure_12() -> None:
    jobs = [job(Case("table3", "e2e", "lan-32k", metric), ()) for metric in METRICS]
    assert jobs[0] == jobs[1] == jobs[2] == job(Case("figure12", "e2e", "lan-32k", spacing_kb=64), ())
    assert jobs[0] != job(Case("figure12", "e2e", "lan-32k", spacing_kb=32), ())


@pytest.mark.parametrize(
    "setting", ["link.scheme=slacp", "link.eln=base", "receive_buffer_bytes=9000", "channel.down.errors=none"]
)
def test_settings_leave_a_cell_what_it_is(setting: str) -> None:
    with pytest.raises(FadelabError, match=rf"--set makes {setting.split('=')[0]} of figure12/e2e/64 another one"):
        job(Case("figure12", "e2e", "lan-32k"), [setting])


def test_settings_change_all_else() -> None:
    made = scenario(E2E, ["channel.delay_ms=3", "channel.errors={model: bursts, burst_frames: 2}"])
    assert made.channel.delay_ms == 3
    assert made.channel.direction("down").errors == error_part("bursts", burst_frames=2)


def test_meter_counts_each_path_from_the_syn() -> None:
    meter = Meter()
    meter.sent("bulk", segment(flags=SYN), 1_000)
    for now in (2_000, 3_000, 4_000):
        meter.sent("bulk", segment(length=1400), now)
    data = segment(length=1400)
    meter.carried("down", intact(data), 3_500)
    meter.carried("down", Arrival(PlainFrame(data), ERASED, 0, 0), 3_500)
    meter.carried("up", intact(data), 3_500)
    meter.delivered("bulk", 1400, 5_000)
    # nothing more was read
    meter.delivered("bulk", 1400, 9_000)
    assert (meter.started_at, meter.read_at) == (1_000, 5_000)
    assert (meter.wired_bytes, meter.wireless_bytes, meter.useful_bytes) == (4200, 2800, 1400)


def test_unfinished_transfer_has_no_figures() -> None:
    """Seed 1: a second is not enough."""
    made = scenario(E2E).model_copy(update={"limit_s": 1.0})
    sample = transfer(made)
    assert sample.value == sample.counts["wired_goodput"] == sample.counts["wireless_goodput"] == float("inf")


def results(factor: dict[str, float] | None = None) -> Results:
    """All cells with the paper's figures, times a factor by the cell's name."""
    values = [(cell, cell.paper.median * (factor or {}).get(cell.name, 1.0)) for cell in PAPER.cells]
    return Results(
        "comparison", tuple(CellResult(cell, 1, (Sample(value, {"tcp_timeouts": 0}),) * 3) for cell, value in values)
    )


def misses(results: Results) -> dict[str, tuple[str, ...]]:
    """The cases that do not hold, by statement."""
    return {finding.statement.name: finding.misses for finding in PAPER.findings(results)}


def test_schemes_are_ranked_within_a_setting() -> None:
    # 0.55 is the slowest but one at 8 KB, with split at 0.54 in any order; newreno has 0.66, sack 0.68
    slow = misses(results({"table3/e2e/lan-8k/throughput": 1.21}))
    miss = "table3/e2e/lan-8k/throughput, table3/e2e-newreno/lan-8k/throughput (0/3)"
    assert slow["lan-8k/ranking"] == (miss,)
    assert slow["lan-32k/ranking"] == ()


def test_the_report_has_the_papers_tables() -> None:
    off = results({"table3/e2e/lan-32k/throughput": 2.0, "table2/ll/lan-8k/wired": 0.9})
    text = report.markdown(PAPER, off)
    assert "| e2e | throughput (Mbps) | 0.55 / 0.55 | **1.40 / 0.70** | 0.31 / 0.31 |" in text
    assert "| ll | wired goodput (%) | **88.1 / 97.9** | 97.9 / 97.9 | 98.4 / 98.4 |" in text
    assert "| e2e-smart | throughput (Mbps) | 1.12 / 1.12 | 1.25 / 1.25 |  |" in text
    assert "| ll-tcp-aware | 6 | 0.84 / 0.84 |" in text
    assert "| split-smart | 0.52 / 0.52 | 1.04 / 1.04 | 1.31 / 1.31 | 1.42 / 1.42 | 1.48 / 1.48 |" in text


def computed(*names: str) -> list[float]:
    """The medians of three replications."""
    chosen = [cell for name in names for cell in PAPER.cells if cell.name == name]
    return [result.ours.median for result in reproduce(Question(PAPER, chosen, replications=3)).cells]


def test_goodput_follows_loss_rate() -> None:
    """Seeds 1 to 3: a packet of 1444 octets is lost with 2.2 %."""
    wireless, wired = computed("table2/ll-tcp-aware/lan-32k/wireless", "table2/ll-tcp-aware/lan-32k/wired")
    assert wireless == pytest.approx(97.8, abs=0.6)
    assert wired > 99.9


def test_without_errors_the_link_has_the_papers_peak() -> None:
    """Seed 1: 1.5 Mbps in the LAN, 1.35 in the WAN, nearly."""
    for setting, peak in (("lan-8k", 1.5), ("lan-32k", 1.5), ("wan-32k", 1.35)):
        made = scenario(Case("table3", "e2e", setting))
        clean = made.channel.model_copy(update={"errors": error_part("exponential", mean_spacing_bytes=2**50)})
        assert transfer(made.model_copy(update={"channel": clean})).value == pytest.approx(peak, rel=0.01)


def test_trace_separates_local_retransmissions_from_sender() -> None:
    seen = Trace()
    seen.sent("bulk", segment(seq=99, flags=SYN), 0)
    seen.carried("down", intact(segment(seq=99, flags=SYN)), 0)
    for now in (1, 2, 3, 5, 6):
        if now in (1, 5):
            seen.sent("bulk", segment(seq=100, length=1400), now * 10**9)
        else:
            seen.carried("down", intact(segment(seq=100, length=1400)), now * 10**9)
    assert seen.wired == [(1, 0), (5, 0)]
    assert [time for time, _ in seen.air] == [2, 3, 6]
    # the third was the sender's second
    assert seen.local == [3]


def test_trace_has_windows_fast_retransmits_and_timeouts() -> None:
    """Seed 1."""
    seen = trace(Case("table4", "split", "lan-8k"), 1)
    assert max(octet for _, octet in seen.wired) > 8 * 2**20 - 1400
    # the wired side loses nothing
    assert seen.sender.fast_retransmits == seen.sender.timeouts == []
    assert len(seen.wireless.fast_retransmits) > 10
    assert seen.wireless.timeouts
    assert min(cwnd for _, cwnd in seen.wireless.cwnd) == 1400
    assert max(cwnd for _, cwnd in seen.wireless.cwnd) > 4 * 1400
