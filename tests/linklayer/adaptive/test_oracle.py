"""The airtime of slacp-adaptive against a sender that knows the loss process."""

from itertools import count

import pytest

from linklayer.adaptive.estimator import LossEstimator
from tests.harness.adaptive_pair import AdaptivePair, SizedPacket, bernoulli


def oracle(truth: float) -> LossEstimator:
    """An estimator that knows that losses are independent, and their rate."""

    class Oracle(LossEstimator):
        @property
        def loss(self) -> float:
            return truth

        @property
        def correlation(self) -> float:
            return 0.0

    return Oracle()


def octets_per_packet(per: float, round_trips: float, seed: int, *, knows: bool) -> float:
    """Octets sent for each packet that arrives, on a link that always has more to send; after 5 s, for 40 s."""
    pair = AdaptivePair(bernoulli(per, seed), round_trips=round_trips, octets=False, seed=seed)
    pair.keep_frames = False
    if knows:
        for link in pair.ends:
            link.sender.loss = oracle(per)
    numbers = count()
    pair.source[0] = lambda: SizedPacket(next(numbers))
    pair.run(5_000)
    sent, got = pair.sent_bytes[0], len(pair.got[1])
    pair.run(45_000)
    return (pair.sent_bytes[0] - sent) / (len(pair.got[1]) - got)


@pytest.mark.slow
@pytest.mark.interpreted
@pytest.mark.parametrize("round_trips", [3, 6])
@pytest.mark.parametrize("per", [0.1, 0.3, 0.5])
def test_airtime_is_within_5_percent_of_an_oracles(per: float, round_trips: float) -> None:
    seeds = (21, 22)
    ours, theirs = (
        sum(octets_per_packet(per, round_trips, seed, knows=knows) for seed in seeds) for knows in (False, True)
    )
    assert ours <= 1.05 * theirs
