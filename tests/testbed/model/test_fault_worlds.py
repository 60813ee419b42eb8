"""Worlds with faults: drawn ones keep the rules, and a part that breaks a rule is found out."""

from collections.abc import Callable, Sized
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from typing_extensions import override

from linklayer.queues import QUEUES
from linklayer.queues.drop_tail import DropTail
from tcpip.segment import Flow, Segment
from tests.harness.checked import RuleBrokenError
from tests.harness.fault_worlds import Fault, World, live_through, worlds
from tests.harness.scenarios import raw_scenario

#: `benchmarks.faults` takes others, and as many as one likes
SEEDS = (35_001, 35_002, 35_003, 35_004)


@pytest.mark.slow
@pytest.mark.parametrize("number", SEEDS)
def test_worlds_with_faults_keep_the_rules(number: int) -> None:
    @seed(number)
    @settings(
        max_examples=120, deadline=None, database=None, suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )  # fmt: skip
    @given(worlds())
    def live(world: World) -> None:
        live_through(world)

    live()


def test_lt_tcp_goes_on_when_its_last_fec_segments_are_lost() -> None:
    """They filled the window for ever: no data was out, so no timer ran, and no ACK could show that they had left."""
    slow = {"rate_bps": 64_000, "errors": {"model": "bernoulli", "per": 0.01}}
    udp = {"rate_bps": 8000, "packet_bytes": 128}
    healed = {"model": "bernoulli", "per": 0.02}
    world = World(
        {
            "name": "found",
            "tier": "model",
            "seed": 1,
            "trace": False,
            "mtu": 296,
            "tcp": "lt-tcp",
            "link": {"scheme": "arq", "ip_queue_bytes": 6000, "queue": {"kind": "codel"}},
            "channel": {
                "rate_bps": 64_000,
                "delay_ms": 0,
                "up": {**slow, "delay_ms": 250, "assignment": {"kind": "rbdc"}},
                "down": {**slow, "delay_ms": 0, "assignment": {"kind": "vbdc"}},
            },
            "workloads": [
                {
                    "flow": "f0",
                    "port": 5001,
                    "direction": "up",
                    "start_s": 2,
                    "kind": "bulk",
                    "bytes": 1600,
                    "flows": 3,
                },
                {"flow": "f1", "port": 5021, "direction": "down", "kind": "bulk", "bytes": 159, "flows": 3},
                dict(kind="onoff-udp", flow="f2", port=5041, direction="down", start_s=0.3, duration_s=2, **udp),
            ],
            "changes": [
                {"at_s": 0, "set": {"link.scheme": "queued"}},
                {"at_s": 0.1, "set": {"channel.up.errors": healed, "channel.down.errors": healed}},
            ],
            "limit_s": 900,
        },
        (),
        heals_at_s=0.1,
    )
    assert live_through(world).slow == 0


def test_a_connection_that_fails_makes_the_next_ones_no_corrupt_ones() -> None:
    """The receiver, which numbers connections as it accepts them, took the second for the first."""
    dead, alive = ({"channel.up.errors": {"model": "bernoulli", "per": per}} for per in (1, 0))
    changes = [{"at_s": 0, "set": dead}, {"at_s": 100, "set": alive}]
    short = {"kind": "short", "bytes": 1000, "count": 2}
    life = live_through(hand_made(workloads=[short], changes=changes, limit_s=300))
    assert life.slow == 1


def hand_made(*faults: Fault, **changes: Any) -> World:
    link = {"scheme": "queued", "ip_queue_bytes": 20_000, "queue": {"kind": "drop-tail"}, **changes.pop("link", {})}
    raw = {**raw_scenario(), "tier": "model", "tcp": "sack", "trace": False, "link": link, "limit_s": 4000, **changes}
    return World(raw, faults, heals_at_s=6.0)


class Twice(DropTail):
    """Gives the twentieth packet twice."""

    def __init__(self, limit_bytes: int | None, limit_packets: int | None) -> None:
        super().__init__(limit_bytes, limit_packets)
        self.given = 0
        self.again: Sized | None = None

    @override
    def pop(self, now: int) -> Sized | None:
        if self.again is not None:
            again, self.again = self.again, None
            self.nbytes -= len(again)
            return again
        packet = super().pop(now)
        self.given += packet is not None
        if packet is not None and self.given == 20:
            self.again = packet
            self.nbytes += len(packet)
        return packet


class Endless(DropTail):
    """Knows no limit."""

    def __init__(self, limit_bytes: int | None, limit_packets: int | None) -> None:
        super().__init__(1 << 40, limit_packets)


class Stuck(DropTail):
    """Gives nothing any more after the twentieth packet."""

    def __init__(self, limit_bytes: int | None, limit_packets: int | None) -> None:
        super().__init__(limit_bytes, limit_packets)
        self.given = 0

    @override
    def pop(self, now: int) -> Sized | None:
        self.given += 1
        return super().pop(now) if self.given <= 20 else None


class Hole(DropTail):
    """Drops the octets of the twentieth packet, however often they come."""

    def __init__(self, limit_bytes: int | None, limit_packets: int | None) -> None:
        super().__init__(limit_bytes, limit_packets)
        self.given = 0
        self.hole: tuple[Flow, int] | None = None

    @override
    def push(self, packet: Sized, now: int) -> bool:
        self.given += 1
        if isinstance(packet, Segment) and packet.length:
            if self.given == 20:
                self.hole = packet.flow, packet.seq
            if (packet.flow, packet.seq) == self.hole:
                return False
        return super().push(packet, now)


@pytest.mark.parametrize(
    ("queue", "words"),
    [
        (Hole, "no transfer has got anything across"),
        (Twice, "has delivered .* twice"),
        (Endless, "octets in its queue"),
        (Stuck, "no transfer has got anything across"),
    ],
)
def test_a_queue_that_breaks_a_rule_is_found_out(
    queue: Callable[[int | None, int | None], DropTail], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = hand_made(channel={"rate_bps": 500_000, "delay_ms": 25})
    live_through(world)
    plugin = replace(QUEUES["drop-tail"], make=lambda options, context: queue(context.limit_bytes, None))
    monkeypatch.setitem(QUEUES._plugins(), "drop-tail", plugin)
    with pytest.raises(RuleBrokenError, match=words):
        live_through(world)


def test_a_repair_may_wait_behind_minutes_of_other_packets() -> None:
    """They crossed for nine minutes behind the lost one: the rule on silence took it for one."""
    healed, channel = {"model": "bernoulli", "per": 0.02}, {"rate_bps": 500_000, "delay_ms": 0}
    assigned = {"up": {**channel, "assignment": {"kind": "rbdc"}}, "down": {**channel, "assignment": {"kind": "cra"}}}
    world = hand_made(
        seed=0,
        mtu=296,
        tcp="sack-cubic",
        link={"scheme": "slacp", "ip_queue_bytes": 500_000},
        channel={**channel, **assigned},
        workloads=[{"kind": "bulk", "bytes": 1_413_479}],
        changes=[{"at_s": 0.1, "set": {"channel.up.errors": healed, "channel.down.errors": healed}}],
        limit_s=11_907.932,
    )
    life = live_through(replace(world, heals_at_s=0.1))
    assert life.slow == 0


def test_an_outage_that_does_not_end_is_a_silence() -> None:
    dead = {"model": "bernoulli", "per": 1}
    changes = [{"at_s": 0.2, "set": {"channel.up.errors": dead, "channel.down.errors": dead}}]
    with pytest.raises(RuleBrokenError, match="no transfer has got anything across"):
        live_through(hand_made(changes=changes))


@pytest.mark.parametrize("scheme", ["none", "arq", "slacp", "slacp-adaptive", "snoop"])
@pytest.mark.parametrize("side", ["up", "down"])
def test_a_transfer_outlives_a_station_that_dies(scheme: str, side: Any) -> None:
    life = live_through(
        hand_made(
            *(Fault(at_s, "restart", side) for at_s in (0.1, 0.3)),
            Fault(0.2, "stall", side, 0.2),
            link={"scheme": scheme},
        )
    )
    assert (life.faults, life.slow, life.unborn) == (3, 0, 0)


def test_a_link_that_repairs_stands_behind_a_filter_that_repairs() -> None:
    """It crashed: frames without packets, as a handshake's, were taken for repeated packets."""
    for scheme in ("slacp", "slacp-adaptive", "arq"):
        live_through(hand_made(link={"scheme": scheme, "filters": ["ll"]}))
