"""Waiting for what comes: how long it takes is not a test's business, so a busy machine is given a minute."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
#: what is waited for comes in a second on a quiet machine
PATIENCE_S = 60.0


def wait_for(what: Callable[[], T | None], explain: Callable[[], str] = lambda: "nothing came of it") -> T:
    """What `what()` gives once it gives something. Raises AssertionError when it never does."""
    give_up_at = time.monotonic() + PATIENCE_S
    while not (found := what()):
        assert time.monotonic() < give_up_at, explain()
        time.sleep(0.02)
    return found
