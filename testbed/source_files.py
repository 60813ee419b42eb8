"""The files of this program, and the digest that names them. Quick to import.

Rules kept
- The sources are all files of the program's packages, untracked ones included. Tests and documents (`tests/`, `*.md`)
  are none, hidden files and Python's caches neither. Interpreted and compiled cores have the same sources.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from testbed.errors import FadelabError
from testbed.paths import root

#: the program's packages; the others test it or measure it
PACKAGES = (
    "channel",
    "common",
    "dashboard",
    "experiments",
    "flowgraphs",
    "hosts",
    "linklayer",
    "tcpip",
    "telemetry",
    "testbed",
)
#: of a file: time of its change (ns), size, inode
Stamp = tuple[int, int, int]


class SourcesError(FadelabError):
    """Sources that changed, or that cannot be had."""


#: the complaint about sources that are no longer those of this process
CHANGED: Final = "sources of fadelab have changed while it ran: start it again"


def digest_of(files: Mapping[str, str]) -> str:
    """Return the digest of sources by the SHA-256 of each."""
    return hashlib.sha256("".join(f"{files[name]}  {name}\n" for name in sorted(files)).encode()).hexdigest()


def is_source(name: str) -> bool:
    """Return whether a path, relative to the checkout, is that of a source."""
    folder, *inner = name.split("/")
    return folder in PACKAGES and bool(inner) and all(map(_is_ours, inner)) and "tests" not in inner[:-1]


def _is_ours(name: str) -> bool:
    return not (name.startswith(".") or name == "__pycache__" or name.endswith((".md", ".pyc")))


def digest_now() -> str:
    """Return the digest of the checkout's sources as they are now. Raises SourcesError."""
    return digest_of(hashes(root(), dict(walk(root()))))


def walk(folder: Path) -> Iterator[tuple[str, Stamp]]:
    """Yield the path of each source, relative to the checkout, with its stamp."""
    left = [package for package in PACKAGES if (folder / package).is_dir()]
    while left:
        name = left.pop()
        with os.scandir(folder / name) as entries:
            for entry in entries:
                inner = f"{name}/{entry.name}"
                if entry.is_dir():
                    if _is_ours(entry.name) and entry.name != "tests":
                        left.append(inner)
                elif is_source(inner) and entry.is_file():
                    found = entry.stat()
                    yield inner, (found.st_mtime_ns, found.st_size, found.st_ino)


def hashes(folder: Path, names: Iterable[str], blobs: dict[str, str] | None = None) -> dict[str, str]:
    """Return the SHA-256 of files; `blobs` gets their names in git. Raises SourcesError for one that is gone."""
    found = {}
    for name in sorted(names):
        try:
            content = (folder / name).read_bytes()
        except FileNotFoundError:
            raise SourcesError(CHANGED) from None
        found[name] = hashlib.sha256(content).hexdigest()
        if blobs is not None:
            blobs[name] = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    return found
