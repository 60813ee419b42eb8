"""Shell completion: the scripts, and the answers that they get."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.results.store import RunFolder
from tests.harness.live_runs import Capture, done
from tests.harness.scenarios import scenario

ROOT = Path(__file__).parents[3]


def completed(*words: str) -> list[str]:
    """What a shell offers for the last of these words."""
    asked = {"_FADELAB_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    command = [sys.executable, "-P", "-m", "testbed"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **asked}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    return [line.partition(",")[2] for line in ran.stdout.split()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_script_asks_this_program(shell: str, capsys: Capture) -> None:
    assert f"_FADELAB_COMPLETE={shell}_complete" in done(capsys, "completion", shell)


def test_bash_takes_its_script(capsys: Capture) -> None:
    script = f"{done(capsys, 'completion', 'bash')}\ncomplete -p fadelab"
    ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["complete", "-o", "nosort", "-F", "_fadelab_completion", "fadelab"]


def test_commands_options_and_choices_are_offered() -> None:
    assert "runs" in completed("fadelab", "ru")
    assert "--scenario" in completed("fadelab", "runs", "list", "--sc")
    assert "model" in completed("fadelab", "run", "x.yaml", "--tier", "mo")


def test_runs_are_offered_by_name(tmp_path: Path) -> None:
    names = sorted(RunFolder.create(tmp_path, scenario(seed=seed)).name for seed in range(2))
    assert completed("fadelab", "runs", "show", "--out", str(tmp_path), names[0][:4]) == names
    assert completed("fadelab", "runs", "show", "--out", str(tmp_path), "nothing") == []
