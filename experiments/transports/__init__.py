"""Flows of our own TCP over one bottleneck, each with its own profile, and the waits of their packets there.

Virtual time (tier `model`): the network is a dumbbell of `testbed/model/topologies.py` with a pair of hosts per flow.
"""

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass, field
from typing import Final

from channel.errors.bernoulli import Bernoulli
from common.units import SECOND
from hosts.engine.own_tcp import OwnSender
from hosts.tcp.config import TcpConfig
from hosts.tcp.profiles import USER_PROFILES
from linklayer.queues import QUEUES, Queue, QueueContext
from tcpip.segment import IpPacket
from testbed.model.topologies import PORT, Dumbbell, DumbbellConfig
from testbed.model.transfers import receive, send
from testbed.model.virtual_clock import VirtualClock
from testbed.scenario.run_plan import make_rng

MTU_BYTES: Final = 1500
_HEADER_BYTES: Final = 40


class TimedQueue(Queue):
    """A queue that notes how long the packets of each source have waited in the queue it is made of (ns)."""

    def __init__(self, inner: Queue) -> None:
        super().__init__()
        self._inner = inner
        self._came: dict[int, int] = {}
        #: by source address: when a packet left, and its wait
        self.waits: dict[int, list[tuple[int, int]]] = {}
        inner.watch(self._lose)

    def __len__(self) -> int:
        return len(self._inner)

    def push(self, packet: Sized, now: int) -> bool:
        taken = self._inner.push(packet, now)
        if taken:
            self._came[id(packet)] = now
        self._follow()
        return taken

    def pop(self, now: int) -> Sized | None:
        packet = self._inner.pop(now)
        if isinstance(packet, IpPacket):
            wait = now - self._came.pop(id(packet))
            self.waits.setdefault(packet.flow.source, []).append((now, wait))
        self._follow()
        return packet

    def _lose(self, packet: Sized, now: int) -> None:
        self._came.pop(id(packet), None)

    def _follow(self) -> None:
        inner = self._inner
        self.nbytes, self.drops, self.marks = inner.nbytes, inner.drops, inner.marks


@dataclass(frozen=True, kw_only=True)
class Bottleneck:
    """The path that all flows share; `queue_options` are those of the queue `queue` (`linklayer/queues/`)."""

    rate_bps: int = 2_000_000
    #: without queues and transmissions
    rtt_ns: int = 50_000_000
    queue: str = "drop-tail"
    queue_options: dict[str, object] = field(default_factory=dict)
    #: loss of data behind the bottleneck
    per: float = 0.0


@dataclass(frozen=True, kw_only=True)
class FlowResult:
    """One flow, from the end of the warm-up on."""

    profile: str
    goodput_bps: float
    #: waits at the bottleneck (ms): median, 99th percentile
    wait_ms: float
    wait_p99_ms: float
    retransmits: int
    timeouts: int
    sender: OwnSender


@dataclass(frozen=True, kw_only=True)
class Result:
    """All flows of a run, from the end of the warm-up on."""

    flows: list[FlowResult]
    #: goodput of all flows over what the bottleneck carries of payload
    utilisation: float
    drops: int
    marks: int


def config_of(profile: str) -> TcpConfig:
    """Return the configuration of a profile for these paths."""
    return USER_PROFILES[profile].config.but(mss=MTU_BYTES - _HEADER_BYTES)


def percentile(values: Sequence[int], share: float) -> float:
    """Return the value below which `share` of the values lie; 0 of none."""
    return sorted(values)[min(int(share * len(values)), len(values) - 1)] if values else 0.0


def run(
    path: Bottleneck,
    profiles: Sequence[str],
    *,
    seed: int,
    duration_s: float = 30,
    warmup_s: float = 5,
    stagger_s: float = 0.1,
    at: Sequence[tuple[float, Callable[[list[OwnSender]], None]]] = (),
) -> Result:
    """Run a flow without end for each profile, one started after the other. `at`: calls at times (s) of the run."""
    clock = VirtualClock()
    plugin = QUEUES[path.queue]
    packet_ns = 8 * MTU_BYTES * SECOND // path.rate_bps
    context = QueueContext(rng=make_rng(seed, "queue"), packet_time_ns=packet_ns, mtu_bytes=MTU_BYTES)
    queue = TimedQueue(plugin.make(plugin.options(**path.queue_options), context))
    dumbbell = Dumbbell(
        clock,
        DumbbellConfig(
            pairs=len(profiles),
            bottleneck_bps=path.rate_bps,
            bottleneck_delay_ns=path.rtt_ns // 2,
            access_bps=50 * path.rate_bps,
        ),
        seed=seed,
        queue=queue,
        last_hop=(lambda i: Bernoulli(path.per, make_rng(seed, "last hop", str(i)))) if path.per else None,
    )
    configs = [config_of(profile) for profile in profiles]
    counters = [receive(sink, PORT, config) for sink, config in zip(dumbbell.sinks, configs, strict=True)]
    senders: list[OwnSender] = []

    def start(i: int) -> None:
        senders.append(send(dumbbell.sources[i], dumbbell.sinks[i].address, PORT, configs[i]))

    for i in range(len(profiles)):
        clock.at(round(i * stagger_s * SECOND), start, i)
    for time_s, call in at:
        clock.at(round(time_s * SECOND), call, senders)
    begin, end = round(warmup_s * SECOND), round(duration_s * SECOND)
    clock.run(begin)
    before = [counter.nbytes for counter in counters]
    # a flow may begin later
    repaired = [(sender.connection.counters.retransmits, sender.connection.counters.timeouts) for sender in senders]
    repaired += [(0, 0)] * (len(profiles) - len(senders))
    drops, marks = queue.drops, queue.marks
    clock.run(end)
    received = [counter.nbytes - earlier for counter, earlier in zip(counters, before, strict=True)]
    flows = []
    for profile, source, sender, nbytes, (retransmits, timeouts) in zip(
        profiles, dumbbell.sources, senders, received, repaired, strict=True
    ):
        waits = [wait for left_at, wait in queue.waits.get(source.address, ()) if left_at >= begin]
        flows.append(
            FlowResult(
                profile=profile,
                goodput_bps=8 * nbytes / (duration_s - warmup_s),
                wait_ms=percentile(waits, 0.5) / 1e6,
                wait_p99_ms=percentile(waits, 0.99) / 1e6,
                retransmits=sender.connection.counters.retransmits - retransmits,
                timeouts=sender.connection.counters.timeouts - timeouts,
                sender=sender,
            )
        )
    smss = senders[0].connection.smss
    carried = path.rate_bps * smss / MTU_BYTES
    total = sum(flow.goodput_bps for flow in flows)
    return Result(flows=flows, utilisation=total / carried, drops=queue.drops - drops, marks=queue.marks - marks)
