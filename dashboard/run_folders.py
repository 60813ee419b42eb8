"""The folders of past runs by their names. Quick to import.

Rules kept
- A run's name is the name of a folder directly below a root, so that no name leads to other files.
- A part of a run is a plain file: a folder of somebody else may have links, which lead anywhere, and pipes, which never
  end.
"""

import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from telemetry.records import RECORD_TYPES

#: valid names of runs, for URLs and folders
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")
#: the files by which a folder is one of a run
PARTS: Final = (
    *("manifest.json", "summary.json", "scenario.yaml"),
    *(f"{kind.measurement}.parquet" for kind in RECORD_TYPES),
)


def find(roots: Sequence[Path], name: str) -> Path | None:
    """Return the folder of a run below one of the roots, or None."""
    if not NAME.fullmatch(name):
        return None
    return next((path for root in roots if is_run(path := root / name)), None)


def is_part(path: Path) -> bool:
    """Return whether a path is a plain file, in an accessible folder."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def is_run(path: Path) -> bool:
    """Return whether a path is the folder of a run."""
    if path.is_symlink() or not path.is_dir():
        return False
    # an inaccessible folder is listed, with this problem
    return not os.access(path, os.R_OK | os.X_OK) or any((path / part).exists() for part in PARTS)
