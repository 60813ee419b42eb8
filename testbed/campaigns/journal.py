"""A file of JSON lines that only grows.

Rules kept
- A line is written by one call, so that a killed process leaves whole lines, and perhaps a part of the last one.
- A line is on the disk when `append` returns, so that a power failure does not take it.
- The next process cuts such a part off before it writes.
- One process writes at a time.
"""

import errno
import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from common.closing import Closing
from common.plain_json import object_of
from testbed.errors import FadelabError, is_of_disk

#: a million rows of some kilobytes
_MOST_BYTES = 1 << 32


class JournalError(FadelabError):
    """The file is in use, or cannot be opened; one line."""


class Journal(Closing):
    """The file, open for writing. Raises JournalError where it cannot be, or another process has it open."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            if is_of_disk(error):
                raise
            raise JournalError(f"{path}: cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise JournalError(f"{path}: another process writes there: wait for its end") from None
        size = os.fstat(self._file).st_size
        text = os.pread(self._file, size, 0)
        if not text.endswith(b"\n"):
            os.ftruncate(self._file, text.rfind(b"\n") + 1)

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a line."""
        line = (json.dumps(row, separators=(",", ":")) + "\n").encode()
        if os.write(self._file, line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(self._file)

    @override
    def close(self) -> None:
        os.close(self._file)


def read_journal(path: Path) -> list[dict[str, Any]]:
    """Return the whole lines of a journal, in order; none without the file. A line that is no object is left out.

    Raises JournalError.
    """
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise JournalError(f"{path}: cannot be read: {error.strerror}") from None
    if len(text) > _MOST_BYTES:
        raise JournalError(f"{path}: has more than {_MOST_BYTES:,} octets")
    rows = []
    for line in text[: text.rfind(b"\n") + 1].splitlines():
        try:
            rows.append(object_of(line.decode()))
        except ValueError:
            continue
    return rows
