"""Campaigns on the dashboard: what is told of their folders, and the page in a browser."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from dashboard.campaigns import campaigns
from tests.harness.browser import Stage, visit

PROGRESS: dict[str, Any] = {
    "name": "loss",
    "ended": 30,
    "planned": 120,
    "failed": 2,
    "runs_per_s": 0.5,
    "elapsed_s": 60.0,
    "left_s": 180.0,
    "run": "3-slacp-s4",
    "run_elapsed_s": 7.0,
    "run_goodput_bps": 1.5e6,
}


def folder(store: Path, name: str, *, runs: int = 0, complete: bool | None = None) -> Path:
    made = store / name
    (made / "runs").mkdir(parents=True)
    (made / "failed").mkdir()
    (made / "plan.json").write_text("{}")
    (made / "lock").touch()
    for run in range(runs):
        (made / "runs" / f"run{run}").mkdir()
    if complete is not None:
        document = {"campaign": name, "plan": "0" * 64, "complete": complete, "runs": []}
        (made / "results.json").write_text(json.dumps(document, indent=1))
    return made


@contextmanager
def going_on(made: Path, **changes: Any) -> Iterator[None]:
    """A command that runs the campaign: it holds the lock and tells its progress."""
    (made / "progress.json").write_text(json.dumps({**PROGRESS, **changes}))
    lock = os.open(made / "lock", os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def test_campaign_goes_on_while_its_lock_is_held(tmp_path: Path) -> None:
    made = folder(tmp_path, "loss", runs=30)
    folder(tmp_path, "done", runs=4, complete=True)
    folder(tmp_path, "broken", runs=3, complete=False)
    (tmp_path / "a-run").mkdir()
    with going_on(made):
        first, *others = campaigns(tmp_path)
    assert (first.name, first.state, first.ended, first.planned, first.failed) == ("loss", "going on", 30, 120, 2)
    assert (first.runs_per_s, first.left_s, first.run, first.run_elapsed_s) == (0.5, 180.0, "3-slacp-s4", 7.0)
    assert [(each.name, each.state, each.ended, each.planned) for each in others] == [
        ("broken", "interrupted", 3, None),
        ("done", "complete", 4, 4),
    ]
    # a killed command leaves its progress
    assert [each.state for each in campaigns(tmp_path) if each.name == "loss"] == ["interrupted"]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"ended": null, "left_s": "soon"}'])
def test_progress_that_cannot_be_read_is_unknown(tmp_path: Path, text: str) -> None:
    made = folder(tmp_path, "loss", runs=5)
    with going_on(made):
        (made / "progress.json").write_text(text)
        [found] = campaigns(tmp_path)
    assert found.state == "going on"
    assert (found.planned, found.left_s, found.run) == (None, None, "")


def test_store_that_is_not_there_has_no_campaigns(tmp_path: Path) -> None:
    assert campaigns(tmp_path / "runs") == []


@pytest.mark.patient
def test_page_shows_progress_as_it_changes(browser: Browser, tmp_path: Path) -> None:
    stage = Stage(tmp_path / "runs")
    try:
        made = folder(stage.runs, "loss", runs=30)
        folder(stage.runs, "earlier", runs=4, complete=True)
        with going_on(made), visit(browser, stage) as page:
            page.keyboard.press("c")
            row = page.locator("#campaigns tbody tr").first
            expect(row).to_contain_text("30 of 120")
            expect(row).to_contain_text("3:00")
            expect(row).to_contain_text("3-slacp-s4: 0:07, 1.50 Mbit/s")
            expect(page.locator("#campaigns [data-status]")).to_have_text("2 campaigns, 1 going on")
            (made / "progress.json").write_text(json.dumps({**PROGRESS, "ended": 31}))
            expect(row).to_contain_text("31 of 120")
            assert page.evaluate("document.documentElement.scrollWidth") <= page.evaluate("innerWidth")
            if target := os.environ.get("FADELAB_SCREENSHOT"):
                page.screenshot(path=target)
    finally:
        stage.end()
