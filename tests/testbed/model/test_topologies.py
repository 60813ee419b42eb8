"""The dumbbell of virtual time."""

import gc
import sys
from dataclasses import dataclass

import pytest

from channel.errors.bernoulli import Bernoulli
from common.units import MS, SECOND
from hosts.engine.own_tcp import OwnSender
from hosts.engine.probe import FlowCounter
from hosts.tcp.config import TcpConfig
from linklayer.queues import Queue, QueueContext
from linklayer.queues.drop_tail import DropTail
from linklayer.queues.red import Red, RedOptions
from linklayer.schemes.arq import FecOptions, HybridOptions
from testbed.model.radio_link import RadioLinkConfig
from testbed.model.topologies import Dumbbell, DumbbellConfig
from testbed.model.virtual_clock import VirtualClock
from testbed.scenario.run_plan import make_rng

SEGMENT_BYTES = 500
#: with its headers, on the bottleneck
PACKET_NS = 8 * (SEGMENT_BYTES + 40) * 100
TCP = TcpConfig().but(mss=SEGMENT_BYTES, timestamps=False, receive_buffer=1 << 20)


@dataclass
class Bench:
    """A dumbbell with its traffic."""

    network: Dumbbell
    senders: list[OwnSender]
    counters: list[FlowCounter]

    @property
    def received(self) -> list[int]:
        return [counter.nbytes for counter in self.counters]

    def run(self, until: int) -> int:
        """Run, and return the octets received since the last time."""
        before = sum(self.received)
        self.network.clock.run(until)
        return sum(self.received) - before


def bench(
    pairs: int,
    queue: Queue,
    tcp: TcpConfig = TCP,
    per: float = 0,
    seed: int = 1,
    rate_bps: int = 10_000_000,
    link: RadioLinkConfig | None = None,
) -> Bench:
    last_hop = (lambda i: Bernoulli(per, make_rng(seed, "last hop", str(i)))) if per else None
    config = DumbbellConfig(pairs=pairs, bottleneck_bps=rate_bps)
    network = Dumbbell(VirtualClock(), config, seed=seed, queue=queue, last_hop=last_hop, link=link)
    return Bench(network, *network.send_bulk(tcp, [i * 10 * MS for i in range(pairs)]))


def test_the_first_segment_takes_the_time_of_its_way() -> None:
    one = bench(1, DropTail(limit_packets=500))
    # Each way: 40 octets twice at 100 Mbit/s and once at 10 Mbit/s, and 20 ms; SYN and SYN-ACK carry 12 more (MSS,
    # SACK, window scale, padded). The application writes as soon as it is connected, so data is the first ACK.
    octets_ns = 80 + 800 + 80
    handshake = 2 * (20 * MS + 52 * octets_ns)
    arrival = handshake + 20 * MS + 540 * octets_ns
    one.network.clock.run(arrival - 1)
    assert one.received == [0]
    one.network.clock.run(arrival)
    assert one.received == [SEGMENT_BYTES]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["drop-tail", "RED"])
def test_flows_share_the_bottleneck_and_fill_it(kind: str) -> None:
    queue: Queue = DropTail(limit_packets=500)
    if kind == "RED":
        # the LT-TCP paper's
        options = RedOptions(min_packets=75, max_packets=225, limit_packets=500, weight=1)
        queue = Red(options, QueueContext(rng=make_rng(1), packet_time_ns=PACKET_NS))
    ten = bench(10, queue)
    ten.run(10 * SECOND)
    # at most what the wire carries in the time: 500 of each 540 octets
    carried = 20 * SECOND // PACKET_NS * SEGMENT_BYTES
    assert 0.98 * carried < ten.run(30 * SECOND) <= carried + SEGMENT_BYTES
    assert queue.drops > 0
    assert min(ten.received) > 0.3 * sum(ten.received) / 10


@pytest.mark.slow
def test_the_last_hop_loses_data_and_no_acknowledgements() -> None:
    four = bench(4, DropTail(limit_packets=500), per=0.1)
    four.run(60 * SECOND)
    network, counters = four.network, [sender.connection.counters for sender in four.senders]
    sent = network.bottleneck.packets
    # SYN and FIN aside all that is lost was data; every ACK that was sent has come back or is under way
    assert sum(each.retransmits for each in counters) > 0.05 * sent
    assert sum(each.timeouts for each in counters) > 10
    answered = sum(each.segments_received for each in counters)
    assert network.bottleneck_back.packets - answered in range(4)
    assert network.bottleneck.congestion_drops == 0


@pytest.mark.slow
def test_a_link_without_errors_is_as_good_as_a_wire() -> None:
    received = []
    for link in (None, RadioLinkConfig(scheme="fec", mtu_bytes=540)):
        two = bench(2, DropTail(limit_packets=500), link=link)
        received.append(two.run(5 * SECOND))
    assert received[1] == pytest.approx(received[0], rel=0.01)


@pytest.mark.slow
def test_fec_that_matches_the_loss_is_worse_than_none_and_arq_is_better() -> None:
    # the LT-TCP paper's order at 10 %: hybrid 6.16, none 1.10, FEC 0.09 Mbit/s of ten flows
    goodput = []
    for link in (
        RadioLinkConfig(scheme="hybrid", options=HybridOptions(resend_after_ms=20, combine=False), mtu_bytes=540),
        None,
        RadioLinkConfig(scheme="fec", options=FecOptions(fragments=10, data_fragments=9), mtu_bytes=540),
    ):
        four = bench(4, DropTail(limit_packets=500), per=0.1, link=link)
        goodput.append(four.run(10 * SECOND))
    assert goodput[0] > 3 * goodput[1] > 9 * goodput[2]


@pytest.mark.slow
def test_memory_is_flat_over_three_hours() -> None:
    hour = 3600 * SECOND
    tcp = TcpConfig().but(mss=SEGMENT_BYTES, receive_buffer=1 << 20, send_buffer=1 << 16)
    ten = bench(10, DropTail(limit_packets=50), tcp, per=0.01, rate_bps=25_000)
    blocks = []
    for number in range(1, 4):
        received = ten.run(number * hour)
        gc.collect()
        blocks.append(sys.getallocatedblocks())
    # Anything kept per packet, were it a number, would be a block.
    packets = received // SEGMENT_BYTES
    assert packets > 15_000
    assert blocks[2] - blocks[0] < packets / 10
