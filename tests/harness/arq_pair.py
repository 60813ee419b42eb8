"""Two ends of link ARQ, joined by a medium of 1 ms that loses chosen frames; times in ms."""

import heapq
from collections.abc import Callable
from random import Random
from typing import Any

from common.units import MS
from linklayer.arq.endpoint import Arq
from linklayer.arq.frames import Ack, Data, emit, parse

#: (end that sends, number of its frame, frame) -> whether it is lost
Loses = Callable[[int, int, Any], bool]


def arq(seed: int = 1, **options: Any) -> Arq:
    chosen: dict[str, Any] = {"resend_after_ns": 40 * MS, "retries": 2, "window": 64, "in_order": False}
    return Arq(**{**chosen, "cutter": None, "combine": True, **options}, rng=Random(seed))


class Pair:
    """Two ends; a frame takes 1 ms. `sent` and `got` are (ms, frame or packet) by end."""

    def __init__(self, loses: Loses = lambda end, number, frame: False, **options: Any) -> None:
        self.ends = [arq(1, **options), arq(2, **options)]
        self.loses = loses
        self.now = 0
        self.sent: list[list[tuple[int, Any]]] = [[], []]
        self.got: list[list[tuple[int, Any]]] = [[], []]
        self._air: list[tuple[int, int, int, Any]] = []
        self._count = 0

    def give(self, *packets: bytes, end: int = 0) -> None:
        for packet in packets:
            assert self.ends[end].wants_packet(0)
            self.ends[end].handle_packet(packet, 0)
            self.settle()

    def settle(self) -> None:
        for end, link in enumerate(self.ends):
            while (found := link.poll_packet()) is not None:
                self.got[end].append((self.now // MS, found[0]))
            while (frame := link.poll_frame(self.now)) is not None:
                lost = self.loses(end, len(self.sent[end]), frame)
                self.sent[end].append((self.now // MS, frame))
                if not lost:
                    self._count += 1
                    heapq.heappush(self._air, (self.now + MS, self._count, 1 - end, parse(emit(frame))))

    def run(self, until_ms: int) -> "Pair":
        while True:
            deadlines = [at for link in self.ends if (at := link.next_deadline()) is not None]
            at = min([*deadlines, *(entry[0] for entry in self._air[:1])], default=None)
            if at is None or at > until_ms * MS:
                self.now = until_ms * MS
                return self
            self.now = at
            while self._air and self._air[0][0] <= at:
                _, _, end, frame = heapq.heappop(self._air)
                self.ends[end].handle_frame(frame, at)
            for link in self.ends:
                link.handle_deadline(at)
            self.settle()

    def data_times(self, end: int = 0) -> list[tuple[int, int]]:
        return [(at, frame.seq) for at, frame in self.sent[end] if not isinstance(frame, Ack)]


def loses_data(*numbers: int) -> Loses:
    """Loses these data frames of end 0, counted from 0."""
    seen = iter(range(1 << 30))
    return lambda end, number, frame: end == 0 and isinstance(frame, Data) and next(seen) in numbers
