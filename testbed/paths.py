"""Where things are: the checkout this program runs from."""

import os
from pathlib import Path


def root() -> Path:
    """The checkout: what the launcher says, or where this file stands."""
    named = os.environ.get("FADELAB_ROOT")
    return Path(named) if named else Path(__file__).resolve().parent.parent
