"""Folders of results that belong to the owner of the checkout, also where root makes them."""

import os
from pathlib import Path

from testbed.paths import root


def make_folder(path: Path) -> None:
    """Make a folder, which must not exist, and those above it.

    Under sudo they belong to the owner of the checkout where the folder above does, so that a later command without
    sudo can write beside them. Raises OSError.
    """
    missing = [path, *(above for above in path.parents if not above.exists())]
    path.mkdir(parents=True)
    if os.geteuid():
        return
    owner = root().stat()
    for folder in reversed(missing):
        if folder.parent.stat().st_uid == owner.st_uid:
            os.chown(folder, owner.st_uid, owner.st_gid, follow_symlinks=False)
