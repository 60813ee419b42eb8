"""Places for what occupies a thread of the server: a stream, or an answer that takes long to make or to send.

Rule kept: the last places are for those who have shown the token, so that nobody else keeps them out.
"""

import threading


class Places:
    """So many places, of which `kept` are for those with the token. May be shared between threads."""

    def __init__(self, places: int, kept: int) -> None:
        self._free = places
        self._kept = kept
        self._lock = threading.Lock()

    def take(self, *, authorised: bool) -> bool:
        """Take a place; return whether there was one."""
        with self._lock:
            if self._free <= (0 if authorised else self._kept):
                return False
            self._free -= 1
            return True

    def give(self) -> None:
        """Give a place back."""
        with self._lock:
            self._free += 1
