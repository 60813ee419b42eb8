"""What chance can do to a count of lost frames, so that a test can say how probable it is to fail by chance."""

import numpy as np

#: that chance exceeds one of these bounds
ERROR_PROBABILITY = 1e-7
#: SLACP's blocks have up to so many packets (linklayer/slacp/config.py)
_BLOCK_PACKETS = 8


def highest_per(lost: int, sent: int) -> float:
    """Return the highest PER at which so few of `sent` frames are lost, but for ERROR_PROBABILITY (Clopper-Pearson)."""
    # it takes a second
    from scipy import stats

    return float(stats.beta.isf(ERROR_PROBABILITY, lost + 1, sent - lost))


def most_lost_for_good(retransmissions: int, per: float) -> int:
    """Return how many of SLACP's retransmitted packets are lost at most, but for ERROR_PROBABILITY.

    The rule is docs/slacp.md's, with as many redundancy frames as packets and independent losses: what is lost of a
    block is lost for good when more of its symbols are lost than it has packets. Blocks may have any size.
    """
    return max(_most_lost(size, -(-retransmissions // size), per) for size in range(1, _BLOCK_PACKETS + 1))


def _most_lost(size: int, blocks: int, per: float) -> int:
    from scipy import stats

    lost = stats.binom.pmf(np.arange(size + 1), size, per)
    #: of packets that are lost, and enough redundancy with them
    for_good = np.array([lost[n] * lost[size - n + 1 :].sum() for n in range(size + 1)])
    for_good[0] = 1 - for_good[1:].sum()
    total = np.ones(1)
    for _ in range(blocks):
        total = np.convolve(total, for_good)
    return int(np.argmax(1 - np.cumsum(total) < ERROR_PROBABILITY))
