"""docs/tutorial.md, executed as it is written: files are saved, commands are run, and their output is compared."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "tutorial.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)

#: the command line, with the link schemes of the working folder beside those of the checkout
FADELAB = """\
import sys
import linklayer.schemes
linklayer.schemes.__path__.append({schemes!r})
from testbed.cli.app import main
sys.exit(main({words!r}))
"""
#: pytest in the checkout, with the same link schemes
PYTEST = """\
import sys
import linklayer.schemes
linklayer.schemes.__path__.append({schemes!r})
import pytest
sys.exit(pytest.main([*{words!r}, "-p", "no:cacheprovider"]))
"""


def run(command: str, folder: Path) -> str:
    """The output of a command of the tutorial, which must succeed."""
    program, *words = shlex.split(command)
    schemes = str(folder / "linklayer" / "schemes")
    where = folder
    if program == "./fadelab":
        arguments = ["-c", FADELAB.format(schemes=schemes, words=words)]
    elif words[:2] == ["-m", "pytest"]:
        arguments, where = ["-c", PYTEST.format(schemes=schemes, words=words[2:])], ROOT
    else:
        assert program == ".venv/bin/python"
        arguments = words
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(
        [sys.executable, "-P", *arguments],
        cwd=where,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.slow
def test_commands_of_the_tutorial_give_its_output(tmp_path: Path) -> None:
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    (tmp_path / "linklayer" / "schemes").mkdir(parents=True)
    output: list[str] = []
    compared = 0
    for kind, block in BLOCKS:
        if kind in ("python", "yaml"):
            name, content = re.fullmatch(r"# (\S+)\n(.*)", block, re.DOTALL).groups()  # type: ignore[union-attr]
            assert not (ROOT / name).exists()
            (tmp_path / name).write_text(content)
        elif kind == "sh":
            output = [line.strip() for command in block.splitlines() for line in run(command, tmp_path).splitlines()]
        else:
            assert kind == "text"
            rest = iter(output)
            for line in block.splitlines():
                assert any(line.strip() == found for found in rest), (line, output)
                compared += 1
    assert compared > 10
    # the table of a run's files
    named = set(re.findall(r"^\| `([\w.-]+)` \|", TEXT, re.MULTILINE))
    for folder in (tmp_path / "runs" / "tutorial").iterdir():
        assert named <= {path.name for path in folder.iterdir()}
