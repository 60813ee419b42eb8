"""slacp-adaptive under attack."""

from random import Random
from typing import Final, cast

from typing_extensions import override

from common.sequence import MASK
from common.units import MS
from linklayer.adaptive import frames as adaptive
from linklayer.adaptive.code import Field
from linklayer.adaptive.endpoint import Adaptive
from linklayer.link import FrameError
from tests.harness.attack.damage import mutated
from tests.harness.attack.door import Door, require
from tests.harness.checked import footprint

#: octets that an end of a link may hold: 16384 packets, and a decoder's equations
MOST_HELD: Final = 64 << 20


class AdaptiveDoor(Door):
    """Damaged frames between those of a valid flow, a tenth of which is lost, and frames with a right CRC that lie to
    an end of their own.
    """

    def __init__(self, seed: int) -> None:
        self._sender, self._receiver, self._alone = (
            Adaptive(round_trips=3, budget_ns=0, frame_ns=MS, code=Field(), rng=Random(seed + number), now=0)
            for number in range(3)
        )
        self._now = self._given = self._gone = self._lies = 0
        #: the number of the packet that came last
        self._last = -1
        #: octets under way, a step long
        self._forth: list[bytes] = []
        self._back: list[bytes] = []

    @override
    def shoot(self, rng: Random) -> None:
        if rng.random() < 0.5:
            self._lie(rng)
            return
        self._now += MS
        forth, self._forth, back, self._back = self._forth, [], self._back, []
        for link, came in ((self._receiver, forth), (self._sender, back)):
            for octets in came:
                link.handle_frame(adaptive.parse(octets), self._now)
            self._expire(link, self._now)
        if self._sender.wants_packet(0) and rng.random() < 0.7:
            self._sender.handle_packet(self._given.to_bytes(8, "big"), self._given & 1)
            self._given += 1
        for link, leaving in ((self._sender, self._forth), (self._receiver, self._back)):
            while (frame := link.poll_frame(self._now)) is not None:
                octets = adaptive.emit(frame)
                self._damage(rng, octets)
                if rng.random() >= 0.1:
                    leaving.append(octets)
        while (found := self._receiver.poll_packet()) is not None:
            number, channel = int.from_bytes(cast(bytes, found[0]), "big"), found[1]
            require(number < self._given, f"packet {found[0]!r} was never sent")
            require(channel == number & 1, f"packet {number} came on channel {channel}")
            if not channel:
                require(number > self._last, f"packet {number} came behind {self._last}")
                self._last = number
        while self._sender.poll_given_up() is not None:
            self._gone += 1

    def _damage(self, rng: Random, octets: bytes) -> None:
        try:
            found = adaptive.emit(adaptive.parse(mutated(rng, octets)))
        except FrameError:
            return
        # bits that were flipped twice
        require(found == octets, "a damaged frame was taken for a whole one")

    def _expire(self, link: Adaptive, now: int) -> None:
        link.handle_deadline(now)
        at = link.next_deadline()
        require(at is None or at > now, f"at {now}: a deadline at {at} would spin")

    def _lie(self, rng: Random) -> None:
        link, self._lies = self._alone, self._lies + 1
        now = self._now + self._lies * MS // 2
        if link.wants_packet(0):
            link.handle_packet(bytes(1400), 0)
        near = rng.choice((self._lies, 1 << 31, 0xFFFF_F000, rng.getrandbits(32)))
        tx, ahead = near + rng.randrange(3000) & MASK, rng.randrange(5000)
        session = rng.choice((1, 1, 1, 1, 1, 1, rng.getrandbits(16)))
        head = session, rng.randrange(2), tx, near & MASK, rng.choice((0, 180, 0xFFFF)), rng.getrandbits(8)
        kind = rng.random()
        frame: adaptive.Frame
        if kind < 0.5:
            frame = adaptive.Data(*head, near + ahead & MASK, bytes(1400))
        elif kind < 0.75:
            members = rng.choice((1, rng.getrandbits(8), rng.getrandbits(64))) | 1
            payload = rng.randbytes(rng.choice((2, 40, 1402)))
            frame = adaptive.Coded(*head, near + ahead & MASK, members, rng.randrange(128), payload)
        elif kind < 0.8:
            frame = adaptive.Mark(*head)
        else:
            # who knows the session may settle packets, and no more
            known = link.sender._session if rng.random() < 0.5 else session
            bits = rng.choice((0, 64, adaptive.MAX_BITS))
            sent = rng.choice((tx, rng.randrange(max(1, link.sender._next_tx))))
            bitmaps = [rng.getrandbits(bits) if bits else 0 for _ in range(2)]
            frame = adaptive.Ack(known, rng.getrandbits(8), sent, bitmaps[0], sent - 5 & MASK, bitmaps[1])
        link.handle_frame(adaptive.parse(adaptive.emit(frame)), now)
        self._expire(link, now)
        for _ in range(4):
            link.poll_frame(now)
        for poll in (link.poll_packet, link.poll_given_up):
            while poll() is not None:
                pass

    @override
    def check(self) -> None:
        held = footprint(self._alone)
        require(held <= MOST_HELD, f"{held} octets are held")
        counters = self._receiver.counters()
        settled = counters.delivered + self._gone
        require(self._given - settled <= 64, f"{self._given - settled} packets of the valid flow are missing")
        require(counters.delivered > 0.9 * self._given - 64, f"{counters.delivered} of {self._given} packets came")
