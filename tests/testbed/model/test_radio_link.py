"""A radio link without a scenario: what its parts do is tested beside them, here that they are joined rightly."""

from collections.abc import Mapping
from typing import Any

import pytest

from channel.errors import ERASED, INTACT, ErrorModel, Verdict
from common.sides import SIDES, Side
from hosts.engine.packets import Datagram
from linklayer.filters.filter import Loss
from linklayer.filters.filtered import Filtered
from linklayer.filters.snoop_cache import SnoopOptions
from linklayer.queues import Queue
from linklayer.queues.drop_tail import DropTail
from tcpip.segment import ACK, Flow, Segment
from testbed.model.radio_link import RadioLink, RadioLinkConfig, make_radio_link
from testbed.model.virtual_clock import VirtualClock
from testbed.results.ground_truth import GuessScore

FLOW = Flow(1, 1, 2, 2)


class LoseFirst(ErrorModel):
    """Erases the first frame."""

    def __init__(self) -> None:
        self.frames = 0

    def judge(self, start: int, end: int, nbytes: int) -> Verdict:
        self.frames += 1
        return ERASED if self.frames == 1 else INTACT


class Score(GuessScore):
    """Keeps the losses it is told of."""

    def __init__(self) -> None:
        super().__init__()
        self.losses: list[Loss] = []

    def handle_loss(self, loss: Loss) -> None:
        self.losses.append(loss)


class Bench:
    """A link whose deliveries are listed with their times."""

    def __init__(
        self,
        errors: Mapping[Side, ErrorModel] | None = None,
        queues: Mapping[Side, Queue] | None = None,
        **config: Any,
    ) -> None:
        self.clock = VirtualClock()
        self.score = Score()
        self.delivered: dict[Side, list[tuple[int, Any]]] = {side: [] for side in SIDES}

        def note(side: Side, packet: Any) -> None:
            self.delivered[side].append((self.clock.now, packet))

        self.link: RadioLink = make_radio_link(
            self.clock,
            RadioLinkConfig(**config),
            seed=1,
            deliver={"up": lambda packet: note("up", packet), "down": lambda packet: note("down", packet)},
            errors=errors,
            queues=queues,
            guess_score=self.score,
        )


@pytest.mark.parametrize("side", SIDES)
def test_packets_cross_in_their_direction_in_the_time_of_rate_and_propagation(side: Side) -> None:
    bench = Bench(rate_bps=1_500_000, propagation_ns=1_000_000)
    packet = Datagram(FLOW, 996, 0, 0)
    bench.link.stations[side].take(packet)
    bench.clock.run()
    # 1000 octets with the CRC
    assert bench.delivered == {**{each: [] for each in SIDES}, side: [(5_333_334 + 1_000_000, packet)]}


@pytest.mark.parametrize("side", SIDES)
def test_errors_hit_their_direction_alone_and_are_true_losses(side: Side) -> None:
    bench = Bench(errors={side: LoseFirst()})
    segments = [Segment(FLOW, seq, 0, ACK, 100, 100) for seq in (1000, 1100)]
    for each in SIDES:
        for segment in segments:
            bench.link.stations[each].take(segment)
    bench.clock.run()
    assert {each: len(bench.delivered[each]) for each in SIDES} == {**dict.fromkeys(SIDES, 2), side: 1}
    assert [(loss.seq, loss.end, loss.cause) for loss in bench.score.losses] == [(1000, 1100, "corruption")]
    assert bench.link.counts(side).corruption_losses == bench.link.counts(side).unrepaired_taken == 1


def test_filters_stand_at_the_ends_of_their_declaration_with_their_options() -> None:
    bench = Bench(filters=("snoop-smart", "eln-base"), filter_options={"snoop-smart": SnoopOptions(cache_bytes=1)})
    up, down = (bench.link.stations[side].link for side in SIDES)
    assert not isinstance(up, Filtered)
    assert isinstance(down, Filtered)
    assert [each.name for each in down.filters] == ["snoop-smart", "eln-base"]
    assert bench.link.stations["down"].fates.repeats


@pytest.mark.parametrize("filters", [("eln-ends",), ()], ids=["with a filter", "without"])
def test_queue_drops_are_counted_and_told_as_congestion(filters: tuple[str, ...]) -> None:
    bench = Bench(filters=filters, queues={"up": DropTail(limit_packets=2)})
    for number in range(10):
        bench.link.stations["up"].take(Segment(FLOW, 1460 * number, 0, ACK, 100, 1460))
    bench.clock.run()
    lost = bench.link.counts("up").congestion_losses
    assert lost == 10 - len(bench.delivered["up"]) > 0
    assert [loss.cause for loss in bench.score.losses] == ["congestion"] * lost
