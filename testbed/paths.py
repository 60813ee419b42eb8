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
        commit = _commit(root() / ".git")
    except (OSError, StopIteration):
        return declared
    return f"{declared}+{commit[:12]}"


def _commit(git: Path) -> str:
    """Return the commit that is checked out. Raises OSError or StopIteration where there is none."""
    if git.is_file():
        # a further work tree of a checkout
        git = git.parent / git.read_text().strip().removeprefix("gitdir: ")
    head = (git / "HEAD").read_text().strip()
    if not head.startswith("ref: "):
        return head
    name = head.removeprefix("ref: ")
    common = git / (git / "commondir").read_text().strip() if (git / "commondir").exists() else git
    if (common / name).exists():
        return (common / name).read_text().strip()
    lines = (common / "packed-refs").read_text().splitlines()
    return next(line.split()[0] for line in lines if line.endswith(f" {name}"))
