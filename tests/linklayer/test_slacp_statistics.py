"""SLACP's numbers against theory, in virtual time (see docs/slacp.md, "Expected figures")."""

from collections.abc import Callable
from math import comb, sqrt
from random import Random

import pytest

from linklayer.slacp import SlacpConfig
from linklayer.slacp.frames import Ack, Data, Fec, Frame, Sync
from tests.harness.slacp_pair import MS, A, B, Pair

pytestmark = pytest.mark.slow

#: standard deviations; the seeds are fixed, so a right implementation stays right
SIGMAS = 4.0
BLOCK = 8
#: blocks close when they are full, as on a busy link
CONFIG = SlacpConfig(block_frames=BLOCK, block_timer_ms=60_000)


def binomial(n: int, k: int, p: float) -> float:
    return comb(n, k) * p**k * (1 - p) ** (n - k)


def losses_of_a_block(per: float) -> tuple[float, float]:
    """Mean and variance of the packets lost for good in one block of BLOCK retransmissions and BLOCK redundancy frames.

    X retransmissions and Y redundancy frames are lost, both binomial; the X packets are lost when X + Y > BLOCK.
    """
    mean = square = 0.0
    for x in range(BLOCK + 1):
        for y in range(BLOCK + 1):
            if x + y > BLOCK:
                chance = binomial(BLOCK, x, per) * binomial(BLOCK, y, per)
                mean += chance * x
                square += chance * x * x
    return mean, square - mean * mean


def transfer(per: float, n: int, seed: int, config: SlacpConfig = CONFIG, size: int = 20) -> tuple[Pair, list[Frame]]:
    """Send n packets from a to b; both directions lose frames independently with probability `per`."""
    errors = Random(seed)
    pair = Pair(config, delay=100 * MS, frame_time=2 * MS)
    pair.establish()
    pair.drop = lambda direction, frame: errors.random() < per
    start = len(pair.log)
    pair.carry(*[index.to_bytes(4, "big") * (size // 4) for index in range(n)])
    return pair, [frame for _, name, frame in pair.log[start:] if name == A and not isinstance(frame, Ack)]


def count(frames: list[Frame], kind: type[Frame], test: Callable[[Frame], bool] = lambda frame: True) -> int:
    return sum(isinstance(frame, kind) and test(frame) for frame in frames)


@pytest.mark.parametrize(("per", "n"), [(0.2, 5000), (0.4, 5000)])
def test_residual_losses_and_efficiency_are_what_theory_gives(per: float, n: int) -> None:
    pair, frames = transfer(per, n, seed=11)
    mean, variance = losses_of_a_block(per)
    blocks = n * per / BLOCK
    # the number of blocks varies, too: n packets, each retransmitted with probability `per`
    deviation = sqrt(blocks * variance + (mean / BLOCK) ** 2 * n * per * (1 - per))
    lost = len(pair.given_up[A])
    assert abs(lost - blocks * mean) <= SIGMAS * deviation + 1
    assert lost < n * per**2
    assert len(pair.delivered[B]) == n - lost
    assert pair.delivered[B] == sorted(pair.delivered[B])

    # frames sent: each packet once, each lost one again, and one redundancy frame for each of these
    efficiency = len(pair.delivered[B]) / len(frames)
    theory = (1 - per * mean / BLOCK) / (1 + 2 * per)
    assert efficiency == pytest.approx(theory, rel=0.03)
    assert count(frames, Data) - n == pytest.approx(n * per, abs=SIGMAS * sqrt(n * per * (1 - per)))
    assert count(frames, Fec) == pytest.approx(count(frames, Data) - n, rel=0.02)


def test_redundancy_that_follows_the_losses_leaves_the_residual_loss_at_half_the_frames_lost() -> None:
    """As many redundancy frames as packets fail as often as they suffice there: an eighth of all packets is lost."""
    n, per = 5000, 0.5
    fixed, _ = transfer(per, n, seed=11)
    mean, _ = losses_of_a_block(per)
    assert len(fixed.given_up[A]) / n == pytest.approx(per * mean / BLOCK, rel=0.1)
    assert per * mean / BLOCK == pytest.approx(1 / 8)
    config = SlacpConfig(block_frames=BLOCK, block_timer_ms=60_000, residual_loss=0.01)
    follows, frames = transfer(per, n, seed=11, config=config)
    # the estimate errs by some percent, and too little redundancy costs more than too much saves
    assert 0.004 < len(follows.given_up[A]) / n < 0.015
    # 17 redundancy frames for 8 packets: 1 + 0.5 · (1 + 17 / 8) frames a packet, where 2 are the least
    assert len(frames) / n == pytest.approx(1 + 0.5 * (1 + 17 / 8), rel=0.05)


def test_redundancy_that_follows_the_losses_is_the_fixed_one_where_that_suffices() -> None:
    n, per = 2000, 0.1
    _, fixed = transfer(per, n, seed=12)
    config = SlacpConfig(block_frames=BLOCK, block_timer_ms=60_000, residual_loss=0.01)
    _, follows = transfer(per, n, seed=12, config=config)
    assert follows == fixed


def test_without_fec_the_residual_loss_rate_is_the_square_of_the_error_rate() -> None:
    n, per = 5000, 0.2
    pair, frames = transfer(per, n, seed=5, config=SlacpConfig(redundancy=0))
    expected = n * per**2
    assert abs(len(pair.given_up[A]) - expected) <= SIGMAS * sqrt(expected * (1 - per**2))
    assert len(frames) / n == pytest.approx(1 + per, rel=0.02)


def test_without_errors_the_overhead_is_headers_and_few_acknowledgements() -> None:
    n, size = 2000, 1400
    pair, frames = transfer(0.0, n, seed=1, size=size)
    assert count(frames, Data) == len(pair.delivered[B]) == n
    assert count(frames, Fec) == 0
    assert count(frames, Sync) <= 1
    octets = sum(frame.nbytes for frame in frames)
    assert octets / (n * size) - 1 < 0.02
    acks = [frame for _, name, frame in pair.log if name == B and isinstance(frame, Ack)]
    assert sum(frame.nbytes for frame in acks) / (n * size) < 0.005
