"""A connection of our TCP under attack: the common part of `lt_tcp.py` and `accecn.py`."""

from abc import abstractmethod
from random import Random

from typing_extensions import override

from common.sequence import MASK
from common.units import MS, SECOND
from hosts.tcp.config import TcpConfig
from hosts.tcp.connection import Connection
from tcpip.segment import (
    ACK,
    RST,
    Option,
    Segment,
)  # fmt: skip
from tests.harness.attack.door import Door, require
from tests.hosts.tcp.pair import Drop, Pair, Path


class TcpDoor(Door):
    """Hostile segments at both ends of a connection that carries octets across a lossy path.

    A `blind` attacker draws the flow's numbers, and hits no window; the flow must not feel it. Another knows them: its
    forgeries can end up in the data, as forged data can, and only the rules of memory and exceptions are checked.
    """

    #: of both ends
    CONFIG: TcpConfig
    #: octets of a flow; hostile segments between two events of it, and the least time between two such events: else all
    #: events were answers to strays, and the handshake had no end
    NBYTES, PER_EVENT, STEP_NS = 50_000, 10, 2 * MS
    #: how long a flow with forged segments lasts at most
    FORGED_NS = 5 * SECOND
    #: of the goodput that a flow has in peace: the ACKs that answer strays (RFC 9293 section 3.10.7.4) share its path
    LEAST_GOODPUT = 0.6
    #: flows that are compared together: a lost tail makes one several times as long
    COMPARED = 32

    def __init__(self, blind: bool, seed: int) -> None:
        self._blind, self._seed = blind, seed
        self._data = Random(7).randbytes(self.NBYTES)
        #: how long flows took, and without the attack
        self._took: list[tuple[int, int]] = []
        self._begin()

    def _begin(self) -> None:
        self._seed += 1
        self._pair, self._seen, self._events, self._shots = self._flow(), ([], []), 0, 0

    #: recent segments of the flow, by the end that has sent them
    _seen: tuple[list[Segment], list[Segment]]

    def _flow(self) -> Pair:
        up = Path(drop=self._drop(), delay_ns=20 * MS)
        pair = Pair(self.CONFIG, up=up, down=Path(delay_ns=20 * MS), octets=True)
        pair.send(0, self._data)
        return pair

    def _drop(self) -> Drop:
        """Return what the way of the data does to a new flow: it loses a fifth."""
        loss = Random(self._seed)
        return lambda segment: segment.length > 0 and loss.random() < 0.2

    @property
    def _ended(self) -> bool:
        pair = self._pair
        # forged data can end in a war of ACKs
        too_long = not self._blind and pair.now > self.FORGED_NS
        return len(pair.octets[1]) >= self.NBYTES or pair.client.closed or pair.server.closed or too_long

    @override
    def shoot(self, rng: Random) -> None:
        if self._shots % self.PER_EVENT == 0:
            self._go_on()
        self._shots += 1
        target = rng.randrange(2)
        victim = self._pair.ends[target]
        hostile = self._segment(rng, 1 - target)
        if self._blind and (hostile.seq - victim._receiver.nxt) & MASK < self.CONFIG.buffers.receive_buffer:
            # its number is right by chance
            return
        self._hand_over(rng, victim, hostile)
        if rng.random() < 0.01:
            victim.handle_deadline(self._pair.now)

    def _hand_over(self, rng: Random, victim: Connection, hostile: Segment) -> None:
        victim.handle_segment(hostile, self._pair.now)

    def _go_on(self) -> None:
        """Let the next event of the flow happen; where it has ended, look at it and begin another."""
        if self._ended:
            self._look()
            self._begin()
        pair, before, until = self._pair, self._events, self._pair.now + self.STEP_NS

        def watch() -> None:
            self._events += 1

        def sent(end: int, segment: Segment) -> None:
            self._check_sent(segment)
            self._seen[end].append(segment)
            del self._seen[end][:-32]

        pair.watch, pair.sent = watch, sent
        try:
            pair.run_until(lambda: self._events > before and pair.now >= until, 600 * SECOND)
        except AssertionError:
            if self._blind:
                raise
            self._begin()

    def _check_sent(self, segment: Segment) -> None:
        """Check a segment that an end under attack has sent."""

    @override
    def finish(self) -> None:
        if self._blind:
            self._pair.run_until(lambda: self._ended, 600 * SECOND)
            self._look()

    def _look(self) -> None:
        """Look at what a flow has got that has ended."""
        if not self._blind:
            return
        pair = self._pair
        require(pair.octets[1] == self._data, f"the flow has {len(pair.octets[1])} octets, or others")
        calm = self._flow()
        calm.run_until(lambda: len(calm.octets[1]) >= self.NBYTES, 600 * SECOND)
        self._took.append((pair.now, calm.now))
        if len(self._took) == self.COMPARED:
            took, calmly = map(sum, zip(*self._took, strict=True))
            self._took.clear()
            said = f"{self.COMPARED} flows took {took / SECOND:.1f} s, {calmly / SECOND:.1f} s without the attack"
            require(calmly >= self.LEAST_GOODPUT * took, said)

    def _segment(self, rng: Random, sender: int) -> Segment:
        flow = self._pair.ends[1 - sender].flow.reversed()
        model = rng.choice(self._seen[sender] or [Segment(flow, 0, 0, ACK, 1000)])
        length = rng.choice((0, 1, 150, 500, 1408, rng.randrange(1500)))
        seq, ack = rng.getrandbits(32), rng.getrandbits(32)
        if not self._blind:
            seq = (model.seq + rng.choice((0, 0, -length, rng.randrange(-3000, 3000)))) & MASK
            ack = (model.ack + rng.choice((0, 0, rng.randrange(-3000, 3000)))) & MASK
        flags = ACK if self._blind or rng.random() < 0.98 else rng.getrandbits(8) & ~RST
        stamps = model.timestamps
        if stamps is not None and (self._blind or rng.random() < 0.1):
            stamps = rng.getrandbits(32), rng.getrandbits(32)
        payload = rng.randbytes(length)
        if not self._blind and model.payload is not None and rng.random() < 0.5:
            payload, length = model.payload, model.length
        sack = ((seq, (seq + length) & MASK),) if rng.random() < 0.1 else ()
        return Segment(
            flow, seq, ack, flags, rng.getrandbits(16), length, payload, sack, stamps, None,
            self._options(rng, model), rng.randrange(4),
        )  # fmt: skip

    @abstractmethod
    def _options(self, rng: Random, model: Segment) -> tuple[Option, ...]:
        """Draw the options of a hostile segment; `model` is a real one."""
