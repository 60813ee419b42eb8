"""The sources of this program (`source_files.py`), and whether the checkout's commit has them.

Rules kept
- A process has the sources of its first look. `require_unchanged` sees an edit since then.
- Two folders with equal sources have equal digests, with git and without.
"""

import gzip
import hashlib
import io
import os
import subprocess
import tarfile
import tomllib
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from time import monotonic

from typing_extensions import override

from testbed.paths import root
from testbed.source_files import CHANGED, PACKAGES, Stamp, digest_of, hashes, is_source, walk
from testbed.source_files import SourcesError as SourcesError

#: the folder of an archive of sources
PREFIX = "fadelab/"
#: how often `require_unchanged` looks at the files at most, s
_LOOK_S = 1.0


@dataclass(frozen=True)
class Sources:
    """The sources of a checkout."""

    folder: Path
    #: SHA-256 by path
    files: Mapping[str, str]
    #: that is checked out; empty: this is no git checkout
    commit: str
    #: sources that the commit has not, or otherwise; None: there is no git to ask
    changed: tuple[str, ...] | None
    #: sources of the commit that are absent here
    removed: tuple[str, ...]

    @cached_property
    def digest(self) -> str:
        """The SHA-256 that names them."""
        return digest_of(self.files)

    @cached_property
    def version(self) -> str:
        """The declared version; where this is a git checkout with the commit, and `dirty` if sources differ from it."""
        declared = str(tomllib.loads((self.folder / "pyproject.toml").read_text())["project"]["version"])
        if not self.commit:
            return declared
        mark = ".unchecked" if self.changed is None else ".dirty" if self.changed or self.removed else ""
        return f"{declared}+{self.commit[:12]}{mark}"

    @cached_property
    def differing(self) -> bytes:
        """The sources that the commit does not have, as tar.gz; empty: it has all. Without a commit the whole program.

        Raises SourcesError for a source that has changed since the look.
        """
        names = list(self.files) if not self.commit or self.changed is None else list(self.changed)
        if not names:
            return b""
        contents = {name: (self.folder / name).read_bytes() for name in names}
        if any(hashlib.sha256(content).hexdigest() != self.files[name] for name, content in contents.items()):
            raise SourcesError(CHANGED)
        if not self.commit:
            # what the packages need beside them to be installed and run
            beside = (path for path in self.folder.iterdir() if path.is_file() and not path.name.startswith("."))
            contents |= {path.name: path.read_bytes() for path in beside}
        return pack((name, content, os.access(self.folder / name, os.X_OK)) for name, content in contents.items())


# -- this process ----------------------------------------------------------------------------------------------

#: by checkout: its sources at the first look, their stamps then, and when these were last compared
_seen: dict[Path, tuple[Sources, dict[str, Stamp], float]] = {}


def sources() -> Sources:
    """Return the sources that this process runs: those of its first look."""
    folder = root()
    if folder not in _seen:
        stamps = dict(walk(folder))
        _seen[folder] = look(folder), stamps, monotonic()
    return _seen[folder][0]


def fadelab_version() -> str:
    """Return the version of this process's sources."""
    return sources().version


def require_unchanged() -> Sources:
    """Return `sources()`. Raises SourcesError if they have changed since this process first looked."""
    began = sources()
    _, stamps, looked_at = _seen[began.folder]
    if monotonic() - looked_at < _LOOK_S:
        return began
    now = dict(walk(began.folder))
    if now != stamps and hashes(began.folder, now) != began.files:
        raise SourcesError(CHANGED)
    _seen[began.folder] = began, now, monotonic()
    return began


def look(folder: Path) -> Sources:
    """Return the sources of a checkout as they are now."""
    blobs: dict[str, str] = {}
    files = hashes(folder, dict(walk(folder)), blobs)
    try:
        commit = _commit(folder / ".git")
    except (OSError, StopIteration):
        return Sources(folder, files, "", None, ())
    try:
        tree = _tree(folder, commit)
    except SourcesError:
        return Sources(folder, files, commit, None, ())
    changed = tuple(name for name in files if tree.get(name) != blobs[name])
    return Sources(folder, files, commit, changed, tuple(name for name in tree if name not in files))


# -- git -------------------------------------------------------------------------------------------------------


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


def _tree(folder: Path, commit: str) -> dict[str, str]:
    """Return the sources of a commit: their names in git by path. Raises SourcesError."""
    listed = _git(folder, "ls-tree", "-r", "-z", "--full-tree", commit, "--", *PACKAGES).decode()
    rows = (row.partition("\t") for row in listed.split("\0") if row)
    return {name: about.split()[2] for about, _, name in rows if is_source(name)}


def _git(folder: Path, *words: str) -> bytes:
    """Return the output of git. Raises SourcesError."""
    # a checkout of another user, as below sudo, is no danger to those who run its programs
    command = ["git", "-C", str(folder), "-c", "safe.directory=*", *words]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        return subprocess.run(command, capture_output=True, check=True, env=environment).stdout
    except (OSError, subprocess.CalledProcessError):
        raise SourcesError(f"{folder}: git cannot {words[0]}") from None


# -- archives --------------------------------------------------------------------------------------------------


def pack(files: Iterable[tuple[str, bytes, bool]]) -> bytes:
    """Return a tar.gz of files (path, content, whether executable); the same files give the same octets."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content, executable in sorted(files):
            entry = tarfile.TarInfo(PREFIX + name)
            entry.size, entry.mode = len(content), 0o755 if executable else 0o644
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(out.getvalue(), mtime=0)


def unpack(archive: bytes, *, most: int | None = None) -> Iterator[tuple[str, bytes, bool]]:
    """Yield the files of a tar.gz of `pack`. Raises SourcesError for another one, and beyond `most` octets.

    What tar unpacks of it are these files in one folder: no links, no file twice, none under two names.
    """
    left, seen = most, set[str]()
    try:
        with tarfile.open(fileobj=_Unpacked(archive, most), mode="r|") as opened:
            for entry in opened:
                # of every entry, since one that is left out is read, too
                if left is not None and (left := left - max(entry.size, 512)) < 0:
                    raise SourcesError(f"its sources have more than {most:,} octets")
                if entry.isdir():
                    continue
                name = entry.name.removeprefix(PREFIX)
                plain = PREFIX + os.path.normpath(f"/{name}").lstrip("/") == entry.name and name not in seen
                if not plain or not entry.isfile() or (file := opened.extractfile(entry)) is None:
                    raise SourcesError(f"{entry.name!r} is no file of a program, or is there twice")
                seen.add(name)
                yield name, file.read(), bool(entry.mode & 0o100)
    except (tarfile.TarError, OSError, EOFError, zlib.error, ValueError, TypeError) as error:
        # the last two are tarfile's own
        raise SourcesError(f"its sources cannot be read: {error}") from None


class _Unpacked(gzip.GzipFile):
    """A gzip, of which tarfile reads whole headers at once. Raises SourcesError beyond `most` octets of files."""

    def __init__(self, archive: bytes, most: int | None) -> None:
        super().__init__(fileobj=io.BytesIO(archive))
        # a file may be as short as its header, and the end has blocks of its own
        self._left = None if most is None else 2 * most + tarfile.RECORDSIZE
        self._most = most

    @override
    def read(self, size: int | None = -1) -> bytes:
        found = super().read(size)
        if self._left is not None:
            self._left -= len(found)
            if self._left < 0:
                raise SourcesError(f"its sources have more than {self._most:,} octets")
        return found


def digest_of_archive(archive: bytes, *, most: int | None = None) -> str:
    """Return the digest of the sources in a tar.gz. Raises SourcesError."""
    files = {name: content for name, content, _ in unpack(archive, most=most)}
    return digest_of({name: hashlib.sha256(content).hexdigest() for name, content in files.items() if is_source(name)})


def program(commit: str, differing: bytes, removed: Iterable[str]) -> bytes:
    """Return a program as tar.gz: a commit of this checkout, but for the sources that differed, or the latter alone.

    Raises SourcesError where this checkout does not have the commit.
    """
    files: dict[str, tuple[bytes, bool]] = {}
    if commit:
        made = _git(root(), "archive", "--format=tar", f"--prefix={PREFIX}", commit)
        files = {name: (content, executable) for name, content, executable in unpack(gzip.compress(made, 1))}
    if differing:
        files |= {name: (content, executable) for name, content, executable in unpack(differing)}
    for name in removed:
        files.pop(name, None)
    return pack((name, *each) for name, each in files.items())
