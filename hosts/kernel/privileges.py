"""The capabilities that a process of a run gives up once it has what they were for.

Read first: capabilities(7), capset(2), PR_SET_NO_NEW_PRIVS in prctl(2).

Rules kept
- For good: programs that the thread starts get no more, set-user-ID ones included.
- Capabilities belong to a thread: those that run already keep theirs, later ones inherit.

Left out: the user. A process of root stays one, and may change root's files.
"""

import ctypes
import os
import struct
from collections.abc import Collection
from typing import Final

from hosts.errors import HostError

#: linux/capability.h; files of any user: a checkout or a run's folder may be in the home of one, closed to others
CAP_DAC_OVERRIDE: Final = 1
#: ports below 1024; interfaces, routes, socket options of one's network namespace
CAP_NET_BIND_SERVICE: Final = 10
CAP_NET_ADMIN: Final = 12
#: real-time scheduling
CAP_SYS_NICE: Final = 23
_VERSION_3: Final = 0x20080522
_PR_SET_NO_NEW_PRIVS: Final = 38


def keep(kept: Collection[int]) -> None:
    """Give up all capabilities of the calling thread but those of `kept` that it has. Raises HostError."""
    libc = ctypes.CDLL(None, use_errno=True)
    # of the calling thread
    header = struct.pack("Ii", _VERSION_3, 0)
    # effective, permitted and inheritable, of the numbers below 32 and then of the others
    sets = ctypes.create_string_buffer(24)
    if libc.capget(header, sets) == 0:
        _, low, _, _, high, _ = struct.unpack("6I", sets.raw)
        left = (high << 32 | low) & sum(1 << number for number in kept)
        low, high = left & 0xFFFFFFFF, left >> 32
        wanted = struct.pack("6I", low, low, 0, high, high, 0)
        if libc.capset(header, wanted) == 0 and libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0:
            return
    raise HostError(f"cannot give up capabilities: {os.strerror(ctypes.get_errno())}")
