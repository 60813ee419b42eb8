"""The checkout that this program runs from: its paths."""

import os
import sys
from pathlib import Path


def root() -> Path:
    """Return the checkout: that of the launcher, or that of this file."""
    named = os.environ.get("FADELAB_ROOT")
    return Path(named) if named else Path(__file__).resolve().parent.parent


def command_line() -> list[str]:
    """Return the command as a person types it: the launcher starts `testbed/__main__.py`, and is called fadelab."""
    name, *arguments = sys.argv
    program = Path(name)
    return ["fadelab" if program.parts[-2:] == ("testbed", "__main__.py") else program.name, *arguments]


def bpf_objects() -> Path:
    """Return the folder of the built BPF programs."""
    return root() / ".build" / "bpf"
