"""Failed threads of GNU Radio: they are parked, so that the process can report its end and keep its records.

Read first: std::set_terminate; GNU Radio's `thread_body_wrapper.h` and `block_executor.cc`. An exception in a block's
`work` ends the process by SIGABRT: without `catch_exceptions` at once, with it because the executor's destructor calls
the block's `stop`, which fails, too, when a USB device is gone.
"""

import ctypes
import os
import threading
import time
from pathlib import Path

_failed: list[str] = []


def _park() -> None:
    """Take a thread that std::terminate would end the process for."""
    if threading.get_native_id() == os.getpid():
        # the main thread's failure is the process's: returning aborts it
        return
    _failed.append(Path(f"/proc/self/task/{threading.get_native_id()}/comm").read_text().strip())
    while True:
        time.sleep(3600)


#: lives as long as the process
_PARK = ctypes.CFUNCTYPE(None)(_park)


def park_failed_threads() -> None:
    """Let no thread but the main one abort this process from now on."""
    # std::set_terminate(void (*)())
    set_terminate = ctypes.CDLL("libstdc++.so.6")._ZSt13set_terminatePFvvE
    set_terminate.restype = None
    set_terminate(_PARK)


def failed_thread() -> str | None:
    """Return the name of the first thread that has failed, or None."""
    return _failed[0] if _failed else None
