"""Commands of the documents, with the plugins that a document makes beside those of the checkout."""

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: puts folders of the example beside the packages of the checkout; both mains are called with the command's words
_PROGRAM = """\
import importlib, sys
from pathlib import Path
place, *folders = sys.argv[2].split(":")
for folder in folders:
    importlib.import_module(folder.replace("/", ".")).__path__.append(str(Path(place) / folder))
main = importlib.import_module("testbed.cli.app" if sys.argv[1] == "./fadelab" else "pytest").main
sys.exit(main(sys.argv[3:]))
"""


def run(words: Sequence[str], place: Path, folders: Iterable[str]) -> "subprocess.CompletedProcess[str]":
    """Run `./fadelab` or a program of Python at `place`, or `pytest` in the checkout, with plugins of `place`."""
    program, *rest = words
    plugged = ["-c", _PROGRAM, program, ":".join([str(place), *folders])]
    arguments = {"./fadelab": plugged, "pytest": [*plugged, "-p", "no:cacheprovider"]}.get(program, [])
    return subprocess.run(
        [sys.executable, "-P", *arguments, *rest],
        cwd=ROOT if program == "pytest" else place,
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
