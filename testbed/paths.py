"""Where things are, and which: the checkout this program runs from."""

import os
import tomllib
from pathlib import Path


def root() -> Path:
    """The checkout: what the launcher says, or where this file stands."""
    named = os.environ.get("FADELAB_ROOT")
    return Path(named) if named else Path(__file__).resolve().parent.parent


def bpf_objects() -> Path:
    """Where BPF programs are kept once they are built."""
    return root() / ".build" / "bpf"


def fadelab_version() -> str:
    """The version, with the commit where this is a checkout."""
    declared = str(tomllib.loads((root() / "pyproject.toml").read_text())["project"]["version"])
    try:
        head = (root() / ".git" / "HEAD").read_text().strip()
        commit = (root() / ".git" / head.removeprefix("ref: ")).read_text().strip() if head.startswith("ref") else head
    except OSError:
        return declared
    return f"{declared}+{commit[:12]}"
