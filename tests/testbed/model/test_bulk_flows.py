"""Bulk flows over a dumbbell: losses at the last hops, which may change, of data and of ACKs."""

from typing import Any

import pytest

from common.units import SECOND
from linklayer.queues.red import RedOptions
from linklayer.schemes.arq import FecOptions
from testbed.model.bulk_flows import BulkFlows, BulkFlowsConfig
from testbed.model.radio_link import RadioLinkConfig
from testbed.model.topologies import DumbbellConfig
from testbed.model.wired_link import Wire

RED = RedOptions(min_packets=20, max_packets=60, limit_packets=200, weight=1)


def flows(**config: Any) -> BulkFlows:
    dumbbell = DumbbellConfig(pairs=2, bottleneck_bps=1_000_000)
    return BulkFlows(BulkFlowsConfig(profile="newreno", dumbbell=dumbbell, red=RED, **config), seed=1)


def test_losses_begin_and_end_while_the_flows_run() -> None:
    # a window that fits the queue: nothing else is lost
    made = flows(receive_buffer_bytes=4000)
    made.clock.run(5 * SECOND)
    assert (made.per, made.total("retransmits"), made.queue.drops) == (0, 0, 0)
    before = made.bytes_received
    made.per = 0.2
    assert made.per == 0.2
    made.clock.run(10 * SECOND)
    lost = made.total("retransmits")
    assert lost > 10
    # what has been read, of 500 octets each
    assert 0 < made.bytes_received - before < 0.5 * before
    made.per = 0
    # the last timeouts
    made.clock.run(40 * SECOND)
    later = made.total("retransmits")
    made.clock.run(50 * SECOND)
    assert made.total("retransmits") == later
    assert made.bytes_received % 500 == 0


def acks(made: BulkFlows) -> tuple[int, int]:
    """ACKs that were lost at the last hops, and ACKs that were sent."""
    wires = [sink.out for sink in made.network.sinks]
    counts = [(wire.corrupted, wire.packets) for wire in wires if isinstance(wire, Wire)]
    assert len(counts) == 2
    lost, sent = map(sum, zip(*counts, strict=True))
    return lost, sent


@pytest.mark.parametrize("later", [False, True], ids=["from the start", "later"])
@pytest.mark.parametrize("loses_acks", [False, True])
def test_acks_are_lost_where_that_is_asked_for(loses_acks: bool, later: bool) -> None:
    made = flows(per=0 if later else 0.1, loses_acks=loses_acks)
    made.clock.run(SECOND)
    if later:
        assert acks(made)[0] == 0
        made.per = 0.1
    before = acks(made)
    made.clock.run(60 * SECOND)
    lost, sent = (after - first for after, first in zip(acks(made), before, strict=True))
    if not loses_acks:
        assert lost == 0
        return
    # of 400 ACKs or more the share is off by four standard deviations once in 15,000 times
    assert sent > 400
    assert lost / sent == pytest.approx(0.1, abs=0.06)


def test_a_last_hop_may_be_a_radio_link_whose_redundancy_repairs() -> None:
    link = RadioLinkConfig(scheme="fec", options=FecOptions(fragments=4, data_fragments=2))
    bare, repaired = flows(per=0.1), flows(per=0.1, link=link)
    for made in (bare, repaired):
        made.clock.run(10 * SECOND)
    assert len(repaired.network.links) == 2
    assert repaired.bytes_received > 2 * bare.bytes_received
