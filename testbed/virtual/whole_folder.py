"""A folder below `.build/` that is made once, and is there whole or not at all.

Rules kept: it is made in a folder beside its place, with its stamp last, and takes its place in one step. Of several
processes that want it at the same time one makes it.
"""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from testbed.errors import FadelabError
from testbed.paths import root

T = TypeVar("T")


def once(folder: Path, what: str, present: Callable[[], T | None], make: Callable[[Path, Path], T]) -> T:
    """Return `present()`, after `make(new, scratch)` where it is None: `new` becomes `folder`, `scratch` is removed.

    `what` names the thing in a message. Raises FadelabError where the folder cannot be written.
    """
    try:
        folder.parent.mkdir(exist_ok=True)
        with folder.with_name(f"{folder.name}.lock").open("w") as lock:
            # another process may be at it
            fcntl.flock(lock, fcntl.LOCK_EX)
            found = present()
            return _made(folder, make) if found is None else found
    except OSError as error:
        raise FadelabError(
            f"{what} cannot be built in {folder.parent}: {error.strerror}; be its owner, or root"
        ) from None


def log_of(folder: Path) -> Path:
    """Return where the output of the programs goes that make a folder."""
    return folder.with_name(f"{folder.name}.log")


def _made(folder: Path, make: Callable[[Path, Path], T]) -> T:
    new, old = folder.with_name(f"{folder.name}.new"), folder.with_name(f"{folder.name}.old")
    for rest in (new, old):
        shutil.rmtree(rest, ignore_errors=True)
    made, scratch = new / "made", new / "scratch"
    try:
        for path in (made, scratch):
            path.mkdir(parents=True)
        log_of(folder).write_bytes(b"")
        result = make(made, scratch)
        if os.geteuid() == 0:
            # as the launcher does: files made with sudo belong to the owner of the checkout
            for path in (made, *made.rglob("*"), log_of(folder), folder.with_name(f"{folder.name}.lock")):
                shutil.chown(path, root().stat().st_uid, root().stat().st_gid)
        if folder.exists():
            folder.rename(old)
        made.rename(folder)
    finally:
        for rest in (new, old):
            shutil.rmtree(rest, ignore_errors=True)
    return result
