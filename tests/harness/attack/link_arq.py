"""Link ARQ under attack."""

from random import Random
from typing import Final

from typing_extensions import override

from common.sequence import MASK
from common.units import MS
from linklayer.arq.endpoint import Arq
from linklayer.arq.frames import Ack, Data, Frame, emit, parse
from linklayer.link import FrameError
from tests.harness.attack.damage import mutated
from tests.harness.attack.door import Door, require
from tests.harness.checked import footprint

#: octets that an end of a link may hold: 4096 packets of 1500, twice
MOST_HELD: Final = 16 << 20


class ArqDoor(Door):
    """Damaged frames between those of a valid flow, and frames with a right CRC that lie to an end of their own."""

    def __init__(self, seed: int) -> None:
        # packets in order are held, which is the harder case
        self._sender, self._receiver, self._alone = (
            Arq(
                resend_after_ns=40 * MS,
                retries=2,
                window=1024,
                in_order=True,
                rng=Random(seed + number),
                cutter=None,
                combine=True,
            )
            for number in range(3)
        )
        self._now = self._given = self._got = self._lies = 0

    @override
    def shoot(self, rng: Random) -> None:
        if rng.random() < 0.5:
            self._lie(rng)
            return
        self._now += MS
        if self._sender.wants_packet(0) and self._given - self._got < 64:
            self._sender.handle_packet(self._given.to_bytes(8, "big"), 0)
            self._given += 1
        while (frame := self._sender.poll_frame(self._now)) is not None:
            octets = emit(frame)
            try:
                found = emit(parse(mutated(rng, octets)))
            except FrameError:
                found = octets
            # bits that were flipped twice
            require(found == octets, "a damaged frame was taken for a whole one")
            self._receiver.handle_frame(parse(octets), self._now)
        while (ack := self._receiver.poll_frame(self._now)) is not None:
            self._sender.handle_frame(ack, self._now)
        while (packet := self._receiver.poll_packet()) is not None:
            require(packet[0] == self._got.to_bytes(8, "big"), f"packet {self._got} is {packet[0]!r}")
            self._got += 1

    def _lie(self, rng: Random) -> None:
        link, self._lies = self._alone, self._lies + 1
        now = self._now + self._lies * MS // 2
        if link.wants_packet(0):
            link.handle_packet(bytes(1400), 0)
        near = rng.choice((self._lies, 1 << 31, 0xFFFF_F000, rng.getrandbits(32)))
        seq = near + rng.randrange(5000) & MASK
        frame: Frame = Data(rng.choice((1, 1, 1, rng.getrandbits(16))), self._lies & 1, seq, near & MASK, bytes(1400))
        if rng.random() < 0.3:
            frame = Ack(rng.choice((rng.getrandbits(16), 7)), seq, rng.getrandbits(64))
        link.handle_frame(parse(emit(frame)), now)
        link.handle_deadline(now)
        while link.poll_frame(now) is not None:
            pass
        for poll in (link.poll_packet, link.poll_given_up):
            while poll() is not None:
                pass

    @override
    def check(self) -> None:
        held = footprint(self._alone)
        require(held <= MOST_HELD, f"{held} octets are held")
        require(self._given - self._got <= 64, f"{self._given - self._got} packets of the valid flow are missing")
