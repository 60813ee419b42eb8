"""Removes the folders of runs, and marks those whose run goes on.

Rules kept

- A folder is removed whole or not at all: it is renamed first, to a hidden name that no list of runs shows. A hidden
  folder that a killed removal left is removed by the next one.
- A run that goes on holds a shared lock on its folder, which needs no file and ends with its process. Its folder stays.
- A folder with an entry that no run makes stays, too: a person put it there.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from testbed.errors import FadelabError

#: names of the files that runs, plots and exports make
_OURS: Final = (
    *("scenario.yaml", "manifest.json", "summary.json", "plot.png", "transfers.png", "demo.png", "station-*.log"),
    *("counterfactual.csv", "counterfactual.png", "timeline.json.gz*", "*.parquet", "air-*.pcapng", "iq-*.sigmf-*"),
    # of workloads
    *("qlog-*.sqlog", "keylog-*.txt"),
)
_HIDDEN: Final = ".removing-"


@contextmanager
def going_on(folder: Path) -> Iterator[None]:
    """Mark the run in `folder` as going on, until the context ends or the process does."""
    with _opened(folder) as fd:
        _lock(fd, fcntl.LOCK_SH)
        yield


def check_removable(folder: Path) -> None:
    """Raise FadelabError when the folder holds an entry that no run makes, or its run goes on."""
    foreign = [entry.name for entry in sorted(folder.iterdir()) if entry.is_dir() or not _is_ours(entry.name)]
    if foreign:
        raise FadelabError(f"{folder}: no run made {foreign[0]!r} in it; move it elsewhere first")
    with _alone(folder):
        pass


def remove(folders: list[Path]) -> None:
    """Remove the folders of runs. Raises FadelabError before the first removal when one of them must stay."""
    with ExitStack() as stack:
        for folder in folders:
            check_removable(folder)
            stack.enter_context(_alone(folder))
        for folder in folders:
            hidden = folder.with_name(_HIDDEN + folder.name)
            try:
                folder.rename(hidden)
            except OSError as error:
                raise FadelabError(f"{folder}: cannot be removed: {error.strerror}") from None
        for root in {folder.parent for folder in folders}:
            for hidden in root.glob(f"{_HIDDEN}*"):
                shutil.rmtree(hidden, ignore_errors=True)


def _is_ours(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in _OURS)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock the folder against a run. Raises FadelabError when a run has it."""
    with _opened(folder) as fd:
        if not _lock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB):
            raise FadelabError(f"{folder}: this run goes on; wait for its end, or stop it")
        yield


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def _lock(fd: int, kind: int) -> bool:
    """Lock a folder; return False when another process has it. A file system that locks no folders has no effect."""
    try:
        fcntl.flock(fd, kind)
    except BlockingIOError:
        return False
    except OSError:
        # as on some network file systems
        return True
    return True
