"""LT-TCP: its cells, their network, and what is made of their figures. Seeds are stated where runs are.

`tests/conformance/test_papers.py` has the rules of all papers.
"""

from statistics import fmean

import pytest

from experiments.lt_tcp import PAPER, cells, parameters
from experiments.lt_tcp.cells import Case
from experiments.lt_tcp.jobs import Run, job, values
from experiments.lt_tcp.sensitivity import IMPROVEMENTS, SENSITIVITY, measure
from experiments.lt_tcp.traces import trace
from hosts.tcp.profiles import USER_PROFILES
from testbed.errors import FadelabError
from testbed.papers.results import CellResult, Results, Sample, reference

pytestmark = pytest.mark.slow


def test_every_figure_of_the_reference_is_a_cell() -> None:
    for row in reference(cells.__file__, "tables"):
        scheme = parameters.PAPERS[row["scheme"]]
        for metric, (column, _) in cells.METRICS.items():
            found = [c for c in PAPER.cells if c.case == Case(metric, scheme, int(row["per_pct"]))]
            assert len(found) == bool(row[column])
            if row[column] and float(row[column]):
                assert found[0].paper.median == float(row[column])
            else:
                assert not any(cell.paper.known for cell in found)


def test_all_schemes_are_profiles_and_the_components_add_up() -> None:
    assert set(parameters.TCP.values()) <= set(USER_PROFILES)
    assert set(parameters.ADDS_TO) < set(parameters.TCP)


@pytest.mark.parametrize(
    "setting",
    ["seconds=0", "seconds=ten", "flows=true", "flows=2.5", "red_min_packets=300", "lossy_acks=1", "delayed_ack_ms=-1"],
)
def test_settings_out_of_range_are_refused(setting: str) -> None:
    with pytest.raises(FadelabError, match=setting.split("=")[0]):
        job(PAPER.cells[0].case, [setting])


def test_settings_change_the_network() -> None:
    assert dict(values(["seconds=5", "delay_ms=7"]))["delay_ms"] == 7.0
    assert job(PAPER.cells[0].case, []) != job(PAPER.cells[0].case, ["seconds=5"])


@pytest.mark.parametrize(
    ("figures", "statement", "hits", "misses"),
    [
        ({("lt-tcp-2005", 10): 5.5, ("sack", 10): 1.2}, "five_times", 0, ("goodput/lt-tcp-2005/10, goodput/sack/10",)),
        ({("lt-tcp-2005", 30): 3.0, ("lt-tcp-2005", 40): 1.4}, "lt-tcp/collapse", 1, ()),
        ({("lt-tcp", 10): 5.5, ("lt-tcp", 20): 4.0}, "goal", 0, ("goodput/lt-tcp/10", "goodput/lt-tcp/20")),
        ({("lt-tcp-2005", 10): 6.0, ("sack", 10): 2.0}, "collapse", 0, ("goodput/sack/10, goodput/lt-tcp-2005/10",)),
        ({("lt-tcp-2005", 10): 6.0, ("sack", 10): 1.5}, "collapse", 1, ()),
        (
            {("sack", 10): 1.0, ("lt-ecn-2005", 10): 2.0, ("lt-mss-2005", 10): 2.0},
            "components/goodput",
            1,
            ("goodput/lt-mss-2005/10, goodput/lt-ecn-2005/10",),
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


def test_short_runs_have_the_papers_order() -> None:
    # seed 1; tier model
    def goodput(scheme: str, per_pct: int, *settings: str) -> float:
        return Run(scheme, per_pct, values(["seconds=20", *settings]))(1).value

    for per_pct, least in ((0, 7.5), (10, 6.0), (30, 4.0)):
        assert goodput("lt-tcp", per_pct, "seconds=5", "access_delay_ms=0") > least
    assert 2 * goodput("sack", 10) < goodput("lt-ecn-2005", 10) < goodput("lt-proactive-2005", 10)


def test_figures_are_of_one_run() -> None:
    sample = Run("lt-tcp", 20, values(["seconds=3"]))(1)
    assert sample.counts["throughput"] > sample.value
    assert sample.counts["proactive"] > sample.counts["reactive"] > 0


def test_a_trace_follows_the_loss() -> None:
    seen = trace(Case("goodput", "lt-tcp", 0), 1, ["flows=2", "access_delay_ms=0"], 4.0, [(2.0, 0.3)])
    assert len(seen.times) == len(seen.cwnd) == len(seen.queue) == 80
    assert seen.estimate[38] < 0.15 < 0.2 < fmean(seen.estimate[-10:])
    assert (seen.per[38], seen.per[-1]) == (0.0, 0.3)
    assert max(seen.smss) <= 1000


def test_an_empty_bottleneck_sends_the_papers_throughput_and_goodput() -> None:
    # tables II, IV and V, without losses: 9.52 and 9.158. They give the size of packets and of a megabit; seed 1, slow
    # start included
    sample = Run("sack", 0, values(["seconds=60"]))(1)
    assert sample.counts["throughput"] == pytest.approx(9.52, rel=0.02)
    assert sample.value / sample.counts["throughput"] == pytest.approx(9.158 / 9.52, rel=0.002)


def test_lossy_acks_lose_acks_and_rfc_3168s_red_drops_above_its_threshold() -> None:
    # seed 1
    short = ["seconds=10"]
    clean, lossy = (Run("sack", 30, values([*short, f"lossy_acks={lossy}"]))(1) for lossy in ("false", "true"))
    assert lossy.value < clean.value / 2
    rare = [*short, "red_min_packets=5", "red_max_packets=6", "red_weight=0.5", "red_gentle=false"]
    marks, drops = (Run("sack", 0, values([*rare, f"red_mark_above={above}"]))(1) for above in ("true", "false"))
    assert marks.counts["queue_drops"] < 20 < 100 < drops.counts["queue_drops"]


def test_sensitivity_changes_what_it_says() -> None:
    published = SENSITIVITY[0]
    lost = next(change for change in SENSITIVITY if "lossy_acks" in change.network)
    goodputs = [measure("sack", 30, change, 10, [1])[0] for change in (published, lost)]
    assert goodputs[1] < goodputs[0]
    for change in (*SENSITIVITY, *IMPROVEMENTS):
        Run("lt-tcp", 10, values([f"{key}={str(value).lower()}" for key, value in change.network.items()]))
        USER_PROFILES["lt-tcp"].config.but(**change.tcp)
