"""Delays under load on the page of a past run: percentiles and distributions that agree with the summary."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from common.units import MS
from dashboard.store import Store
from hosts.engine.delays import Delays
from telemetry.records import Record
from testbed.results.quality import Percentiles, percentiles
from tests.harness.browser import Stage, visit
from tests.harness.dashboard_runs import TCP, Page, application, keep
from tests.harness.scenarios import FLOW

pytestmark = pytest.mark.patient

RUN, OTHER = (f"20260102-0{minute}05-sample-emulated-slacp-s1" for minute in (304, 305))
#: a long tail: one in a hundred waits twenty times as long
SRTTS_MS = [50.0 + step % 40 + (1000.0 if step % 100 == 7 else 0.0) for step in range(400)]
MISCOUNTED = {"n": 399, "p50_ms": 1, "p95_ms": 2, "p99_ms": 3}
FLOWS = (
    replace(FLOW, flow="bulk", direction="up"),
    replace(FLOW, flow="back", direction="down"),
)


def tcp() -> list[Record]:
    """Records of the main flow, and of one in the other direction, whose times do not count."""
    return [
        replace(TCP, time_ns=(step + 1) * 100 * MS, host=host, flow=flow, srtt_ms=srtt_ms * factor)
        for step, srtt_ms in enumerate(SRTTS_MS)
        for host, flow, factor in (("h1", "bulk", 1), ("h2", "back", 7))
    ]


def summed_up() -> Percentiles:
    """What the run's summary says of these times."""
    smoothed = Delays()
    for srtt_ms in SRTTS_MS:
        smoothed.add(round(srtt_ms * 1e6))
    found = percentiles(smoothed.counts())
    assert found is not None
    return found


def quality(**changes: Any) -> dict[str, Any]:
    one_way = {"n": 5000, "mean_ms": 40.0, "p50_ms": 31.5, "p95_ms": 88.0, "p99_ms": 120.25}
    return {"one_way": one_way, "round_trip": None, "smoothed": asdict(summed_up())} | changes


def test_distribution_passes_through_the_percentiles_of_the_summary(tmp_path: Path) -> None:
    keep(tmp_path, RUN, tcp(), quality=quality(), flows=FLOWS)
    one_way, smoothed = Page(application(tmp_path)).get(f"/api/runs/{RUN}/series")["delays"]
    assert (one_way["label"], one_way["p50_ms"], one_way["p99_ms"], one_way["curve"]) == ("one way", 31.5, 120.25, [])
    expected = summed_up()
    assert (smoothed["n"], smoothed["p95_ms"]) == (400, expected.p95_ms)
    at = {share: delay for delay, share in smoothed["curve"]}
    assert (at[0.5], at[0.95], at[0.99]) == (expected.p50_ms, expected.p95_ms, expected.p99_ms)
    assert at[1.0] == max(SRTTS_MS)
    assert smoothed["curve"] == sorted(smoothed["curve"])
    # each point is the share of the times that are not above it
    for delay, share in smoothed["curve"]:
        assert sum(srtt_ms < delay for srtt_ms in SRTTS_MS) < 400 * share <= sum(each <= delay for each in SRTTS_MS)


@pytest.mark.parametrize("told", [{}, {"smoothed": None}, {"smoothed": MISCOUNTED}])
def test_times_that_the_summary_does_not_count_are_not_drawn(tmp_path: Path, told: dict[str, Any]) -> None:
    keep(tmp_path, RUN, tcp(), quality=quality(**told) if told else {}, flows=FLOWS)
    assert Store([tmp_path]).picture(RUN).curves
    found = Page(application(tmp_path)).get(f"/api/runs/{RUN}/series")["delays"]
    assert all(row["curve"] == [] for row in found)
    assert len(found) == {0: 0, 1: 1 + bool(told.get("smoothed"))}[len(told)]


def test_paths_of_mptcp_count_together_and_have_lines_of_their_own(tmp_path: Path) -> None:
    fast, slow = SRTTS_MS, [300.0 + step for step in range(100)]
    kept = [
        replace(TCP, time_ns=(step + 1) * 100 * MS, flow=f"mptcp/{path}", srtt_ms=srtt_ms)
        for path, times in ((1, fast), (2, slow))
        for step, srtt_ms in enumerate(times)
    ]
    both = Delays()
    for srtt_ms in (*fast, *slow):
        both.add(round(srtt_ms * 1e6))
    expected = percentiles(both.counts())
    assert expected is not None
    flows = (replace(FLOW, flow="mptcp", direction="up"),)
    keep(tmp_path, RUN, kept, quality=quality(smoothed=asdict(expected)), flows=flows)
    _, joint, first, second = Page(application(tmp_path)).get(f"/api/runs/{RUN}/series")["delays"]
    assert {share: delay for delay, share in joint["curve"]}[0.95] == expected.p95_ms
    assert [row["label"] for row in (first, second)] == ["smoothed RTT, path 1", "smoothed RTT, path 2"]
    assert (first["n"], first["p99_ms"], first["curve"][-1]) == (400, summed_up().p99_ms, [max(fast), 1.0])
    assert (second["n"], second["p50_ms"], second["curve"][0]) == (100, 349.0, [300.0, 0.01])


@pytest.mark.slow
def test_both_runs_lie_over_each_other(browser: Browser, stage: Stage) -> None:
    for name in (RUN, OTHER):
        keep(stage.runs, name, tcp(), quality=quality(), flows=FLOWS)
    with visit(browser, stage, f"#/compare/{RUN}/{OTHER}", viewport={"width": 390, "height": 844}) as page:
        figure = page.locator("#past .delays")
        expect(figure.locator("svg path.delay[data-slot=B]")).to_have_count(4)
        # p50, p95 and p99 of two kinds in two runs
        expect(figure.locator("circle.dot")).to_have_count(12)
        expected = summed_up()
        row = figure.get_by_role("row").filter(has_text="smoothed RTT").first
        expect(row).to_contain_text(f"{expected.p50_ms:.1f} ms")
        expect(row).to_contain_text(f"{expected.p95_ms:.1f} ms")
        expect(row).to_contain_text(f"{expected.p99_ms:.1f} ms")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
