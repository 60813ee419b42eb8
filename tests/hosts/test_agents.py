"""Two agents across a network: what is sent arrives, and what is reported is true."""

import socket
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hosts.kernel import profiles as kernel_profiles
from hosts.kernel.namespaces import run_in
from hosts.kernel.network import Network
from hosts.kernel.probes import tcp_counters
from hosts.kernel.profiles import PROFILES
from hosts.workloads import Workload, agent_config
from hosts.workloads.bulk import Bulk
from hosts.workloads.onoff_udp import OnOffUdp
from hosts.workloads.short import Short
from tests.hosts.harness import (
    AgentProcess,
    Bridge,
    Direction,
    agents,
    go,
    needs_network,
    of,
    run_agents,
    run_name,
    wait_until,
)

pytestmark = [*needs_network, pytest.mark.patient]


@pytest.fixture(scope="module")
def net() -> Iterator[Network]:
    with Network(run_name(), mtu=1450) as network:
        yield network


def configs(net: Network, work: Sequence[Workload], **more: Any) -> list[dict[str, Any]]:
    """Both hosts' configurations."""
    return [
        agent_config("h1", work, peer=net.address("h2"), namespace=net.namespaces["h1"], **more),
        agent_config("h2", work, peer=net.address("h1"), namespace=net.namespaces["h2"], **more),
    ]


def run(net: Network, work: Sequence[Workload], **more: Any) -> tuple[list[AgentProcess], list[dict[str, Any]]]:
    """Run workloads to their end; the agents (ended) and all results."""
    return run_agents(*configs(net, work, **more))


def use(net: Network, profile: str) -> None:
    for host in ("h1", "h2"):
        kernel_profiles.apply(net.namespaces[host], PROFILES[profile])


def tcp_segment(packet: bytes) -> tuple[int, int, int]:
    """Flags, sequence number and payload length of a TCP segment."""
    at = (packet[0] & 15) * 4
    payload = int.from_bytes(packet[2:4]) - at - (packet[at + 12] >> 4) * 4
    return packet[at + 13], int.from_bytes(packet[at + 4 : at + 8]), payload


def test_all_workloads_arrive_intact(net: Network) -> None:
    use(net, "cubic")
    work: list[Workload] = [
        Bulk(bytes=300_000),
        Bulk(flow="par", bytes=100_000, flows=3, direction="down", port=6000),
        Short(bytes=20_000, count=3, gap_ms=5),
        OnOffUdp(rate_bps=400_000, on_ms=40, off_ms=20, packet_bytes=500, duration_s=0.5, drain_s=1),
    ]
    with Bridge(net) as bridge:
        started, results = run(net, work)
    for flow, connections, size in (
        ("bulk", 1, 300_000),
        ("par-1", 1, 100_000),
        ("par-2", 1, 100_000),
        ("par-3", 1, 100_000),
        ("short", 3, 20_000),
    ):
        sent, received = of(results, "sender", flow), of(results, "receiver", flow)
        assert len(sent) == len(received) == connections
        for index, (a, b) in enumerate(zip(sent, received, strict=True)):
            assert a["index"] == b["index"] == index
            assert a["bytes"] == b["bytes"] == a["bytes_acked"] == size
            assert a["sha256"] == b["sha256"]
            assert a["complete"]
            assert b["complete"]
            assert b["intact"]
            assert 0 <= a["started_ns"] < a["connected_ns"] < b["last_byte_ns"] <= b["finished_ns"] < a["finished_ns"]
    shorts = of(results, "sender", "short")
    assert len({result["sha256"] for result in shorts}) == 3
    for before, after in pairwise(shorts):
        assert after["started_ns"] >= before["finished_ns"] + 5_000_000
    last = {record["flow"]: record["bytes_received"] for agent in started for record in agent.all("flow")}
    assert last["bulk"] == 300_000
    assert last["short"] == 60_000
    # No bundle reached the radio, and no packet exceeded the MTU.
    assert max(len(packet) for _, packet in bridge.passed) == 1450

    (sent_udp,), (received_udp,) = of(results, "sender", "udp"), of(results, "receiver", "udp")
    assert sent_udp["packets"] > 0
    assert received_udp["packets"] == sent_udp["packets"] == received_udp["highest_sequence"] + 1
    assert received_udp["bytes"] == sent_udp["packets"] * (500 - 28)
    assert sum(len(packet) == 500 for _, packet in bridge.passed) == sent_udp["packets"]


def test_the_probe_sees_a_loss_and_the_duration_is_kept(net: Network) -> None:
    use(net, "enhanced")
    lost: list[int] = []

    def lose_one(direction: Direction, packet: bytes) -> bool:
        if direction == "up" and len(packet) == 1450 and len(lost) < 40:
            lost.append(tcp_segment(packet)[1])
            return len(lost) == 40
        return False

    before = tcp_counters(net.namespaces["h1"])["RetransSegs"]
    with Bridge(net, lose_one):
        started, results = run(net, [Bulk(duration_s=0.6)], probe_interval_ms=50)
    records = started[0].all("tcp")
    # Twice the rate asked of the probe, so that a busy machine may miss half of them.
    assert len(records) >= 6
    for earlier, later in pairwise(records):
        assert earlier["time_ns"] < later["time_ns"]
        assert earlier["bytes_acked"] <= later["bytes_acked"]
        assert earlier["retransmits"] <= later["retransmits"]
    assert all(record["cwnd_bytes"] >= 1410 and record["rto_ms"] >= 200 for record in records)
    assert all(record["srtt_ms"] > 0 and record["timeouts"] == 0 for record in records)
    final = records[-1]
    (sent,), (received,) = of(results, "sender", "bulk"), of(results, "receiver", "bulk")
    assert final["ssthresh_bytes"] is not None
    assert 1 <= final["retransmits"] == sent["retransmits"]
    assert tcp_counters(net.namespaces["h1"])["RetransSegs"] - before == sent["retransmits"]
    assert final["bytes_acked"] == sent["bytes"] == received["bytes"]
    assert received["intact"]
    assert 0 < received["bytes_at_duration"] <= received["bytes"]
    assert sent["finished_ns"] >= 600_000_000


@pytest.mark.parametrize(("profile", "segments"), [("reference", 1), ("enhanced", 4), ("cubic", 10)])
def test_the_initial_window_is_the_profiles(net: Network, profile: str, segments: int) -> None:
    """No ACK passes until a segment comes twice: what came once before it is the first flight."""
    use(net, profile)
    flight: list[int] = []
    retransmitted = False

    def hold_acks(direction: Direction, packet: bytes) -> bool:
        nonlocal retransmitted
        flags, sequence, payload = tcp_segment(packet)
        if direction == "down":
            return not retransmitted and not flags & 2  # a SYN+ACK passes
        if payload and not retransmitted:
            retransmitted = sequence in flight
            if not retransmitted:
                flight.append(sequence)
        return False

    # Tail loss probes would send new data while no ACK comes.
    run_in(net.namespaces["h1"], lambda: Path("/proc/sys/net/ipv4/tcp_early_retrans").write_text("0"))
    with Bridge(net, hold_acks):
        _, results = run(net, [Bulk(bytes=40_000)], delayed_ack=PROFILES[profile].delayed_ack)
    assert len(flight) == segments
    assert of(results, "sender", "bulk")[0]["complete"]
    assert of(results, "receiver", "bulk")[0]["intact"]


def test_a_dead_link_ends_in_bounded_time(net: Network) -> None:
    use(net, "reno")
    carried = 0

    def die(direction: Direction, packet: bytes) -> bool:
        nonlocal carried
        carried += 1
        return carried > 100

    with Bridge(net, die), agents(*configs(net, [Bulk(duration_s=0.2, drain_s=0.1)])) as started:
        go(started)
        sent = started[0].wait_for("result")["result"]
        started[1].send({"stop": True})
        received = started[1].wait_for("result")["result"]
    assert (sent["complete"], sent["error"]) == (False, "not drained in time")
    assert (received["complete"], received["error"]) == (False, "stopped")
    assert received["intact"]
    assert 0 < received["bytes"] < sent["bytes"]
    assert received["bytes_at_duration"] <= received["bytes"]


@pytest.mark.parametrize(("survivors", "error"), [(100, "the sender's end was not heard"), (0, "never connected")])
def test_a_receiver_ends_when_the_senders_end_is_lost(net: Network, survivors: int, error: str) -> None:
    use(net, "reno")
    carried = 0

    def die(direction: Direction, packet: bytes) -> bool:
        nonlocal carried
        carried += 1
        return carried > survivors

    with Bridge(net, die):
        _, results = run(net, [Bulk(duration_s=0.2, drain_s=0.1)])
    [received] = of(results, "receiver", "bulk")
    assert (received["complete"], received["error"], received["intact"]) == (False, error, True)
    assert (received["bytes"] > 0) == (survivors > 0)


def test_a_refused_connection_is_a_result(net: Network) -> None:
    config = configs(net, [Short(count=2)])[0]
    with Bridge(net), agents(config) as started:
        go(started)
        started[0].wait_for("done")
        assert [result["error"] for result in started[0].all("result")] == ["Connection refused"] * 2


def test_closing_stdin_ends_an_agent_in_the_middle(net: Network) -> None:
    with Bridge(net), agents(*configs(net, [Bulk(duration_s=100)])) as started:
        go(started)
        started[0].wait_for("tcp")
        assert [agent.close() for agent in started] == [0, 0]
    assert started[0].all("result")[0]["error"] == "stopped"


def test_a_port_in_use_is_one_line(net: Network) -> None:
    with run_in(net.namespaces["h2"], lambda: socket.create_server(("0.0.0.0", 5001))):
        agent = AgentProcess(configs(net, [Bulk(bytes=1)])[1])
        assert agent.wait_for("error") == {"error": "port 5001 is already in use on host h2"}
        assert agent.close() == 2


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"namespace": "fadelab-none-h1"}, "no network namespace fadelab-none-h1: start its run first"),
        ({"send": [{"kind": "bulk"}]}, "a bulk needs bytes or duration_s"),
        ({"peer": None, "probe_interval_ms": 0}, "probe_interval_ms must be above 0"),
    ],
)
def test_a_wrong_configuration_is_one_line(net: Network, change: dict[str, Any], complaint: str) -> None:
    agent = AgentProcess(configs(net, [])[0] | change)
    assert agent.wait_for("error")["error"].startswith(complaint)
    assert agent.close() == 2


def test_paused_senders_send_nothing_new_and_go_on_where_they_stopped(net: Network) -> None:
    use(net, "cubic")
    work: list[Workload] = [
        Bulk(bytes=30_000_000, flow="tcp", port=5101),
        OnOffUdp(rate_bps=800_000, on_ms=1000, off_ms=0, duration_s=60, flow="udp", port=5102),
    ]

    def received(agent: AgentProcess, flow: str) -> list[int]:
        """Bytes at each report so far; a flow that has not begun has 0."""
        return [0, *(row["bytes_received"] for row in agent.all("flow") if row["flow"] == flow)]

    with Bridge(net), agents(*configs(net, work, probe_interval_ms=20)) as [sender, receiver]:
        # a transfer too fast to be caught is paused before its first octet
        sender.send({"pause": True})
        go([sender, receiver])
        wait_until(lambda: len(sender.all("tcp")) > 5)
        assert {*received(receiver, "tcp"), *received(receiver, "udp")} == {0}
        sender.send({"pause": False})
        wait_until(lambda: received(receiver, "udp")[-1] > 10_000)
        result = receiver.wait_for("result")["result"]
        assert (result["flow"], result["bytes"], result["intact"]) == ("tcp", 30_000_000, True)
        sender.send({"pause": True})
        wait_until(lambda: received(receiver, "udp")[-8:].count(received(receiver, "udp")[-1]) == 8)


def test_a_socket_that_is_reset_while_paused_is_a_result(net: Network) -> None:
    work: list[Workload] = [Bulk(duration_s=60, flow="tcp", port=5103)]
    with Bridge(net), agents(*configs(net, work)) as [sender, receiver]:
        go([sender, receiver])
        wait_until(lambda: len(receiver.all("flow")) > 0)
        sender.send({"pause": True})
        receiver.send({"stop": True})
        sender.send({"pause": False})
        assert sender.wait_for("result")["result"]["complete"] is False
