"""Hostile segments at LT-TCP's options: a valid flow between two connections, and an attacker beside it.

The valid flow carries octets across a lossy path. Between its events the attacker hands segments to both ends: copies
of the flow's own segments with fields changed, and segments of its own making. A `blind` attacker does not know the
flow's numbers, and draws them; the flow must not feel it. Another knows them: its forgeries can end up in the data, as
forged data can, and only the rules of memory and exceptions are checked.
"""

from dataclasses import dataclass, replace
from random import Random

from common.units import MS, SECOND
from hosts.tcp.config import TcpConfig
from hosts.tcp.connection import Connection
from hosts.tcp.profiles import USER_PROFILES
from tcpip.options import EXPERIMENTAL, LT_EXID, fec_option, report_option
from tcpip.segment import ACK, Option, Segment
from tests.hosts.tcp.pair import Pair, Path

CONFIG = replace(USER_PROFILES["lt-tcp"].config, receive_buffer=1 << 18, send_buffer=1 << 18, data_retries=40)


class RuleBrokenError(AssertionError):
    """A connection broke a rule under attack."""


@dataclass
class Report:
    """One attack."""

    shots: int = 0
    octets: int = 0
    intact: bool = True
    #: most octets that one end's decoder held
    most_held: int = 0
    virtual_s: float = 0.0


class Attack:
    """An attack of `shots` segments, `per_event` of them at each event of the flow."""

    def __init__(self, seed: int, *, blind: bool, per: float = 0.2, config: TcpConfig = CONFIG) -> None:
        self.rng, self.blind, self.config = Random(seed), blind, config
        loss = Random(seed + 1)
        self.pair = Pair(
            config,
            up=Path(drop=lambda segment: segment.length > 0 and loss.random() < per, delay_ns=20 * MS),
            down=Path(delay_ns=20 * MS),
            octets=True,
        )
        #: recent segments of the flow, by the end that has sent them
        self.seen: list[list[Segment]] = [[], []]
        self.pair.sent = self._see
        self.report = Report()

    def _see(self, end: int, segment: Segment) -> None:
        seen = self.seen[end]
        seen.append(segment)
        if len(seen) > 32:
            del seen[0]

    def run(self, nbytes: int, shots: int, per_event: int) -> Report:
        """Send so many octets under attack; without shots, in peace. Raises RuleBrokenError."""
        pair, report = self.pair, self.report
        data = Random(7).randbytes(nbytes)
        pair.send(0, data)
        # forged data can end in a war of ACKs
        limit_ns = (600 if self.blind else 5) * SECOND

        def shoot() -> None:
            for _ in range(min(per_event, shots - report.shots)):
                self._shoot()
            self._check()

        pair.watch = shoot
        ended = lambda: len(pair.octets[1]) >= nbytes or pair.client.closed or pair.server.closed  # noqa: E731
        try:
            pair.run_until(ended, limit_ns)
        except AssertionError as error:
            if self.blind:
                raise RuleBrokenError(str(error)) from error
        report.octets = len(pair.octets[1])
        report.intact = pair.octets[1] == data
        report.virtual_s = pair.now / SECOND
        if self.blind and not report.intact:
            raise RuleBrokenError(f"the flow has {report.octets} of {nbytes} octets, or others")
        return report

    def _shoot(self) -> None:
        """Hand a hostile segment to one end."""
        rng, target = self.rng, self.rng.randrange(2)
        victim: Connection = self.pair.ends[target]
        segment = self._segment(1 - target, victim)
        self.report.shots += 1
        victim.handle_segment(segment, self.pair.now)
        if rng.random() < 0.01:
            victim.handle_deadline(self.pair.now)

    def _segment(self, sender: int, victim: Connection) -> Segment:
        rng = self.rng
        seen = self.seen[sender]
        model = rng.choice(seen) if seen else Segment(victim.flow.reversed(), 0, 0, ACK, 1000)
        length = rng.choice((0, 1, 150, 500, 1408, rng.randrange(1500)))
        seq, ack = rng.getrandbits(32), rng.getrandbits(32)
        if not self.blind:
            seq = (model.seq + rng.choice((0, 0, -length, rng.randrange(-3000, 3000)))) & 0xFFFF_FFFF
            ack = (model.ack + rng.choice((0, 0, rng.randrange(-3000, 3000)))) & 0xFFFF_FFFF
        flags = ACK if self.blind or rng.random() < 0.98 else rng.getrandbits(8) & ~0b100
        stamps = model.timestamps
        if stamps is not None and (self.blind or rng.random() < 0.1):
            stamps = rng.getrandbits(32), rng.getrandbits(32)
        payload = rng.randbytes(length)
        if not self.blind and model.payload is not None and rng.random() < 0.5:
            payload, length = model.payload, model.length
        sack = ((seq, (seq + length) & 0xFFFF_FFFF),) if rng.random() < 0.1 else ()
        return Segment(
            victim.flow.reversed(), seq, ack, flags, rng.getrandbits(16), length, payload, sack, stamps,
            None, self._options(model), rng.randrange(4),
        )  # fmt: skip

    def _options(self, model: Segment) -> tuple[Option, ...]:
        rng = self.rng
        kind = rng.randrange(6)
        if kind == 0 and model.extra:
            # a bit of a real one
            option = model.extra[0]
            octets = bytearray(option.data)
            octets[rng.randrange(len(octets))] ^= 1 << rng.randrange(8)
            return (Option(option.kind, bytes(octets)),)
        if kind == 1:
            return (Option(EXPERIMENTAL, LT_EXID + rng.randbytes(rng.randrange(20))),)
        if kind == 2:
            return (report_option(rng.getrandbits(16), rng.getrandbits(16), rng.getrandbits(8)),)
        start = rng.getrandbits(32) if self.blind else (model.seq + rng.randrange(-5000, 50_000)) & 0xFFFF_FFFF
        members = rng.choice((1, 2, 10, rng.getrandbits(8)))
        return (fec_option(start, members, rng.choice((0, 1, rng.getrandbits(8))), rng.getrandbits(11), 1),)

    def _check(self) -> None:
        """Check the bounds of both ends. Raises RuleBrokenError."""
        most = self.config.receive_buffer
        for end in self.pair.ends:
            receiver = end._receiver
            decoder = receiver.decoder
            if decoder is None:
                continue
            held = decoder._stored + len(decoder._kept)
            self.report.most_held = max(self.report.most_held, held)
            if decoder._stored > most or len(decoder._kept) > 2 * most or len(decoder._blocks) > 32:
                raise RuleBrokenError(f"a decoder holds {held} octets in {len(decoder._blocks)} blocks")
            recent = receiver._reassembly.recent
            if recent and max(stop for _, stop in recent) > max(receiver._advertised, receiver.nxt):
                raise RuleBrokenError("octets behind the window are kept")
            protection = end._sender.protection
            if protection is not None and not 0 <= protection.estimate.rate <= 1:
                raise RuleBrokenError("the estimate is no share")
