"""Networks of more than the testbed's two hosts, put together from the parts of this package."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from channel.errors import ErrorModel
from hosts.tcp.config import TcpConfig
from linklayer.queues import Queue
from testbed.model.applications import Counter, StreamReceiver, StreamSender
from testbed.model.clock import Clock
from testbed.model.host import Host, Socket
from testbed.model.wire import Router, Wire
from testbed.scenario.channel_models import make_rng

#: addresses of the first source and the first sink: 10.1.0.1 and 10.2.0.1
_SOURCES, _SINKS = 0x0A01_0001, 0x0A02_0001
#: where the sinks listen
PORT = 5000


@dataclass(frozen=True, slots=True)
class DumbbellConfig:
    """The wires of a dumbbell. The defaults are the LT-TCP paper's; `access_bps` is ours."""

    pairs: int = 10
    bottleneck_bps: int = 10_000_000
    bottleneck_delay_ns: int = 20_000_000
    #: of every host's own wire, both ways
    access_bps: int = 100_000_000
    access_delay_ns: int = 0


class Dumbbell:
    """Pairs of hosts on both sides of one bottleneck; every source sends to the sink of the same number.

        sources -- access -- router -- bottleneck, `queue` -- router -- access, `last_hop` -- sinks

    `queue` is in front of the bottleneck for data. What waits elsewhere waits in queues without limit. `last_hop(i)`
    makes the error model of the wire to sink i, for data only; ACKs are not lost.
    """

    def __init__(
        self,
        clock: Clock,
        config: DumbbellConfig,
        *,
        seed: int,
        queue: Queue,
        last_hop: Callable[[int], ErrorModel] | None = None,
    ) -> None:
        self.clock = clock
        to_sources, to_sinks = Router(), Router()
        rate, delay_ns = config.bottleneck_bps, config.bottleneck_delay_ns
        self.bottleneck = Wire(clock, to_sinks.deliver, rate_bps=rate, delay_ns=delay_ns, queue=queue)
        self.bottleneck_back = Wire(clock, to_sources.deliver, rate_bps=rate, delay_ns=delay_ns)
        self.sources: list[Host] = []
        self.sinks: list[Host] = []
        access = partial(Wire, clock, rate_bps=config.access_bps, delay_ns=config.access_delay_ns)
        for i in range(config.pairs):
            up, down = access(self.bottleneck.send), access(self.bottleneck_back.send)
            source = Host(clock, _SOURCES + i, up.send, make_rng(seed, "iss", "source", str(i)))
            sink = Host(clock, _SINKS + i, down.send, make_rng(seed, "iss", "sink", str(i)))
            errors = None if last_hop is None else last_hop(i)
            to_sources.routes[source.address] = access(source.deliver).send
            to_sinks.routes[sink.address] = access(sink.deliver, errors=errors).send
            self.sources.append(source)
            self.sinks.append(sink)

    def send_bulk(self, config: TcpConfig, starts_ns: list[int]) -> tuple[list[StreamSender], list[Counter]]:
        """Let each source send without end from its start (ns, not over yet) on; return senders and what is received.

        The senders are there once they have started.
        """
        senders: list[StreamSender] = []
        counters = [Counter() for _ in self.sinks]

        def start(i: int) -> None:
            senders.append(StreamSender(self.sources[i], self.sinks[i].address, PORT, config))

        for i, (sink, counter) in enumerate(zip(self.sinks, counters, strict=True)):
            sink.listen(config, PORT, partial(_accept, sink, counter))
            self.clock.at(starts_ns[i], start, i)
        return senders, counters


def _accept(host: Host, counter: Counter, socket: Socket) -> StreamReceiver:
    return StreamReceiver(host, socket, counter)
