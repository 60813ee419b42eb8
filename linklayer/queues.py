"""The IP queue in front of the link: where packets wait until the link wants one."""

from collections import deque
from collections.abc import Sized


class DropTail:
    """A FIFO of at most `limit_bytes`; a packet that does not fit is dropped."""

    def __init__(self, limit_bytes: int) -> None:
        if limit_bytes <= 0:
            raise ValueError(f"limit_bytes is {limit_bytes}: must be more than 0")
        self._limit = limit_bytes
        self._packets: deque[Sized] = deque()
        #: bytes waiting; <= limit_bytes
        self.nbytes = 0
        #: packets refused
        self.drops = 0

    def __len__(self) -> int:
        return len(self._packets)

    def push(self, packet: Sized) -> bool:
        """Queue one packet; return False, and count it, when there is no room."""
        if self.nbytes + len(packet) > self._limit:
            self.drops += 1
            return False
        self._packets.append(packet)
        self.nbytes += len(packet)
        return True

    def pop(self) -> Sized:
        """Take the oldest packet. Raises IndexError when there is none."""
        packet = self._packets.popleft()
        self.nbytes -= len(packet)
        return packet
