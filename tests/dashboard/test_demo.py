"""The demo end to end: real TCP over virtual radios, a real browser, and changes by the live controls."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from dashboard.charts import CHARTS
from telemetry.parquet import read_records
from telemetry.records import BeliefRecord
from tests.harness.browser import pictures, visit
from tests.harness.dashboards import FREE, Dashboard, running
from tests.harness.radios import needs_vusrp
from tests.harness.waiting import wait_for
from tests.hosts.harness import needs_network

pytestmark = [*needs_network, needs_vusrp]

#: the demo's schemes have no beliefs
SHOWN = [chart for chart in CHARTS if any(line.record is not BeliefRecord for line in chart.lines)]
#: where no QPSK frame comes through whole
DEAF_DB = 5
#: delays that the documentation promises, by the times of the records
REACTION_S = 2.0


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Dashboard]:
    with running(*FREE, "--demo", "--out", tmp_path / "runs") as dashboard:
        yield dashboard


def errors(page: Page) -> list[float]:
    """What the chart of errors says now, in percent."""
    values = page.locator("#live [data-chart=per] .chip-value").all_inner_texts()
    return [float(value.replace("−", "-")) for value in values if value not in ("", "–")]


def folder_of(runs: Path, scheme: str) -> Path:
    [folder] = [path.parent for path in runs.glob(f"*-{scheme}-*/summary.json")]
    return folder


def rows(runs: Path, measurement: str) -> list[dict[str, Any]]:
    """The records of the run with SLACP."""
    return read_records(folder_of(runs, "slacp"), measurement)


def test_the_demo(browser: Browser, demo: Dashboard, tmp_path: Path) -> None:
    with visit(browser, demo, f"?token={demo.token}", viewport={"width": 1920, "height": 1600}) as page:
        expect(page.locator("#live .chart")).to_have_count(len(SHOWN))
        # all at once: the radios leave the page little of the machine, and each question costs it a turn
        canvases = [f"[data-chart={chart.name}] canvas" for chart in SHOWN]
        wait_for(lambda: page.evaluate("all => all.every((one) => document.querySelector(`#live ${one}`))", canvases))
        before = pictures(page, *canvases)
        still = {chart.name for chart in SHOWN}

        def all_have_moved() -> bool:
            for chart, picture, now in zip(SHOWN, before, pictures(page, *canvases), strict=True):
                if now != picture:
                    still.discard(chart.name)
            return not still

        wait_for(all_have_moved, lambda: f"stand still: {', '.join(sorted(still))}")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert len(page.screenshot()) > 50_000

        slider = page.get_by_role("spinbutton", name="SNR")
        slider.fill(str(DEAF_DB))
        slider.press("Enter")
        wait_for(lambda: max(errors(page), default=0) > 50, lambda: f"errors are {errors(page)} %")
        slider.fill("25")
        slider.press("Enter")
        wait_for(lambda: max(errors(page), default=100) < 5, lambda: f"errors are {errors(page)} %")

        switch = page.get_by_role("switch", name="SLACP")
        # a switch changes both runs, whatever they were
        for scheme in ("no repair", "SLACP"):
            switch.press(" ")
            expect(page.locator(".strip .badge")).to_have_text([scheme] * 2)

        page.get_by_role("button", name="Stop run").click()
        page.get_by_role("dialog", name="End the run now?").get_by_role("button", name="End it").click()
        wait_for(lambda: demo.live() is None)
    wait_for(lambda: len(list((tmp_path / "runs").glob("*/summary.json"))) == 2)
    controls = [(row["name"], json.loads(row["value"]), row["time_ns"]) for row in rows(tmp_path / "runs", "control")]
    assert [control[:2] for control in controls] == [
        ("snr_db", DEAF_DB),
        ("snr_db", 25),
        ("slacp", False),
        ("slacp", True),
    ]
    assert reaction_s(tmp_path / "runs", controls[0][2]) < REACTION_S


def reaction_s(runs: Path, changed_at: int) -> float:
    """From a change to the first record in which the link up has lost more than half of its newest frames."""
    links = [row for row in rows(runs, "link") if row["link"] == "up" and row["time_ns"] > changed_at]
    for before, now in pairwise(links):
        lost, sent = (now[name] - before[name] for name in ("corruption_losses", "frames"))
        if lost > sent / 2:
            return float(now["time_ns"] - changed_at) / 1e9
    raise AssertionError("the link never became bad")
