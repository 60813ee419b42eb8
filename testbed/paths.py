"""The checkout that this program runs from: its paths."""

import os
from pathlib import Path


def root() -> Path:
    """Return the checkout: that of the launcher, or that of this file."""
    named = os.environ.get("FADELAB_ROOT")
    return Path(named) if named else Path(__file__).resolve().parent.parent


def bpf_objects() -> Path:
    """Return the folder of the built BPF programs."""
    return root() / ".build" / "bpf"
