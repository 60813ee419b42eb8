"""The kernel's MPTCP in agents."""

from dataclasses import replace

import pytest

from hosts.engine.results import EndReport, TcpReceived, TcpSent
from hosts.kernel.mptcp import FALLBACK
from hosts.kernel.network import Network
from hosts.messages import Done
from hosts.workloads.bulk import Bulk
from hosts.workloads.mptcp import Mptcp
from tests.hosts.harness import Bridge, agents, configs, go, needs_mptcp, needs_network

pytestmark = [*needs_network, pytest.mark.slow, needs_mptcp]


def test_a_connection_that_falls_back_says_so(net: Network) -> None:
    sending, receiving = configs(net, ("cubic", "cubic"), [Mptcp(bytes=20_000)])
    # the receiver's socket is one of plain TCP
    plain = replace(receiving, workloads=(Bulk(flow="mptcp", bytes=20_000, port=5801),))
    with Bridge(net), agents(sending, plain) as started:
        go(started)
        for agent in started:
            agent.wait_for(Done)
        [sent], [received] = (agent.all(EndReport) for agent in started)
    assert isinstance(sent.result, TcpSent)
    assert isinstance(received.result, TcpReceived)
    assert (sent.result.error, sent.result.fallback) == (None, FALLBACK)
    assert (received.result.bytes, received.result.intact) == (20_000, True)
