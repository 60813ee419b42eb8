"""A run of Linux's TCP again, with a change at a time: one past, two futures."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from common.sides import SIDES
from testbed.cli import app
from testbed.exports.losses import Losses
from testbed.exports.source import timeline_of
from testbed.exports.story import Acknowledged, Carried, Crossed, Ended, Replaced, Sent
from testbed.running import run_once
from tests.harness.live_runs import Capture, folder_of, refused
from tests.harness.scenarios import scenario
from tests.testbed.virtual.conftest import needs_kernel

BULK = [{"kind": "bulk", "duration_s": 4}]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    changes = {"channel": {"per": 0.1}, "link": {"scheme": "slacp"}, "workloads": BULK, "capture": True}
    place = tmp_path_factory.mktemp("runs")
    return folder_of(run_once(scenario(clock="virtual", **changes), place, lambda progress: None))


def told_of(capsys: Capture, run: Path, *words: str) -> dict[str, Any]:
    """What the command says; its progress is on stderr."""
    assert app.main(["counterfactual", str(run), *words, "--json"]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


class TestInAMachine:
    pytestmark = needs_kernel

    def test_a_change_that_changes_nothing_has_the_same_future(
        self, run: Path, tmp_path: Path, capsys: Capture
    ) -> None:
        told = told_of(capsys, run, "--at", "1", "--set", "paused=false", "--out", str(tmp_path))
        assert told["equal"]["frames"] > 100
        assert told["losses"]["here"] == told["losses"]["there"] > 20
        assert told["acked_bytes"]["here"] == told["acked_bytes"]["there"] > 100_000
        assert all(each["here"] == each["there"] for each in told["fates"])

    def test_each_loss_is_told_with_what_it_is_without_the_link(
        self, run: Path, tmp_path: Path, capsys: Capture
    ) -> None:
        told = told_of(capsys, run, "--at", "1", "--set", "link.scheme=none", "--out", str(tmp_path))
        with (Path(told["folder"]) / "counterfactual.csv").open() as file:
            rows = list(csv.DictReader(file))
        counted = Counter((row["fate_here"], row["fate_there"]) for row in rows if row["lost_in"] == "here")
        assert counted == {(each["here"], each["there"]): each["losses"] for each in told["fates"]}
        assert "by the link" in {here for here, _ in counted}
        # without repairs in the link it is TCP that repairs, if anybody
        assert {row["fate_there"] for row in rows if row["lost_in"] == "there"} <= {"by TCP", "open"}
        assert told["acked_bytes"]["there"] < told["acked_bytes"]["here"]

    def test_every_loss_of_it_has_a_story_that_ends(self, run: Path) -> None:
        summary = json.loads((run / "summary.json").read_text())
        losses = Losses(timeline_of(run))
        assert len(losses) == sum(summary["link"][side]["corruption_losses"] for side in SIDES) > 20
        for number in range(1, len(losses) + 1):
            events = losses.story(number).events
            assert isinstance(events[0], Sent | Carried | Crossed)
            assert any(isinstance(event, Acknowledged | Crossed | Replaced | Ended) for event in events)


def test_real_time_has_no_past_to_repeat(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "run").mkdir()
    values = scenario().plain()
    (tmp_path / "run" / "scenario.yaml").write_text(json.dumps(values))
    said = refused(capsys, "counterfactual", tmp_path / "run", "--at", "1", "--set", "link.scheme=none")
    assert "is real time, whose past cannot be repeated: run the scenario with --clock virtual" in said
