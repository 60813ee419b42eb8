"""Packets of one flow stay in order between the namespaces, whichever processors send them."""

from itertools import pairwise

import pytest

from hosts.errors import HostError
from hosts.kernel.namespaces import run_in
from hosts.kernel.network import Network
from hosts.kernel.packet_order import _mask, keep_order
from hosts.messages import Done
from hosts.workloads.bulk import Bulk
from tcpip.access import Octets
from tests.hosts.harness import Bridge, Direction, agents, configs, go, needs_network

pytestmark = [*needs_network, pytest.mark.light]

SEGMENTS = 400
#: without steering 2 of 3 transfers have segments in disorder, on an idle machine of two processors
TRANSFERS = 6


def _in_order(packets: list[tuple[Direction, bytes]], direction: Direction) -> bool:
    """Whether the data that went this way did so in the order of its sequence numbers."""
    access = Octets()
    segments = [access.view(packet) for passed, packet in packets if passed == direction]
    places = [segment.seq for segment in segments if segment is not None and segment.length]
    assert len(places) >= SEGMENTS
    return all((after - before) % 2**32 < 2**31 for before, after in pairwise(places))


@pytest.mark.parametrize("direction", ["up", "down"])
def test_tcps_segments_stay_in_order(net: Network, direction: Direction) -> None:
    workload = Bulk(bytes=SEGMENTS * net.mtu, direction=direction)
    for _ in range(TRANSFERS):
        with Bridge(net) as bridge, agents(*configs(net, ("cubic", "cubic"), [workload])) as started:
            go(started)
            for agent in started:
                agent.wait_for(Done)
        assert _in_order(bridge.passed, direction)


def test_processors_are_given_as_the_kernel_reads_them() -> None:
    assert [_mask({0}), _mask({0, 1}), _mask({33}), _mask({0, 64})] == [
        "00000001",
        "00000003",
        "00000002,00000000",
        "00000001,00000000,00000001",
    ]


def test_an_interface_that_is_not_there_is_named(net: Network) -> None:
    with pytest.raises(HostError, match=r"packets of eth7 in order .*: sysfs: No such file or directory$"):
        run_in(net.namespaces["h1"], lambda: keep_order("eth7"))
