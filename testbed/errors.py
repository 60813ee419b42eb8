"""The exception for all faults of the input or of the machine, which the user can repair.

Rule kept: the message is one line with the fault and the remedy; the command line prints it and exits with status 2.
"""

import errno
from typing import TypeGuard

_FULL = (errno.ENOSPC, errno.EDQUOT)


class FadelabError(RuntimeError):
    """A request that cannot be fulfilled; the message gives the cause and the remedy."""


def is_disk_full(error: BaseException) -> TypeGuard[OSError]:
    """Return whether an error says that a disk, or somebody's share of it, has no room left."""
    return isinstance(error, OSError) and error.errno in _FULL
