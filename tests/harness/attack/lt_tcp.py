"""LT-TCP under attack."""

from random import Random

from typing_extensions import override

from common.sequence import MASK
from hosts.tcp.profiles import USER_PROFILES
from tcpip.options import EXPERIMENTAL, LT_EXID, fec_option, report_option
from tcpip.segment import (
    Option,
    Segment,
)  # fmt: skip
from tests.harness.attack.door import require
from tests.harness.attack.tcp import TcpDoor


class LtTcpDoor(TcpDoor):
    """LT-TCP: mutated options of real segments, random options, FEC segments and reports with plausible numbers."""

    CONFIG = USER_PROFILES["lt-tcp"].config.but(receive_buffer=1 << 18, send_buffer=1 << 18, data_retries=40)

    @override
    def _options(self, rng: Random, model: Segment) -> tuple[Option, ...]:
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
        start = rng.getrandbits(32) if self._blind else (model.seq + rng.randrange(-5000, 50_000)) & MASK
        members = rng.choice((1, 2, 10, rng.getrandbits(8)))
        return (fec_option(start, members, rng.choice((0, 1, rng.getrandbits(8))), rng.getrandbits(11), 1),)

    @override
    def check(self) -> None:
        most = self.CONFIG.buffers.receive_buffer
        for end in self._pair.ends:
            receiver, protection = end._receiver, end._sender.protection
            decoder, recent = receiver.decoder, receiver._reassembly.recent
            if decoder is not None:
                held = (
                    f"a decoder holds {decoder._stored} + {len(decoder._kept)} octets in {len(decoder._blocks)} blocks"
                )
                require(decoder._stored <= most and len(decoder._kept) <= 2 * most and len(decoder._blocks) <= 32, held)
            edge = max(receiver._advertised, receiver.nxt)
            require(all(stop <= edge for _, stop in recent), "octets behind the window are kept")
            require(protection is None or 0 <= protection.estimate.rate <= 1, "the estimate is no share")
