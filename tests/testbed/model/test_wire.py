"""When packets arrive at the end of a wire, and which do not."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from channel.errors import ERASED, INTACT, ErrorModel, Fate, Verdict
from hosts.engine.packets import Datagram
from linklayer.queues import QueueContext
from linklayer.queues.codel import CoDel, CoDelOptions
from linklayer.queues.drop_tail import DropTail
from tcpip.segment import Flow
from testbed.model.clock import VirtualClock
from testbed.model.wire import Router, Wire

FLOW = Flow(1, 10, 2, 20)
MS = 1_000_000


def packet(nbytes: int, sequence: int = 0, flow: Flow = FLOW) -> Datagram:
    return Datagram(flow, nbytes, sequence, 0)


class Script(ErrorModel):
    """An error model that says what it is told, and keeps what it was asked."""

    def __init__(self, verdicts: Sequence[Verdict]) -> None:
        self._verdicts = iter(verdicts)
        self.asked: list[tuple[int, int, int]] = []

    def judge(self, start: int, end: int, nbytes: int) -> Verdict:
        self.asked.append((start, end, nbytes))
        return next(self._verdicts, INTACT)


class End:
    """The end of a wire."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.arrived: list[tuple[int, int]] = []

    def deliver(self, packet: Datagram) -> None:
        self.arrived.append((self.clock.now, packet.sequence))


def test_a_packet_takes_its_time_and_the_delay() -> None:
    end = End()
    wire = Wire(end.clock, end.deliver, rate_bps=8_000_000, delay_ns=5 * MS)
    end.clock.at(100, wire.send, packet(1000))
    end.clock.run()
    assert end.arrived == [(100 + 1_000_000 + 5 * MS, 0)]
    assert (wire.packets, wire.nbytes) == (1, 1000)


@pytest.mark.parametrize("queue", [None, DropTail(limit_packets=100)], ids=["unbounded", "queue"])
def test_packets_back_to_back_are_rounded_up_once(queue: DropTail | None) -> None:
    end = End()
    # 7 octets take 18.666... ns
    wire = Wire(end.clock, end.deliver, rate_bps=3_000_000_000, queue=queue)
    for sequence in range(6):
        wire.send(packet(7, sequence))
    end.clock.run()
    assert [at for at, _ in end.arrived] == [19, 38, 56, 75, 94, 112]
    assert [sequence for _, sequence in end.arrived] == list(range(6))


def test_packet_starts_at_once_on_a_free_wire() -> None:
    end = End()
    wire = Wire(end.clock, end.deliver, rate_bps=8_000_000_000, queue=DropTail(limit_packets=1))
    for at in (0, 10, 25):
        end.clock.at(at, wire.send, packet(10, at))
    end.clock.run()
    assert end.arrived == [(10, 0), (20, 10), (35, 25)]
    assert wire.congestion_drops == 0


def test_packets_beyond_the_queue_limit_are_congestion_drops() -> None:
    end = End()
    wire = Wire(end.clock, end.deliver, rate_bps=8_000_000_000, queue=DropTail(limit_packets=2))
    for sequence in range(5):
        wire.send(packet(10, sequence))
    end.clock.run()
    # one on the wire and two in the queue
    assert end.arrived == [(10, 0), (20, 1), (30, 2)]
    assert (wire.congestion_drops, wire.corrupted) == (2, 0)


def test_the_queue_drains_before_it_takes_more() -> None:
    end = End()
    wire = Wire(end.clock, end.deliver, rate_bps=8_000_000_000, queue=DropTail(limit_packets=1))
    for at, sequence in ((0, 0), (0, 1), (5, 2), (10, 3), (11, 4)):
        end.clock.at(at, wire.send, packet(10, sequence))
    end.clock.run()
    # at 10 the arrival was there before the queue moved on: (time, priority, insertion)
    assert end.arrived == [(10, 0), (20, 1), (30, 4)]
    assert wire.congestion_drops == 2


def test_errors_take_packets_and_are_not_congestion() -> None:
    end = End()
    errors = Script([INTACT, ERASED, Verdict(Fate.DAMAGED, (3,)), INTACT])
    wire = Wire(end.clock, end.deliver, rate_bps=8_000_000_000, queue=DropTail(limit_packets=9), errors=errors)
    for sequence in range(4):
        wire.send(packet(10, sequence))
    end.clock.run()
    assert [sequence for _, sequence in end.arrived] == [0, 3]
    assert (wire.corrupted, wire.congestion_drops, wire.packets) == (2, 0, 4)
    assert errors.asked == [(0, 10, 10), (10, 20, 10), (20, 30, 10), (30, 40, 10)]


def test_an_infinitely_fast_wire_only_delays() -> None:
    end = End()
    wire = Wire(end.clock, end.deliver, delay_ns=3, queue=DropTail(limit_packets=1))
    for sequence in range(3):
        wire.send(packet(1500, sequence))
    end.clock.run()
    assert end.arrived == [(3, 0), (3, 1), (3, 2)]


def test_wire_survives_a_queue_that_drops_on_pop() -> None:
    end = End()
    queue = CoDel(
        CoDelOptions(limit_packets=1000, target_ms=1e-6, interval_ms=1e-5),
        QueueContext(rng=Random(1), packet_time_ns=1, mtu_bytes=1),
    )
    wire = Wire(end.clock, end.deliver, rate_bps=8_000_000, queue=queue)
    for sequence in range(50):
        wire.send(packet(1000, sequence))
    end.clock.run()
    assert 0 < wire.congestion_drops < 50
    assert len(end.arrived) + wire.congestion_drops == 50
    before = len(end.arrived)
    wire.send(packet(1000, 99))
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
    router.routes[3] = lambda packet: seen.append(("three", packet.sequence))
    router.deliver(packet(100, 1, Flow(1, 1, 3, 1)))
    router.deliver(packet(100, 2, Flow(1, 1, 2, 1)))
    assert seen == [("three", 1), ("two", 2)]
