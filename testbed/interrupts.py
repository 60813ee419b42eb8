"""Signals that end a command: Ctrl-C, SIGTERM, SIGHUP.

Rules kept
- They unwind the stack, so that `with` and `finally` blocks remove namespaces, interfaces and child processes.
- None is lost. A signal raises its exception wherever the program stands, and what C code calls may drop it: the hooks
  of a fork, or importlib's own when it lets go of a module's lock. Who waits for long calls `heed`, which raises it
  again; until then nothing is said of it.
"""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: what the newest signal has raised
_asked: BaseException | None = None


def install() -> None:
    """Take these signals, but for those that are ignored (nohup)."""
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(signum) is not signal.SIG_IGN:
            signal.signal(signum, _interrupted)
    sys.unraisablehook = _dropped


def heed() -> None:
    """Raise what a signal has raised before, if it has come to nothing. Does nothing in other threads than the main."""
    if _asked is not None and threading.current_thread() is threading.main_thread():
        raise _asked


@contextmanager
def taken() -> Iterator[None]:
    """Let Ctrl-C end the block, and nothing else."""
    global _asked
    try:
        yield
    except KeyboardInterrupt:
        _asked = None


def _dropped(unraisable: "sys.UnraisableHookArgs") -> None:
    if _asked is None or unraisable.exc_value is not _asked:
        sys.__unraisablehook__(unraisable)


def _interrupted(signum: int, _frame: FrameType | None) -> None:
    global _asked
    if signum == signal.SIGINT:
        _asked = KeyboardInterrupt()
    else:
        # a second one ends the process at once, in case the clean-up hangs
        signal.signal(signum, signal.SIG_DFL)
        _asked = SystemExit(128 + signum)
    raise _asked
