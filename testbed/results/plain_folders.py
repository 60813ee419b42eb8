"""Folders of runs and campaigns, which may be a stranger's: all that is read in them are files in them."""

import stat
from pathlib import Path

from testbed.errors import FadelabError


def require_plain(folder: Path) -> None:
    """Raise FadelabError for a link, a pipe or a device in a folder: they lead elsewhere, or have no end."""
    for each in folder.rglob("*"):
        try:
            mode = each.lstat().st_mode
        except OSError:
            # it went meanwhile, or whoever reads it says why not
            continue
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise FadelabError(f"{each}: is no regular file; copy what it leads to there, or remove it")
