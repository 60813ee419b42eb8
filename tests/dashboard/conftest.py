"""A browser and a database for the tests of the dashboard."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.harness.browser import Stage, chromium
from tests.harness.dashboard_runs import keep, records
from tests.telemetry.conftest import influx, server

__all__ = ["influx", "server"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A dashboard of its own, with made-up runs, and no past ones."""
    opened = Stage(tmp_path / "runs")
    yield opened
    opened.end()


@pytest.fixture
def past(stage: Stage) -> Stage:
    """The same with three past runs."""
    made = [("304", "sample", "slacp", 1.8e6), ("305", "sample", "none", 0.9e6), ("306", "other", "slacp", 1e6)]
    for minute, made_for, scheme, goodput_bps in made:
        name = f"20260102-0{minute}05-{made_for}-emulated-{scheme}-s1"
        keep(stage.runs, name, records(1, 8.0), scenario=made_for, scheme=scheme, goodput_bps=goodput_bps)
    return stage
