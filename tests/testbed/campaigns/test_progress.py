"""How far a campaign is: the estimate, and the file that other programs read."""

import json
from pathlib import Path

import pytest

from testbed.campaigns.engine import Status
from testbed.campaigns.progress import Reporter
from testbed.run_hooks import Progress


def status(model: tuple[int, int], live: tuple[int, int] = (0, 0), progress: Progress | None = None) -> Status:
    """A status by (made, left) of both kinds of runs."""
    made, left = {False: model[0], True: live[0]}, {False: model[1], True: live[1]}
    ended = sum(made.values())
    return Status(ended, ended + sum(left.values()), 0, made, left, "", progress)


def test_estimate_is_unknown_until_a_run_of_each_kind_has_ended(tmp_path: Path) -> None:
    reporter = Reporter("loss", tmp_path, 0.0)
    assert reporter.report(status((0, 10), (0, 2)), 1.0).left_s is None
    assert reporter.report(status((5, 5), (0, 2)), 5.0).left_s is None
    assert reporter.report(status((10, 0), (0, 2)), 10.0).left_s is None
    # a real-time run took 30 s, one is left
    assert reporter.report(status((10, 0), (1, 1)), 40.0).left_s == pytest.approx(30.0)


def test_runs_of_tier_model_do_not_shorten_the_estimate_of_real_time_runs(tmp_path: Path) -> None:
    reporter = Reporter("loss", tmp_path, 100.0)
    reporter.report(status((100, 0), (0, 10)), 101.0)
    found = reporter.report(status((100, 0), (2, 8)), 141.0)
    assert found.left_s == pytest.approx(8 * 20.0)
    assert found.runs_per_s == pytest.approx(102 / 41)


def test_file_is_written_once_a_second_and_goes_with_the_command(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    reporter = Reporter("loss", tmp_path, 0.0)
    reporter.report(status((1, 3)), 0.0)
    reporter.report(status((2, 2)), 0.5)
    assert json.loads(path.read_text())["ended"] == 1
    reporter.report(status((3, 1)), 1.0)
    assert (json.loads(path.read_text())["ended"], json.loads(path.read_text())["planned"]) == (3, 4)
    reporter.remove()
    reporter.remove()
    assert list(tmp_path.iterdir()) == []
