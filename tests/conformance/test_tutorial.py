"""docs/tutorial.md, executed as it is written: files are saved, commands are run, and their output is compared."""

import re
import shlex
from pathlib import Path

import pytest

from tests.conformance.examples import ROOT, copied, put, run

TEXT = (ROOT / "docs" / "tutorial.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


def output_of(command: str, folder: Path) -> list[str]:
    """The lines of output of a command of the tutorial, which must succeed."""
    words = shlex.split(command.replace(".venv/bin/python -m pytest", "pytest"))
    if words[0] not in ("./fadelab", "pytest"):
        assert words[0] == ".venv/bin/python"
    # as a user has them: compiled, if they are
    done = run(words, folder, pure=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return [line.strip() for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_commands_of_the_tutorial_give_its_output(tmp_path: Path) -> None:
    checkout = copied(tmp_path)
    output: list[str] = []
    compared = 0
    for kind, block in BLOCKS:
        if kind in ("python", "yaml"):
            name, content = re.fullmatch(r"# (\S+)\n(.*)", block, re.DOTALL).groups()  # type: ignore[union-attr]
            put(checkout / name, content)
        elif kind == "sh":
            output = [line for command in block.splitlines() for line in output_of(command, checkout)]
        else:
            assert kind == "text"
            rest = iter(output)
            for line in block.splitlines():
                assert any(line.strip() == found for found in rest), (line, output)
                compared += 1
    assert compared > 10
    # the table of a run's files
    named = set(re.findall(r"^\| `([\w.-]+)` \|", TEXT, re.MULTILINE))
    for folder in (checkout / "runs" / "tutorial").iterdir():
        assert named <= {path.name for path in folder.iterdir()}
