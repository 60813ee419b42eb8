"""LT-TCP: its cells, their network, and what is made of their figures. Seeds are stated where runs are.

`tests/conformance/test_papers.py` has the rules of all papers.
"""

from statistics import fmean

import pytest

from experiments.lt_tcp import PAPER, cells, parameters
from experiments.lt_tcp.cells import Case
from experiments.lt_tcp.jobs import Run, job, values
from experiments.lt_tcp.traces import trace
from hosts.tcp.profiles import USER_PROFILES
from testbed.errors import FadelabError
from testbed.papers.results import CellResult, Results, Sample, reference

pytestmark = pytest.mark.slow


def test_every_figure_of_the_reference_is_a_cell() -> None:
    for row in reference(cells.__file__, "tables"):
        if row["scheme"] in parameters.TCP:
            for metric, (column, _) in cells.METRICS.items():
                found = [c for c in PAPER.cells if c.case == Case(metric, row["scheme"], int(row["per_pct"]))]
                assert len(found) == bool(row[column])
                if row[column] and float(row[column]):
                    assert found[0].paper.median == float(row[column])
                else:
                    assert not any(cell.paper.known for cell in found)


def test_all_schemes_are_profiles_and_the_components_add_up() -> None:
    assert set(parameters.TCP.values()) <= set(USER_PROFILES)
    assert set(parameters.ADDS_TO) < set(parameters.TCP)


@pytest.mark.parametrize("setting", ["seconds=0", "seconds=ten", "flows=true", "flows=2.5", "red_min_packets=300"])
def test_settings_out_of_range_are_refused(setting: str) -> None:
    with pytest.raises(FadelabError, match=setting.split("=")[0]):
        job(PAPER.cells[0].case, [setting])


def test_settings_change_the_network() -> None:
    assert dict(values(["seconds=5", "delay_ms=7"]))["delay_ms"] == 7.0
    assert job(PAPER.cells[0].case, []) != job(PAPER.cells[0].case, ["seconds=5"])


@pytest.mark.parametrize(
    ("figures", "statement", "hits", "misses"),
    [
        ({("lt-tcp", 10): 5.5, ("lt-tcp", 20): 4.0}, "reached", 1, ("goodput/lt-tcp/20",)),
        ({("lt-tcp", 10): 5.5, ("lt-tcp", 20): 4.0}, "goal", 0, ("goodput/lt-tcp/10", "goodput/lt-tcp/20")),
        ({("lt-tcp", 10): 6.0, ("sack", 10): 2.0}, "collapse", 0, ("goodput/sack/10, goodput/lt-tcp/10",)),
        ({("lt-tcp", 10): 6.0, ("sack", 10): 1.5}, "collapse", 1, ()),
        (
            {("sack", 10): 1.0, ("lt-ecn", 10): 2.0, ("lt-mss", 10): 2.0},
            "components/goodput",
            1,
            ("goodput/lt-mss/10, goodput/lt-ecn/10",),
        ),
    ],
)
def test_findings_name_what_does_not_hold(
    figures: dict[tuple[str, int], float], statement: str, hits: int, misses: tuple[str, ...]
) -> None:
    cases = {Case("goodput", *key): value for key, value in figures.items()}
    computed = [CellResult(cell, 1, (Sample(cases[cell.case]),)) for cell in PAPER.cells if cell.case in cases]
    found = {each.statement.name: each for each in PAPER.findings(Results("lt_tcp", tuple(computed)))}
    assert (found[statement].hits, found[statement].misses) == (hits, tuple(f"{miss} (0/1)" for miss in misses))


def test_five_seconds_have_the_papers_order() -> None:
    # seed 1; tier model
    def goodput(scheme: str, per_pct: int) -> float:
        return Run(scheme, per_pct, values(["seconds=5"]))(1).value

    assert goodput("lt-tcp", 10) > 6.0
    assert goodput("lt-tcp", 30) > 4.0
    assert goodput("lt-tcp", 0) > 7.5
    assert 4 * goodput("sack", 10) < goodput("lt-ecn", 10) < goodput("lt-proactive", 10)


def test_figures_are_of_one_run() -> None:
    sample = Run("lt-tcp", 20, values(["seconds=3"]))(1)
    assert sample.counts["throughput"] > sample.value
    assert sample.counts["proactive"] > sample.counts["reactive"] > 0


def test_a_trace_follows_the_loss() -> None:
    seen = trace(Case("goodput", "lt-tcp", 0), 1, ["flows=2"], 4.0, [(2.0, 0.3)])
    assert len(seen.times) == len(seen.cwnd) == len(seen.queue) == 80
    assert seen.estimate[38] < 0.15 < 0.2 < fmean(seen.estimate[-10:])
    assert (seen.per[38], seen.per[-1]) == (0.0, 0.3)
    assert max(seen.smss) <= 500
