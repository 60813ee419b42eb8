"""The exception for all faults of the input or of the machine, which the user can repair.

Rule kept: the message is one line with the fault and the remedy; the command line prints it and exits with status 2.
"""

import errno
from typing import TypeGuard

#: by which the kernel says that a disk takes no more
_OF_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


class FadelabError(RuntimeError):
    """A request that cannot be fulfilled; the message gives the cause and the remedy."""


def is_of_disk(error: BaseException) -> TypeGuard[OSError]:
    """Return whether an error says that a disk takes no more: it is full, can only be read, or has failed."""
    return isinstance(error, OSError) and error.errno in _OF_DISK
