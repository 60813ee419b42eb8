"""When packets arrive at the end of a wire, and which do not."""

from random import Random
from typing import Any

import pytest

from channel.errors import ERASED, INTACT, Fate, Verdict
from hosts.engine.packets import Datagram, taker
from linklayer.queues import QueueContext
from linklayer.queues.codel import CoDel, CoDelOptions
from linklayer.queues.drop_tail import DropTail
from tcpip.segment import Flow
from testbed.model.virtual_clock import VirtualClock
from testbed.model.wired_link import Router, Wire
from tests.harness.scripted_hop import Script

FLOW = Flow(1, 10, 2, 20)
MS = 1_000_000


def packet(nbytes: int, sequence: int = 0, flow: Flow = FLOW) -> Datagram:
    return Datagram(flow, nbytes, sequence, 0)


class End:
    """The end of a wire."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.arrived: list[tuple[int, int]] = []

    def deliver(self, packet: Datagram) -> None:
        self.arrived.append((self.clock.now, packet.sequence))


#: an octet a ns
FAST_BPS = 8_000_000_000
#: 7 octets take 18.666... ns at 3 Gbit/s: packets back to back are rounded up once
THIRDS = [(19, 0), (38, 1), (56, 2), (75, 3), (94, 4), (112, 5)]


@pytest.mark.parametrize(
    ("options", "limit", "nbytes", "sent_at", "arrived"),
    [
        pytest.param(
            {"rate_bps": 8_000_000, "delay_ns": 5 * MS}, None, 1000, [100], [(100 + 6 * MS, 0)], id="time and delay"
        ),
        pytest.param({"delay_ns": 3}, 1, 1500, [0, 0, 0], [(3, 0), (3, 1), (3, 2)], id="infinitely fast"),
        pytest.param({"rate_bps": 3_000_000_000}, None, 7, [0] * 6, THIRDS, id="exact without a queue"),
        pytest.param({"rate_bps": 3_000_000_000}, 100, 7, [0] * 6, THIRDS, id="exact behind a queue"),
        pytest.param({"rate_bps": FAST_BPS}, 1, 10, [0, 10, 25], [(10, 0), (20, 1), (35, 2)], id="a free wire"),
        # one on the wire and two in the queue
        pytest.param({"rate_bps": FAST_BPS}, 2, 10, [0] * 5, [(10, 0), (20, 1), (30, 2)], id="a full queue"),
        # at 10 the arrival was there before the queue moved on: (time, priority, insertion)
        pytest.param({"rate_bps": FAST_BPS}, 1, 10, [0, 0, 5, 10, 11], [(10, 0), (20, 1), (30, 4)], id="at its limit"),
    ],
)
def test_packets_arrive_at_their_exact_times_or_are_congestion_drops(
    options: dict[str, Any], limit: int | None, nbytes: int, sent_at: list[int], arrived: list[tuple[int, int]]
) -> None:
    end = End()
    queue = None if limit is None else DropTail(limit_packets=limit)
    wire = Wire(end.clock, end.deliver, queue=queue, **options)
    for sequence, at in enumerate(sent_at):
        end.clock.at(at, wire.take, packet(nbytes, sequence))
    end.clock.run()
    assert end.arrived == arrived
    assert (wire.packets, wire.nbytes) == (len(arrived), nbytes * len(arrived))
    assert (wire.congestion_drops, wire.corrupted) == (len(sent_at) - len(arrived), 0)


def test_errors_take_packets_and_are_not_congestion() -> None:
    end = End()
    errors = Script([INTACT, ERASED, Verdict(Fate.DAMAGED, (3,)), INTACT])
    wire = Wire(end.clock, end.deliver, rate_bps=8_000_000_000, queue=DropTail(limit_packets=9), errors=errors)
    for sequence in range(4):
        wire.take(packet(10, sequence))
    end.clock.run()
    assert [sequence for _, sequence in end.arrived] == [0, 3]
    assert (wire.corrupted, wire.congestion_drops, wire.packets) == (2, 0, 4)
    assert errors.asked == [(0, 10, 10), (10, 20, 10), (20, 30, 10), (30, 40, 10)]


def test_wire_survives_a_queue_that_drops_on_pop() -> None:
    end = End()
    queue = CoDel(
        CoDelOptions(limit_packets=1000, target_ms=1e-6, interval_ms=1e-5),
        QueueContext(rng=Random(1), packet_time_ns=1, mtu_bytes=1),
    )
    wire = Wire(end.clock, end.deliver, rate_bps=8_000_000, queue=queue)
    for sequence in range(50):
        wire.take(packet(1000, sequence))
    end.clock.run()
    assert 0 < wire.congestion_drops < 50
    assert len(end.arrived) + wire.congestion_drops == 50
    before = len(end.arrived)
    wire.take(packet(1000, 99))
    end.clock.run()
    assert len(end.arrived) == before + 1


@pytest.mark.parametrize(
    ("options", "message"),
    [({"rate_bps": 0}, "rate_bps is 0: must be more than 0"), ({"delay_ns": -1}, "delay_ns is -1: must not be")],
)
def test_a_wire_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Wire(VirtualClock(), lambda packet: None, **options)


def test_a_router_goes_by_destination() -> None:
    seen: list[tuple[str, int]] = []
    router = Router({2: lambda packet: seen.append(("two", packet.sequence))})
    router.routes[3] = taker(lambda packet: seen.append(("three", packet.sequence)))
    router.take(packet(100, 1, Flow(1, 1, 3, 1)))
    router.take(packet(100, 2, Flow(1, 1, 2, 1)))
    assert seen == [("three", 1), ("two", 2)]
