"""Bulk flows over a dumbbell with RED at its bottleneck and independent losses at its last hops (LT-TCP section IV)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from channel.errors.bernoulli import Bernoulli
from common.units import MS, SECOND
from hosts.engine.own_tcp import OwnSender
from hosts.engine.probe import FlowCounter
from hosts.tcp.profiles import USER_PROFILES
from linklayer.queues import QueueContext
from linklayer.queues.red import Red, RedOptions
from testbed.model.radio_link import RadioLinkConfig
from testbed.model.topologies import Dumbbell, DumbbellConfig
from testbed.model.virtual_clock import VirtualClock
from testbed.scenario.run_plan import make_rng

_HEADER_BYTES: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkFlowsConfig:
    """The flows, their path, and the queue in front of the bottleneck, which marks. The defaults are the paper's."""

    #: of our own TCP
    profile: str
    #: other values of its options, by their names
    tcp: Mapping[str, Any] = field(default_factory=dict)
    segment_bytes: int = 500
    receive_buffer_bytes: int = 1 << 20
    #: the flows start one after another
    stagger_ns: int = 10 * MS
    dumbbell: DumbbellConfig = field(default_factory=DumbbellConfig)
    #: of each last hop, for data
    per: float = 0.0
    #: and for ACKs, too
    loses_acks: bool = False
    #: last hops that are radio links
    link: RadioLinkConfig | None = None
    red: RedOptions


class BulkFlows:
    """The network with its flows, ready to be run by its `clock`; the senders fill as the flows start."""

    senders: list[OwnSender]
    #: of the receivers
    counters: list[FlowCounter]

    def __init__(self, config: BulkFlowsConfig, seed: int) -> None:
        self.clock = VirtualClock()
        dumbbell = config.dumbbell
        packet_bytes = config.segment_bytes + _HEADER_BYTES
        packet_ns = 8 * packet_bytes * SECOND // dumbbell.bottleneck_bps
        self.queue = Red(config.red, QueueContext(rng=make_rng(seed, "red"), packet_time_ns=packet_ns))
        self._errors = [Bernoulli(config.per, make_rng(seed, "last hop", str(i))) for i in range(dumbbell.pairs)]
        self._errors_back = [
            Bernoulli(config.per, make_rng(seed, "last hop", str(i), "up")) for i in range(dumbbell.pairs)
        ]
        self.network = Dumbbell(
            self.clock,
            dumbbell,
            seed=seed,
            queue=self.queue,
            last_hop=self._errors.__getitem__,
            last_hop_back=self._errors_back.__getitem__ if config.loses_acks else None,
            link=None if config.link is None else replace(config.link, mtu_bytes=packet_bytes),
        )
        # no timestamps, as in ns-2
        tcp = USER_PROFILES[config.profile].config.but(
            mss=config.segment_bytes, timestamps=False, receive_buffer=config.receive_buffer_bytes, **config.tcp
        )
        starts_ns = [config.stagger_ns * i for i in range(dumbbell.pairs)]
        self.senders, self.counters = self.network.send_bulk(tcp, starts_ns)

    @property
    def per(self) -> float:
        """PER of the last hops, a share; of ACKs as well, where they are lost."""
        return self._errors[0].per

    @per.setter
    def per(self, per: float) -> None:
        for errors in (*self._errors, *self._errors_back):
            errors.per = per

    @property
    def bytes_received(self) -> int:
        """Payload that all receivers have read."""
        return sum(counter.nbytes for counter in self.counters)

    def total(self, counter: str) -> int:
        """Return the sum of a counter of the senders (hosts/tcp/counters.py)."""
        return sum(getattr(sender.connection.counters, counter) for sender in self.senders)
