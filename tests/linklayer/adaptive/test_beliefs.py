"""What an end of slacp-adaptive says of its direction, against what happened; times in ms."""

from typing import Any, cast

import pytest

from common.units import MS
from linklayer.adaptive.frames import Coded, Data
from linklayer.filters.filtered import Filtered
from linklayer.link import Beliefs
from tests.harness.adaptive_pair import AdaptivePair, SizedPacket, bernoulli

#: the longest frame
FRAME_MS = 1533 * 8 / 2000


def saturated(per: float, *, seed: int = 3, until_ms: float = 30_000, **options: Any) -> AdaptivePair:
    """A pair that has sent bulk from end 0 and come to rest; packets do not wait for others to be delivered."""
    pair = AdaptivePair(bernoulli(per, seed), octets=False, **options)
    pair.channel = 1
    count = 0

    def more() -> SizedPacket:
        nonlocal count
        count += 1
        return SizedPacket(count)

    pair.source[0] = more
    pair.run(until_ms)
    pair.source[0] = None
    pair.backlog[0].clear()
    return pair.run(until_ms + 5000)


def beliefs_of(pair: AdaptivePair, end: int = 0) -> Beliefs:
    found = pair.ends[end].beliefs()
    assert found is not None
    return found


def test_an_end_that_has_seen_nothing_doubts_all() -> None:
    found = beliefs_of(AdaptivePair())
    assert found.loss == pytest.approx(0.05)
    assert found.loss_low < 0.01
    assert found.loss_high > 0.3
    assert found.budget_ms is None
    assert (found.packets, found.settled, found.delivered) == (0, 0, 0)


@pytest.mark.parametrize("per", [0.01, 0.1, 0.3, 0.5])
def test_counts_are_those_of_the_frames(per: float) -> None:
    pair = saturated(per)
    found = beliefs_of(pair)
    data = [frame for _, frame in pair.sent[0] if isinstance(frame, Data)]
    coded = sum(isinstance(frame, Coded) for _, frame in pair.sent[0])
    assert found.packets == len({frame.seq for frame in data}) == len(pair.taken[0])
    assert found.rounds == len(data)
    assert found.frames == len(data) + coded
    assert found.settled == found.packets
    assert found.missed == len(pair.given_up[0])
    assert found.delivered == len(pair.taken[0]) - len(pair.given_up[0])


@pytest.mark.parametrize("budget_ms", [120, 180, 360])
@pytest.mark.parametrize("per", [0.0, 0.1, 0.3, 0.5])
def test_share_in_time_is_that_of_the_arrivals(per: float, budget_ms: float) -> None:
    pair = saturated(per, budget_ms=budget_ms)
    found = beliefs_of(pair)
    assert found.budget_ms == budget_ms
    begun: dict[int, int] = {}
    for now, frame in pair.sent[0]:
        if isinstance(frame, Data):
            begun.setdefault(cast(SizedPacket, frame.payload).number, now)
    took = [now - begun[cast(SizedPacket, packet).number] for now, packet in pair.got[1]]
    # the sender knows an arrival to within the time of a frame
    sooner, later = (sum(delay <= (budget_ms + off) * MS for delay in took) for off in (-FRAME_MS, FRAME_MS))
    assert sooner <= found.in_time <= later
    assert later - sooner < 0.12 * len(begun)


def test_the_bounds_hold_the_true_rate() -> None:
    found = beliefs_of(saturated(0.3))
    assert found.loss_low < 0.3 < found.loss_high
    assert found.loss_low < found.loss < found.loss_high
    assert found.loss_high - found.loss_low < 0.12
    assert found.burst_correlation < 0.2
    assert found.rounds_planned == 3


def test_packet_filters_leave_the_beliefs() -> None:
    [end, _] = saturated(0.1, until_ms=2000).ends
    assert Filtered(end, []).beliefs() == end.beliefs()
