"""Signals that wait."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def waiting(*signums: signal.Signals) -> Iterator[None]:
    """Let signals wait for the end of the block; processes that begin in it have them blocked."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signums)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
