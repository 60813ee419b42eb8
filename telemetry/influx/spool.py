"""A FIFO queue of batches on disk, for the time that the database is away.

Layout of a folder, which belongs to one database:

    <folder>/<Unix time in ns>-<pid>/00000001-4000.gz    one lane per sink: batches by number, with their points
    <folder>/rejected/…gz                                refused by the database, the reason in the first line
    <folder>/torn/…gz                                    damaged, never sent

Rules kept
- A batch's file is written atomically: written under another name, synced to disk, renamed. Once `append` has returned,
  neither a kill nor a power cut loses the batch.
- A lane belongs to the sink that holds its lock (flock on the folder), so several sinks and processes share a spool
  folder. An unlocked lane is that of a dead process: the next sink takes it over.
- Batches leave a lane in their order, older lanes before newer ones.
- No folder is made before the first batch.
"""

import fcntl
import gzip
import os
import re
import time
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

_BATCH = re.compile(r"(\d{8})-(\d+)\.gz")
_LANE = re.compile(r"\d+-\d+")


@dataclass(frozen=True, slots=True)
class Batch:
    """Points in line protocol, packed by gzip."""

    body: bytes
    points: int


@dataclass(slots=True)
class _Lane:
    path: Path
    lock: int
    #: (number, points), oldest first
    files: deque[tuple[int, int]] = field(default_factory=deque)
    last: int = 0

    def file(self, number: int, points: int) -> Path:
        return self.path / f"{number:08d}-{points}.gz"


class Spool:
    """One sink's view of a spool folder. Methods that write raise OSError when the disk fails."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lanes: deque[_Lane] = deque()
        self._own: _Lane | None = None
        #: number of waiting points
        self.points = 0
        #: the latest problem with existing files, in one line
        self.trouble = ""

    def adopt(self) -> None:
        """Take over the lanes of dead processes."""
        if not self.folder.is_dir():
            return
        with self._locked():
            # our own lanes are locked, too, by other descriptors than those tried here
            paths = (path for path in self.folder.iterdir() if _LANE.fullmatch(path.name))
            found = [lane for path in paths if (lane := _take(path))]
        for lane in found:
            for path in sorted(lane.path.iterdir()):
                if match := _BATCH.fullmatch(path.name):
                    lane.files.append((int(match[1]), int(match[2])))
                else:
                    self._set_aside(path)
            self.points += sum(points for _, points in lane.files)
        self._lanes = deque(sorted([*self._lanes, *found], key=lambda lane: lane.path.name))
        self._tidy()

    def append(self, batch: Batch) -> None:
        """Append one batch."""
        if self._own is None:
            self._own = self._new_lane()
            self._lanes.append(self._own)
        lane = self._own
        _write(lane.file(lane.last + 1, batch.points), batch.body)
        lane.last += 1
        lane.files.append((lane.last, batch.points))
        self.points += batch.points

    def first(self) -> Batch | None:
        """Return the oldest batch without removing it. Damaged ones are set aside."""
        while lane := self._front():
            number, points = lane.files[0]
            path = lane.file(number, points)
            try:
                body = path.read_bytes()
                if _is_whole(body):
                    return Batch(body, points)
                self._set_aside(path)
            except OSError as error:
                self.trouble = f"{path}: {error.strerror}; it stays there"
            self._forget(lane)
        return None

    def pop(self) -> None:
        """Remove the oldest batch."""
        lane = self._front()
        assert lane is not None
        # if the file cannot be removed, a later process sends it again, which is harmless
        with suppress(OSError):
            lane.file(*lane.files[0]).unlink()
        self._forget(lane)

    def reject(self, batch: Batch, why: str) -> None:
        """Keep a refused batch for inspection; its first line is the reason, as a comment."""
        reason = gzip.compress(f"# {why}\n".encode())
        _write(_made(self.folder / "rejected") / f"{time.time_ns()}-{batch.points}.gz", reason + batch.body)

    def close(self) -> None:
        """Release the folder; the next sink takes over waiting batches."""
        self._own = None
        self._tidy()
        for lane in self._lanes:
            os.close(lane.lock)
        self._lanes.clear()

    def _set_aside(self, path: Path) -> None:
        torn = self.folder / "torn"
        self.trouble = f"{path}: damaged, not sent; it is in {torn} now"
        with suppress(OSError):
            path.rename(_made(torn) / f"{path.parent.name}-{path.name}")

    def _front(self) -> _Lane | None:
        return next((lane for lane in self._lanes if lane.files), None)

    def _forget(self, lane: _Lane) -> None:
        _, points = lane.files.popleft()
        self.points -= points
        self._tidy()

    def _tidy(self) -> None:
        """Remove lanes that are empty for good."""
        done = [lane for lane in self._lanes if not lane.files and lane is not self._own]
        if not done:
            return
        with self._locked():
            for lane in done:
                with suppress(OSError):
                    lane.path.rmdir()
                os.close(lane.lock)
                self._lanes.remove(lane)

    def _new_lane(self) -> _Lane:
        _made(self.folder)
        with self._locked():
            path = self.folder / f"{time.time_ns()}-{os.getpid()}"
            path.mkdir()
            lane = _take(path)
            assert lane is not None
            return lane

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Exclude other processes from making, taking and removing lanes."""
        lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def _take(path: Path) -> _Lane | None:
    """Lock a lane, or return None when it is locked or belongs to another user."""
    try:
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return _Lane(path, lock)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _is_whole(body: bytes) -> bool:
    try:
        # gzip accepts an empty file
        return bool(gzip.decompress(body))
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return False


def _write(path: Path, data: bytes) -> None:
    aside = path.with_suffix(".part")
    try:
        with aside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.rename(path)
    except OSError:
        with suppress(OSError):
            aside.unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
