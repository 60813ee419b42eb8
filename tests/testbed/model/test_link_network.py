"""The network of a scenario: plans that virtual time refuses, a station that dies, and the delays of TCP data."""

from typing import Any

import pytest

from common.sides import Side
from common.units import MS, SECOND
from testbed.errors import FadelabError
from testbed.model.link_network import LinkNetwork
from testbed.model.model_run import Simulation
from testbed.model.traffic import Traffic
from testbed.model.watch import Watch
from testbed.scenario.resolver import resolve
from testbed.simulation import simulate
from tests.harness.model_runs import model


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"capture": True}, "capture: frames have no octets on tier model: set capture to false, or run --tier"),
        (
            {"workloads": [{"kind": "onoff-udp", "packet_bytes": 1501, "duration_s": 1}]},
            "flow onoff-udp: packet_bytes 1501 is more than the mtu of 1500: tier model has no IP",
        ),
        ({"tier": "emulated", "tcp": "user:sack"}, "tier emulated is not virtual time: set tier to model"),
        ({"channel": {"per": 1}}, "the stations have not found each other in 30 s: no frames get through"),
    ],
)
def test_what_this_tier_cannot_do_is_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(FadelabError, match=message) as caught:
        simulate(model(**changes))
    assert "\n" not in str(caught.value)


def test_a_station_that_dies_takes_its_packets_along_and_tcp_goes_on() -> None:
    waiting: list[int] = []

    def begun(network: LinkNetwork, traffic: Traffic) -> None:
        station = network.stations["up"]

        def restart(_: object) -> None:
            waiting.append(sum(queue.nbytes for queue in station.queues))
            network.restart("up")
            waiting.append(sum(queue.nbytes for queue in station.queues))

        network.clock.at(network.clock.now + 500 * MS, restart)

    work = {"kind": "bulk", "bytes": 200_000}
    scenario = model(link={"scheme": "slacp"}, workloads=[work])
    whole, summary = simulate(scenario), simulate(scenario, begun=begun)
    before, after = waiting
    assert before > 0
    assert after == 0
    assert (summary.finished, summary.intact, summary.flows[0].bytes) == (True, True, 200_000)
    # nobody told TCP, and no link repaired it
    assert whole.retransmissions == 0
    assert summary.retransmissions * 1448 >= before
    assert summary.duration_s > whole.duration_s


class Delays(Watch):
    """Keeps the delays of TCP data by their side, and how many packets have crossed."""

    def __init__(self) -> None:
        self.crossings: dict[Side, list[int]] = {"up": [], "down": []}
        self.packets = 0

    def left(self, side: Side, packet: Any, now: int) -> None:
        self.packets += 1

    def crossed(self, side: Side, delay: int, now: int) -> None:
        self.crossings[side].append(delay)


@pytest.mark.parametrize("timed", [True, False])
def test_a_watch_is_told_the_delays_of_tcp_data_in_timed_runs(timed: bool) -> None:
    delays = Delays()
    run = model(
        link={"scheme": "none"},
        channel={"rate_bps": 1_000_000, "delay_ms": 30},
        workloads=[{"kind": "bulk", "bytes": 20_000}, {"kind": "onoff-udp", "duration_s": 1}],
    )
    summary = Simulation(resolve(run), watch=delays, timed=timed).run()
    assert summary.finished
    assert delays.packets > 40
    # datagrams and ACKs are not counted: 14 segments of 1448 octets at most
    assert len(delays.crossings["up"]) == (14 if timed else 0)
    assert delays.crossings["down"] == []
    # propagation, and 1504 octets at 1 Mbit/s for a segment that finds the link free
    assert all(30 * MS < delay < 30 * MS + SECOND for delay in delays.crossings["up"])
