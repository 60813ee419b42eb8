"""The exception for all faults of the input or of the machine, which the user can repair.

Rule kept: the message is one line with the fault and the remedy; the command line prints it and exits with status 2.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeGuard

#: by which the kernel says that a disk takes no more
_OF_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


class FadelabError(RuntimeError):
    """A request that cannot be fulfilled; the message gives the cause and the remedy."""


def is_of_disk(error: BaseException) -> TypeGuard[OSError]:
    """Return whether an error says that a disk takes no more: it is full, can only be read, or has failed."""
    return isinstance(error, OSError) and error.errno in _OF_DISK


@contextmanager
def writing_below(folder: Path) -> Iterator[None]:
    """Let an error that a disk takes no more name `folder`, where it names no file: a write to an open one does not."""
    try:
        yield
    except OSError as error:
        if is_of_disk(error) and error.filename is None:
            error.filename = str(folder)
        raise
