"""The comparison of slacp-adaptive with fixed settings (`experiments/adaptive/compare.py`)."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from experiments.adaptive import compare
from experiments.adaptive.compare import Point, Setting, Task
from experiments.adaptive.eta import LINKS, Figures
from testbed.campaigns.journal import Journal
from testbed.scenario.resolver import resolve

SLACP, ARQ, ADAPTIVE = Setting(link="slacp"), Setting(link="arq, 5 retries"), Setting(link="slacp-adaptive", budget=3)
FIGURES = Figures(goodput_bps=1e6, residual=0, p50_ms=50, p99_ms=100, dropped=0, timeouts=0, busy=1)


@pytest.mark.parametrize(
    ("slacp", "arq", "behind"),
    [
        # the better of both
        (Point(1.0e6, 90), Point(1.25e6, 100), 0.2),
        # a longer delay does not count
        (Point(1.0e6, 90), Point(1.25e6, 101), 0),
        (Point(0.8e6, 90), Point(1.25e6, 101), -0.25),
        (Point(0, 90), Point(1.25e6, 101), -1),
    ],
)
def test_behind_is_what_lacks_to_best_fixed_goodput_at_equal_or_lower_delay(
    slacp: Point, arq: Point, behind: float
) -> None:
    points = {SLACP: slacp, ARQ: arq, ADAPTIVE: Point(1e6, 100), replace(ADAPTIVE, budget=6): Point(9e6, 50)}
    assert compare.behind(points, ADAPTIVE) == pytest.approx(behind)


def test_tables_have_medians_over_seeds_and_say_what_is_behind(tmp_path: Path) -> None:
    with Journal(tmp_path / "compare.jsonl") as journal:
        for setting, goodputs in ((SLACP, (0.5e6, 1e6, 1.2e6)), (ADAPTIVE, (0.8e6, 0.9e6, 3e6))):
            for seed, goodput in enumerate(goodputs):
                figures = asdict(replace(FIGURES, goodput_bps=goodput))
                journal.append({"case": "bursts 5", "setting": asdict(setting), "seed": seed, "figures": figures})
    points = compare.collect(tmp_path / "compare.jsonl")
    assert list(compare.lines(points))[-1] == "| bursts 5 | 1000, 100 | 900, 100 (-10 %) |"
    assert list(compare.verdicts(points))[-1] == "| 3 rt | 0 of 1 | bursts 5: 10 % |"


def test_case_of_table_2_is_its_cell_with_another_link() -> None:
    assert len(compare.table2()) == 72
    task = Task("table2/vbdc/high/enh/4x250KB", Setting(link="arq, 2 retries"), 5)
    made: Any = compare.scenario(task)
    assert (made.link.scheme, made.link.arq.resend_after_ms, made.seed) == ("arq", 2400, 5)
    up = made.channel.direction("up")
    assert (up.assignment.kind, up.errors.model, up.rate_bps, len(made.make_workloads())) == (
        "vbdc",
        "high",
        128_000,
        1,
    )


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("case", [*compare.TRACES, *compare.STEPS, *compare.BURSTS])
def test_cases_of_lossy_link_have_their_errors_in_both_directions(case: str, link: str) -> None:
    setting = Setting(link=link, budget=2 if link == "slacp-adaptive" else 0)
    made = compare.scenario(Task(case, setting, 1))
    assert made.link.scheme == link.partition(",")[0]
    models = {resolve(made).stations[side].hop.errors.plugin.name for side in ("up", "down")}
    assert models == {
        "trace" if case in compare.TRACES else "bernoulli" if case in compare.STEPS else "gilbert-elliott"
    }


def test_fixed_link_may_have_the_queue_of_slacp_adaptive() -> None:
    adaptive, with_queue, without = (
        compare.scenario(Task("outage 2 s", setting, 1)).link.queue
        for setting in (ADAPTIVE, replace(SLACP, queue=True), SLACP)
    )
    assert with_queue == adaptive != without


@pytest.mark.slow
def test_outage_in_mid_run_stops_all_frames_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "STEPS", {"outage": ((0, 0.0), (20, 1), (40, 0.0))})
    without = compare.measure(Task("outage", Setting(link="slacp"), 1)).goodput_bps
    monkeypatch.setattr(compare, "STEPS", {"outage": ((0, 0.0),)})
    full = compare.measure(Task("outage", Setting(link="slacp"), 1)).goodput_bps
    # 20 of 55 seconds, and the time that TCP needs to come back
    assert 0.4 < without / full < 35 / 55
