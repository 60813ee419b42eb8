"""What a delay budget leaves of an erasure channel: the programme of slacp-adaptive with all of its knowledge exact.

Read first: docs/adaptive.md. A group of packets with one deadline has some rounds, a link round trip apart. In each the
sender sends frames of an MDS code over the group. Feedback after a round tells how many frames arrived in all rounds so
far, or is lost. The state is (m, N): m packets were missing when feedback came last, N frames were sent since then.

    V_0(m, N) = price * E[missed]
    V_r(m, N) = min over n of  n + (1 - f) * E[V_{r-1}(m - arrived, 0)] + f * V_{r-1}(m, N + n)

Rules kept
- Losses are independent. The sender knows their rate, and the rate f at which feedback is lost.
- Without `systematic`, j < m frames deliver j packets: no code does better. With it the policy is that of
  `linklayer/adaptive/plan.py`, and what it misses is counted for a real code: a systematic MDS code, whose coded frames
  deliver nothing until they suffice.
- The share is that of the best mixture of two policies whose residual loss is exactly what is asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import log
from typing import Final

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.float64]

#: the highest price of a miss, in frames
_MOST_PRICE: Final = 1e12


@dataclass(frozen=True, slots=True)
class Link:
    """The channel and the time that a group of packets has.

    `loss`, `feedback_loss`: probabilities, `loss` below 1. `rounds`, `group`: 1 or more. `systematic`: for a real code,
    where no feedback is lost. `proactive`: frames are coded also while a round is left; otherwise each missing packet
    goes uncoded until the last round.
    """

    loss: float
    rounds: int
    group: int
    feedback_loss: float = 0.0
    systematic: bool = False
    proactive: bool = True


class Programme:
    """The best policy at a price of a missed packet in frames.

    `sent`, `missed`: E[frames] and E[packets missed] of a group. `until[r - 1][m, N]`: with r rounds left, the frames
    sent since the last feedback go up to this number. Raises ValueError.
    """

    def __init__(self, link: Link, price: float) -> None:
        if link.systematic and link.feedback_loss:
            raise ValueError("a systematic code is computed for feedback without losses only")
        arrivals = _arrivals(link.loss, link.group)
        most = len(arrivals) - 1
        missed = _missed(link)
        sent = np.zeros_like(missed)
        self.until: list[npt.NDArray[np.intp]] = []
        for row in range(1, link.rounds + 1):
            if row > 1:
                told = [_expected(values, arrivals) for values in (sent, missed)]
                heard = 1 - link.feedback_loss
                sent, missed = (
                    heard * with_feedback + link.feedback_loss * without
                    for with_feedback, without in zip(told, (sent, missed), strict=True)
                )
            until = _least(np.arange(most + 1) + sent + price * missed)
            if row > 1 and not link.proactive:
                until = np.maximum(*np.ogrid[: link.group + 1, : most + 1])
            self.until.append(until)
            sent = np.take_along_axis(sent, until, axis=1) + until - np.arange(most + 1)
            missed = np.take_along_axis(missed, until, axis=1)
        self.sent = float(sent[link.group, 0])
        self.missed = _missed_by_code(link, self.until) if link.systematic else float(missed[link.group, 0])


def _most(loss: float, group: int) -> int:
    """Frames of a group that no policy exceeds at a sensible price."""
    return int(3 * group / (1 - loss) + (log(_MOST_PRICE) / -log(loss) if loss else 0)) + 4


@cache
def _arrivals(loss: float, group: int) -> Table:
    """[N, j]: probability that j of N frames arrive, j < group."""
    arrivals = np.zeros((_most(loss, group) + 1, group))
    arrivals[0, 0] = 1
    for before, after in pairwise(arrivals):
        after += loss * before
        after[1:] += (1 - loss) * before[:-1]
    return arrivals


def _missed(link: Link) -> Table:
    """[m, N]: packets missed of m after N frames, without further rounds."""
    arrivals = _arrivals(link.loss, link.group)
    frames, arrived = np.ogrid[: len(arrivals), : link.group]
    missed = np.zeros((link.group + 1, len(arrivals)))
    for m in range(1, link.group + 1):
        useful = np.minimum(1, m / np.maximum(frames, 1)) if link.systematic else 1.0
        missed[m] = (arrivals * np.where(arrived < m, m - arrived * useful, 0)).sum(axis=1)
    return missed


def _missed_by_code(link: Link, until: Sequence[npt.NDArray[np.intp]]) -> float:
    """Packets of a group that a systematic MDS code misses, if its sender hears of every round."""
    arrivals = _arrivals(link.loss, link.group)
    # [u, c]: probability that u packets are unknown, with c coded frames that do not suffice
    states = np.zeros((link.group + 1, link.group + 1))
    states[link.group, 0] = 1
    for row in reversed(until):
        after = np.zeros_like(states)
        for unknown, coded in np.argwhere(states):
            lacking = unknown - coded
            frames = row[lacking, 0]
            uncoded = min(frames, unknown)
            arrived = np.outer(arrivals[uncoded, :lacking], arrivals[frames - uncoded, :lacking])
            too_few = np.add.outer(range(lacking), range(lacking)) < lacking
            after[coded + 1 : unknown + 1, coded : coded + lacking] += (
                states[unknown, coded] * (arrived * too_few)[::-1]
            )
        states = after
    return float(states.sum(axis=1) @ np.arange(link.group + 1))


def _expected(values: Table, arrivals: Table) -> Table:
    """[m, N]: the expected value when feedback has told how many of N frames arrived."""
    expected = np.zeros_like(values)
    for m in range(1, len(values)):
        expected[m] = arrivals[:, :m] @ values[m:0:-1, 0]
    return expected


def _least(costs: Table) -> npt.NDArray[np.intp]:
    """[m, N]: where the costs of a row are least from N on."""
    least = np.minimum.accumulate(costs[:, ::-1], axis=1)[:, ::-1]
    at = np.where(costs == least, np.arange(costs.shape[1]), costs.shape[1])
    return np.asarray(np.minimum.accumulate(at[:, ::-1], axis=1)[:, ::-1])


@dataclass(frozen=True, slots=True)
class Bound:
    """`share`: of (1 - loss) * rate that packets get which arrive in time. `frames`: per packet, on average. `missed`:
    share of packets."""

    share: float
    frames: float
    missed: float


def bound(link: Link, residual: float, header_octets: int = 0, packet_octets: int = 1500) -> Bound:
    """Return the best share at a residual loss of `residual`, the share of packets missed, 0 to 1.

    The residual loss is smaller where uncoded frames alone reach that. Each frame carries `header_octets` beside a
    packet of `packet_octets`. Raises ValueError if the deadline does not permit this residual loss.
    """
    # a miss that costs less than its frames is not worth preventing
    low, high = (1 + 1e-9) / (1 - link.loss), _MOST_PRICE
    careless, careful = Programme(link, low), Programme(link, high)
    wanted = residual * link.group
    if careful.missed > wanted:
        raise ValueError(f"no policy misses as few packets as {residual:g} of all")
    while careless.missed > wanted and high / low > 1 + 1e-7:
        price = (low * high) ** 0.5
        middle = Programme(link, price)
        if middle.missed > wanted:
            low, careless = price, middle
        else:
            high, careful = price, middle
    sent, missed = careless.sent, careless.missed
    if missed > wanted:
        part = (wanted - careful.missed) / (missed - careful.missed)
        sent, missed = careful.sent + part * (sent - careful.sent), wanted
    frames, missed = sent / link.group, missed / link.group
    carried = packet_octets / (packet_octets + header_octets)
    return Bound((1 - missed) / frames / (1 - link.loss) * carried, frames, missed)


def one_coded_round(loss: float, uncoded: int, packets: int, residual: float) -> float:
    """Return the share of `uncoded` rounds and then a coded one over `packets` lost packets, without feedback losses.

    The number of frames is whole. A round whose frames do not suffice counts as if it lost all of its packets.
    """
    lost = loss**uncoded
    frames = packets
    for arrived in _arrivals(loss, packets)[packets:]:
        # 0.1 * 0.1 ** 3 is 10^-4, too
        if lost * arrived.sum() <= residual * (1 + 1e-9):
            break
        frames += 1
    each = sum(loss**done for done in range(uncoded)) + lost * frames / packets
    return float((1 - residual) / each / (1 - loss))


def rounds_within(budget: float) -> int:
    """Return the rounds of a packet that may arrive so many round trips after its first frame was sent, 0.5 or more."""
    return int(budget + 0.5)
