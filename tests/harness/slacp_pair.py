"""Two SLACP endpoints joined by a medium the test controls, in virtual time: no clock, no sleep.

`Pair.run` jumps from wakeup to wakeup. The medium is FIFO with a fixed delay; a `drop(direction, frame)` callback
decides what is lost. Frames cross as octets, so every test exercises the wire format, too.
"""

import binascii
import heapq
import re
import zlib
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from typing import cast

from linklayer.classify import RELIABLE
from linklayer.slacp import ReedSolomon, Slacp, SlacpConfig, frames
from linklayer.slacp.frames import Frame
from linklayer.slacp.sender import ArqSender, FastSender
from linklayer.slacp.wire import emit, parse

DOCUMENT = Path(__file__).parents[2] / "docs" / "slacp.md"
MS = 1_000_000
A, B = "a", "b"

Drop = Callable[[str, Frame], bool]


def keep_all(direction: str, frame: Frame) -> bool:
    return False


def packets(n: int) -> list[bytes]:
    return [index.to_bytes(4, "big") * 5 for index in range(n)]


def documented_frames() -> list[tuple[Frame, bytes]]:
    """The ```frame blocks of docs/slacp.md: an object, then its octets in hex."""
    blocks = re.findall(r"^```frame\n(.+?)\n(.+?)^```$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    return [(eval(call, {**vars(frames)}), bytes.fromhex(octets)) for call, octets in blocks]


def sealed(checked: bytes, body: bytes = b"") -> bytes:
    """A frame whose checks are right, of a header without its check."""
    header = checked + binascii.crc_hqx(checked, 0xFFFF).to_bytes(2, "big")
    return header + body + zlib.crc32(header + body).to_bytes(4, "big")


def has_work(end: Slacp) -> bool:
    """Whether a packet waits to be sent or settled, or the peer has not yet heard how it went."""

    def works(sender: ArqSender | FastSender) -> bool:
        if sender._unsent is not None or isinstance(sender, FastSender):
            return sender._unsent is not None
        return bool(sender._outstanding or sender._verdicts) or sender._sync_due

    return any(works(sender) for sender in end._senders)


class Pair:
    """Endpoints `a` and `b` over a link of `delay` ns each way that takes one frame every `frame_time` ns."""

    def __init__(
        self,
        config: SlacpConfig | None = None,
        *,
        delay: int = 25 * MS,
        frame_time: int = 6 * MS,
        first: int = 0,
        seed: int = 1,
        drop: Drop = keep_all,
    ) -> None:
        self.config = config or SlacpConfig()
        self.delay, self.frame_time, self.drop = delay, frame_time, drop
        self.rng = Random(seed)
        self.now = 0
        self.ends = {name: self.make_end(first) for name in (A, B)}
        self.backlog: dict[str, list[tuple[bytes, int]]] = {A: [], B: []}
        self.delivered: dict[str, list[bytes]] = {A: [], B: []}
        self.given_up: dict[str, list[bytes]] = {A: [], B: []}
        self.log: list[tuple[int, str, Frame]] = []
        self.free_at = {A: 0, B: 0}
        self.flying: list[tuple[int, int, str, bytes]] = []
        self.tie = count()

    def make_end(self, first: int = 0) -> Slacp:
        return Slacp(self.config, ReedSolomon(), self.rng, self.now, first=first)

    def restart(self, name: str, first: int = 0) -> None:
        """The station `name` loses all memory; what flies keeps flying."""
        self.ends[name] = self.make_end(first)

    def send(self, name: str, *packets: bytes, channel: int = RELIABLE) -> None:
        self.backlog[name] += [(packet, channel) for packet in packets]

    def carry(self, *packets: bytes, channel: int = RELIABLE) -> None:
        """Send from a to b until all is done."""
        self.send(A, *packets, channel=channel)
        self.run()

    @property
    def idle(self) -> bool:
        return not any(self.backlog.values()) and not any(has_work(end) for end in self.ends.values())

    def step(self) -> None:
        """Do everything that is due now, then jump to the next event."""
        for name, end in self.ends.items():
            self.pump(name, end)
        times = [end.next_deadline() for end in self.ends.values()]
        times += [arrival[0] for arrival in self.flying[:1]]
        times += [at for at in self.free_at.values() if at > self.now]
        self.now = max(self.now, min(times))
        while self.flying and self.flying[0][0] <= self.now:
            _, _, target, octets = heapq.heappop(self.flying)
            self.ends[target].handle_frame(parse(octets), self.now)
        for end in self.ends.values():
            if end.next_deadline() <= self.now:
                end.handle_deadline(self.now)
            assert end.next_deadline() > self.now, "a deadline that does not go away would spin"

    def pump(self, name: str, end: Slacp) -> None:
        target = B if name == A else A
        while self.free_at[name] <= self.now:
            self.offer(name, end)
            frame = end.poll_frame(self.now)
            if frame is None:
                break
            self.log.append((self.now, name, frame))
            self.free_at[name] = self.now + self.frame_time
            if not self.drop(name, frame):
                arrival = (self.now + self.frame_time + self.delay, next(self.tie), target, emit(frame))
                heapq.heappush(self.flying, arrival)
        while (delivery := end.poll_packet()) is not None:
            self.delivered[name].append(cast(bytes, delivery[0]))
        while (packet := end.poll_given_up()) is not None:
            self.given_up[name].append(cast(bytes, packet))

    def offer(self, name: str, end: Slacp) -> None:
        backlog = self.backlog[name]
        for index, (packet, channel) in enumerate(backlog):
            if end.wants_packet(channel):
                end.handle_packet(packet, channel)
                del backlog[index]
                break

    def run_until(self, done: Callable[[], bool], limit: int = 600_000 * MS) -> None:
        """Step until `done()`; fail after `limit` ns of virtual time."""
        end = self.now + limit
        while not done():
            assert self.now < end, f"nothing came of it in {limit / 1e9:.0f} s of virtual time"
            self.step()

    def establish(self) -> "Pair":
        self.run_until(lambda: all(end.established for end in self.ends.values()))
        return self

    def run(self) -> None:
        """Run until nothing is left to send or settle, and what was sent has landed."""
        self.run_until(lambda: self.idle)
        landed = self.now + self.delay + 2 * self.frame_time
        self.run_until(lambda: self.now > landed)
        for name, end in self.ends.items():
            self.pump(name, end)
