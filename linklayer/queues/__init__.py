"""Queues: where packets wait for a link that is busy or does not want one yet. A file each, which declares a `QUEUE`.

Read first: RFC 3168 sections 5 and 7 (ECN); RFC 7567 (active queue management).

Rules kept here:

- A packet is counted by `len()`, the octets of the whole IP packet. A queue that manages itself *notifies* a packet: it
  marks the packet with CE where the packet's sender understands that, and drops it where not (`tcpip/access.py`).
- A packet leaves as it came but for CE. Packets of one flow leave in the order they came; with `dualpi2` those of one
  flow and one class of ECN do.
- Whatever is lost in a queue is lost by congestion; `drops` counts all of it.
- A queue draws only from the generator it was given.

Left out: thresholds in bytes. `linklayer/classify.py` says which of a station's two queues a
packet takes.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from mypy_extensions import mypyc_attr

from common.registry import Registry
from tcpip.access import with_ce


@mypyc_attr(allow_interpreted_subclasses=True)
class Queue(ABC):
    """Packets that wait. `len()` is their number. Times are in ns."""

    def __init__(self) -> None:
        #: octets waiting
        self.nbytes = 0
        #: packets lost here, those that did not fit among them
        self.drops = 0
        #: packets sent on with CE
        self.marks = 0
        self._dropped: Callable[[Sized, int], None] | None = None

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def push(self, packet: Sized, now: int) -> bool:
        """Queue one packet that has come at `now`; return False, and count it, when it is dropped."""

    @abstractmethod
    def pop(self, now: int) -> Sized | None:
        """Take the next packet at `now`, or return None when there is none (any more)."""

    def watch(self, dropped: Callable[[Sized, int], None]) -> None:
        """Call `dropped(packet, now)` for every waiting packet that is dropped; of an arrival `push` tells."""
        self._dropped = dropped

    def _mark(self, packet: Sized) -> Sized | None:
        """Return the packet with CE, and count it, or None where it cannot be marked."""
        marked: Sized | None = with_ce(packet)
        if marked is not None:
            self.marks += 1
        return marked

    def _drop_waiting(self, packet: Sized, now: int) -> None:
        """Count a packet that was taken out of the queue to be dropped."""
        self.drops += 1
        if self._dropped is not None:
            self._dropped(packet, now)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueContext:
    """Properties of its place that a queue may use."""

    rng: Random
    #: how long the largest packet takes on the link
    packet_time_ns: int
    #: octets of the largest packet
    mtu_bytes: int = 1500
    #: octets that the queue may hold; None: the queue's own limit in packets is the only one
    limit_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class QueuePlugin:
    """A queue as scenarios know it: `link.queue.kind` is its name, its options stand beside that."""

    name: str
    #: what it does with an arrival, for the table in docs/scenarios.md
    summary: str
    #: a dataclass (`common/options.py`) whose fields have defaults
    options: type[Any]
    #: makes a queue of its options. Raises ValueError in one line.
    make: Callable[[Any, QueueContext], Queue]
    #: options as a scenario gives them, for tests: a queue of twenty packets of 1500 octets drops or marks some
    example: Mapping[str, Any]


QUEUES: Final = Registry("linklayer.queues", "QUEUE", QueuePlugin)
