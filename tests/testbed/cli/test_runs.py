"""`runs`: list, show, compare and remove, as a shell sees them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dashboard.store import Row
from testbed.cli import app
from testbed.cli.runs import _state
from testbed.results.store import RunFolder
from testbed.scenario.schema import Scenario
from tests.harness.live_runs import Capture, done, refused
from tests.harness.scenarios import scenario, summary

Three = tuple[str, str, str]


def stored(root: Path, made: Scenario, **result: Any) -> str:
    """The name of a run that is stored with a hand-made result, or without one."""
    folder = RunFolder.create(root, made)
    if result:
        told = summary(scenario=made.name, tier=made.tier, scheme=made.link.scheme, seed=made.seed)
        folder.finish(replace(told, run=folder.name, **result))
    return folder.name


@pytest.fixture
def three(tmp_path: Path) -> Three:
    """Runs without SLACP, with it, and without a result."""
    bare = stored(tmp_path, scenario(seed=1, link={"scheme": "none"}), goodput_bps=5e5)
    slacp = stored(tmp_path, scenario(seed=2), goodput_bps=2e6)
    return bare, slacp, stored(tmp_path, scenario(seed=3))


def told(capsys: Capture, *args: str | Path) -> Any:
    """The JSON that a command prints."""
    return json.loads(done(capsys, "runs", *args, "--json"))


def test_list_filters_sorts_and_limits(three: Three, tmp_path: Path, capsys: Capture) -> None:
    bare, slacp, unfinished = three

    def listed(*args: str) -> list[str]:
        return [row["name"] for row in told(capsys, "list", "--out", tmp_path, *args)["runs"]]

    assert set(listed()) == set(three)
    assert listed("--sort", "seed") == [unfinished, slacp, bare]
    assert listed("--sort", "goodput_bps", "--ascending") == [bare, slacp, unfinished]
    assert listed("--scheme", "none") == listed("SAMPLE", "none") == [bare]
    assert listed("--unfinished") == [unfinished]
    assert listed("--sort", "seed", "--limit", "2") == [unfinished, slacp]
    assert told(capsys, "list", "--out", tmp_path, "--limit", "1")["total"] == 3


def test_list_shows_names_whole(three: Three, tmp_path: Path, capsys: Capture) -> None:
    shown = done(capsys, "runs", "list", "--out", tmp_path)
    assert all(name in shown for name in three)
    assert "500.00 kbit/s" in shown
    assert "no result" in " ".join(shown.split())


def test_a_unique_part_names_a_run(three: Three, tmp_path: Path, capsys: Capture) -> None:
    assert told(capsys, "show", "none", "--out", tmp_path)["run"] == three[0]
    said = refused(capsys, "runs", "show", "sample", "--out", tmp_path)
    assert "3 runs" in said
    assert "give more of the name" in said
    assert "named whole" in refused(capsys, "runs", "remove", "--yes", "none", "--out", tmp_path)
    assert (tmp_path / three[0]).is_dir()


def test_show_tells_origin_result_and_files(three: Three, tmp_path: Path, capsys: Capture) -> None:
    found = told(capsys, "show", tmp_path / three[1])
    assert (found["run"], found["manifest"]["seed"], found["summary"]["goodput_bps"]) == (three[1], 2, 2e6)
    assert {file["name"] for file in found["files"]} == {"scenario.yaml", "manifest.json", "summary.json"}
    shown = done(capsys, "runs", "show", three[1], "--out", tmp_path)
    assert "2.00 Mbit/s" in shown
    assert "summary.json" in shown


def test_compare_shows_ratios_and_settings(three: Three, tmp_path: Path, capsys: Capture) -> None:
    found = told(capsys, "compare", three[0], three[1], "--out", tmp_path)
    ratios = {row["key"]: row["ratio"] for row in found["figures"]}
    assert ratios["goodput_bps"] == 4
    assert {row["key"] for row in found["differences"]} == {"seed", "link.scheme"}
    assert "link.scheme" in done(capsys, "runs", "compare", three[0], three[1], "--out", tmp_path)


def test_remove_asks(three: Three, tmp_path: Path) -> None:
    def left() -> set[str]:
        return {path.name for path in tmp_path.iterdir()}

    args = ["runs", "remove", three[0], three[2], "--out", str(tmp_path)]
    refused = CliRunner().invoke(app.cli, args, input="n\n")
    assert refused.exit_code == 0
    assert left() == set(three)
    assert CliRunner().invoke(app.cli, args, input="y\n").exit_code == 0
    assert left() == {three[1]}
    assert app.main(["runs", "remove", str(tmp_path / three[1]), "--yes"]) == 0
    assert left() == set()


def test_wrong_names_are_one_line_and_remove_nothing(three: Three, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / three[0])
    for wrong in ("nothing", "elsewhere", "link", "..", f"{three[0]}/.."):
        for args in (["show", wrong], ["compare", three[0], wrong], ["remove", three[0], wrong, "--yes"]):
            refused(capsys, "runs", *args, "--out", tmp_path)
    refused(capsys, "runs", "list", "--out", tmp_path / "nowhere")
    assert set(three) <= {path.name for path in tmp_path.iterdir()}


def test_state_of_a_run_names_its_flaws() -> None:
    assert _state(Row("a", finished=True, intact=True, on_time=True)) == "whole"
    assert (
        _state(Row("a", finished=False, intact=False, on_time=False, controlled=True)) == "corrupt, cut, late, steered"
    )
