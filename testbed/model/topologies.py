"""Networks of more than two hosts, built from the parts of this package."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from channel.errors import ErrorModel
from common.sides import Side
from hosts.engine.own_tcp import OwnSender
from hosts.engine.probe import FlowCounter
from hosts.engine.stack import Stack
from hosts.tcp.config import TcpConfig
from linklayer.queues import Queue
from testbed.model.radio_link import RadioLink, RadioLinkConfig, make_radio_link
from testbed.model.transfers import receive, send
from testbed.model.virtual_clock import VirtualClock
from testbed.model.wired_link import Router, Wire
from testbed.scenario.run_plan import make_rng

#: addresses of the first source and the first sink: 10.1.0.1 and 10.2.0.1
_SOURCES: Final = 0x0A01_0001
_SINKS: Final = 0x0A02_0001
#: port of the sinks
PORT: Final = 5000


@dataclass(frozen=True, slots=True)
class DumbbellConfig:
    """The wires of a dumbbell. The defaults are the LT-TCP paper's; `access_bps` is ours."""

    pairs: int = 10
    bottleneck_bps: int = 10_000_000
    bottleneck_delay_ns: int = 20_000_000
    #: wire between each host and its router, both ways
    access_bps: int = 100_000_000
    access_delay_ns: int = 0


class Dumbbell:
    """Pairs of hosts on both sides of one bottleneck; every source sends to the sink of the same number.

        sources -- access -- router -- bottleneck, `queue` -- router -- access, `last_hop` -- sinks

    `queue` is the queue of the bottleneck for data; all other queues have no limit. `last_hop(i)` makes the error model
    of the wire to sink i, for data; `last_hop_back(i)` that of its ACKs, without which none is lost. With `link` the
    last hop is a radio link of that scheme, with the access wires' rate and delay, and the error models decide the
    fates of its frames.
    """

    def __init__(
        self,
        clock: VirtualClock,
        config: DumbbellConfig,
        *,
        seed: int,
        queue: Queue,
        last_hop: Callable[[int], ErrorModel] | None = None,
        last_hop_back: Callable[[int], ErrorModel] | None = None,
        link: RadioLinkConfig | None = None,
    ) -> None:
        self.clock = clock
        self._config, self._seed = config, seed
        to_sources, to_sinks = Router(), Router()
        rate, delay_ns = config.bottleneck_bps, config.bottleneck_delay_ns
        self.bottleneck = Wire(clock, to_sinks, rate_bps=rate, delay_ns=delay_ns, queue=queue)
        self.bottleneck_back = Wire(clock, to_sources, rate_bps=rate, delay_ns=delay_ns)
        self.sources: list[Stack] = []
        self.sinks: list[Stack] = []
        #: to the sinks, in their order, where the last hop is one
        self.links: list[RadioLink] = []
        access = partial(Wire, clock, rate_bps=config.access_bps, delay_ns=config.access_delay_ns)
        for i in range(config.pairs):
            source = Stack(clock, _SOURCES + i, access(self.bottleneck), make_rng(seed, "iss", "source", str(i)))
            to_sources.routes[source.address] = access(source)
            errors = None if last_hop is None else last_hop(i)
            errors_back = None if last_hop_back is None else last_hop_back(i)
            rng = make_rng(seed, "iss", "sink", str(i))
            if link is None:
                sink = Stack(clock, _SINKS + i, access(self.bottleneck_back, errors=errors_back), rng)
                to_sinks.routes[sink.address] = access(sink, errors=errors)
            else:
                radio = self._radio_link(i, link, errors, errors_back)
                sink = Stack(clock, _SINKS + i, radio.stations["up"], rng)
                to_sinks.routes[sink.address] = radio.stations["down"]
                self.links.append(radio)
            self.sources.append(source)
            self.sinks.append(sink)

    def _radio_link(self, i: int, link: RadioLinkConfig, down: ErrorModel | None, up: ErrorModel | None) -> RadioLink:
        config = self._config
        errors: dict[Side, ErrorModel | None] = {"down": down, "up": up}
        return make_radio_link(
            self.clock,
            replace(link, rate_bps=config.access_bps, propagation_ns=config.access_delay_ns),
            seed=self._seed,
            deliver={"down": lambda packet: self.sinks[i].take(packet), "up": self.bottleneck_back},
            errors={side: model for side, model in errors.items() if model is not None},
            name=f"last hop/{i}",
        )

    def send_bulk(self, config: TcpConfig, starts_ns: list[int]) -> tuple[list[OwnSender], list[FlowCounter]]:
        """Let each source send without end from its start (ns, not in the past); return senders and receive counters.

        The list of senders fills as they start.
        """
        senders: list[OwnSender] = []

        def start(i: int) -> None:
            senders.append(send(self.sources[i], self.sinks[i].address, PORT, config))

        for i, start_ns in enumerate(starts_ns):
            self.clock.at(start_ns, start, i)
        return senders, [receive(sink, PORT, config) for sink in self.sinks]
