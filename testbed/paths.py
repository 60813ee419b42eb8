"""The checkout that this program runs from: its paths and its version."""

import os
import tomllib
from pathlib import Path


def root() -> Path:
    """Return the checkout: that of the launcher, or that of this file."""
    named = os.environ.get("FADELAB_ROOT")
    return Path(named) if named else Path(__file__).resolve().parent.parent


def bpf_objects() -> Path:
    """Return the folder of the built BPF programs."""
    return root() / ".build" / "bpf"


def fadelab_version() -> str:
    """Return the version, with the commit where this is a git checkout."""
    declared = str(tomllib.loads((root() / "pyproject.toml").read_text())["project"]["version"])
    try:
        head = (root() / ".git" / "HEAD").read_text().strip()
        commit = (root() / ".git" / head.removeprefix("ref: ")).read_text().strip() if head.startswith("ref") else head
    except OSError:
        return declared
    return f"{declared}+{commit[:12]}"
