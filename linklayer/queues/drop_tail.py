"""A FIFO with a limit."""

from collections import deque
from collections.abc import Sized
from dataclasses import dataclass
from typing import Final

from mypy_extensions import mypyc_attr

from common.options import Count
from linklayer.queues import Queue, QueuePlugin

_NO_LIMIT: Final = 1 << 61


@mypyc_attr(allow_interpreted_subclasses=True)
class DropTail(Queue):
    """A FIFO of at most `limit_bytes` and at most `limit_packets` (one may be None): a packet without room is lost.

    Raises ValueError without any limit.
    """

    def __init__(self, limit_bytes: int | None = None, limit_packets: int | None = None) -> None:
        super().__init__()
        if limit_bytes is None and limit_packets is None:
            raise ValueError("a queue needs limit_bytes, limit_packets or both")
        self._limit_bytes = _NO_LIMIT if limit_bytes is None else limit_bytes
        self._limit_packets = _NO_LIMIT if limit_packets is None else limit_packets
        self._packets: deque[Sized] = deque()

    def __len__(self) -> int:
        return len(self._packets)

    def push(self, packet: Sized, now: int) -> bool:
        packets = self._packets
        nbytes = self.nbytes + len(packet)
        if nbytes > self._limit_bytes or len(packets) >= self._limit_packets:
            self.drops += 1
            return False
        packets.append(packet)
        self.nbytes = nbytes
        return True

    def pop(self, now: int) -> Sized | None:
        if not self._packets:
            return None
        packet = self._packets.popleft()
        self.nbytes -= len(packet)
        return packet


@mypyc_attr(allow_interpreted_subclasses=True)
@dataclass(frozen=True, kw_only=True)
class DropTailOptions:
    """A limit in packets beside that in octets, which `ip_queue_bytes` is."""

    #: most packets that wait; None: as many as fit the limit in octets
    limit_packets: Count | None = None


QUEUE = QueuePlugin(
    name="drop-tail",
    summary="lost when it does not fit",
    options=DropTailOptions,
    make=lambda options, context: DropTail(context.limit_bytes, options.limit_packets),
    example={"limit_packets": 10},
)
