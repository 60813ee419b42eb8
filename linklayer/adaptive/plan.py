"""The plan of slacp-adaptive: how many frames a round sends for the packets that are missing.

Read first: docs/adaptive.md. A group of packets has some rounds before its deadline, a round trip apart. A round
with m packets missing sends n frames of an MDS code over them, the first m of them uncoded. j of them arrive, and
max(0, m - j) are missing in the next round, whose sender knows j. The plan minimises E[frames] + price * E[missed]:

    V_0(m) = price * m
    V_r(m) = min over n of  n + sum over j < m of P(j of n arrive) * V_{r-1}(m - j)

Rules kept
- In the last round fewer than m frames restore nothing: only uncoded packets among them count, and of j frames
  m/n are uncoded on average. So j frames leave m - j * min(1, m/n) packets missed there, not m - j.
- The frames of one round are lost with a beta-binomial distribution, rounds independently of each other. Its
  correlation stands for bursts within a round and for the estimator's uncertainty.
- The search for n is exhaustive. The objective is not convex: a group costs less per packet than a packet alone, so
  the last frames of a round may save more than the first. It is at least n, so no n beyond the best cost is better.
- Of two numbers of frames that cost the same, the plan takes the larger: packets arrive sooner.
- A row is computed when it is asked for the first time. A link without loss never asks for more than one packet.
"""

from functools import lru_cache
from math import exp, log
from typing import Final

#: more rounds count as these
MAX_ROUNDS: Final = 8
#: packets of a group
MAX_GROUP: Final = 16
#: frames of one round; enough for a group at 90 % loss
MAX_FRAMES: Final = 255

#: costs that differ by less are the same
_TIE: Final = 1 + 1e-9

#: plan_for's steps of log(loss / (1 - loss)): the loss is met within 1.5 %; and its bounds, 10^-6 and 0.95
_LOSS_STEP: Final = 0.03
_LEAST_LOSS: Final = -13.8
_MOST_LOSS: Final = 2.95
#: steps of log(price), and its bounds: no frame is worth a miss at 1
_PRICE_STEP: Final = 0.05
_MOST_PRICE: Final = 1e9
#: steps of log(loss / (1 - loss)) of `cost_within`
_COST_STEP: Final = 0.25
#: the highest price that `plan_within` tries
_DEAREST: Final = 256.0
_CORRELATIONS: Final = (0.0, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)


class Plan:
    """The best number of frames for each round and each number of missing packets.

    `loss`: probability that a frame is lost, 0 to 1. `correlation`: of the losses of two frames of one round, 0 to
    below 1. `price`: a missed packet costs so many frames, 0 or more. Raises ValueError.
    """

    def __init__(self, loss: float, correlation: float, price: float) -> None:
        if not (0 <= loss <= 1 and 0 <= correlation < 1 and price >= 0):
            raise ValueError(f"no plan for loss {loss}, correlation {correlation}, price {price}")
        self.loss = loss
        self.correlation = correlation
        self.price = price
        # [n][j]: probability that j of n frames arrive, j <= min(n, MAX_GROUP)
        self._arrivals: list[list[float]] = [[1.0]]
        # [rounds][missing]; without a round all are missed
        groups = range(MAX_ROUNDS)
        self._frames: list[list[int]] = [[0] * (MAX_GROUP + 1)] + [[0] for _ in groups]
        self._sent: list[list[float]] = [[0.0] * (MAX_GROUP + 1)] + [[0.0] for _ in groups]
        self._missed: list[list[float]] = [[float(m) for m in range(MAX_GROUP + 1)]] + [[0.0] for _ in groups]
        self._cost: list[list[float]] = [[price * m for m in range(MAX_GROUP + 1)]] + [[0.0] for _ in groups]

    def frames(self, rounds: int, missing: int) -> int:
        """Return the frames to send in this round, coded ones included.

        `rounds`: rounds left, this one included, 1 or more. `missing`: packets that the receiver lacks, 0 to
        MAX_GROUP. Raises ValueError, as the methods below do.
        """
        return self._frames[self._row(rounds, missing)][missing]

    def cost(self, rounds: int, missing: int) -> float:
        """Return E[frames] + price * E[missed] from this round on."""
        return self._cost[self._row(rounds, missing)][missing]

    def missed(self, rounds: int, missing: int) -> float:
        """Return E[packets missed]."""
        return self._missed[self._row(rounds, missing)][missing]

    def sent(self, rounds: int, missing: int) -> float:
        """Return E[frames sent] from this round on."""
        return self._sent[self._row(rounds, missing)][missing]

    def _row(self, rounds: int, missing: int) -> int:
        """Return the row for `rounds`, filled as far as `missing`."""
        if rounds < 1 or not 0 <= missing <= MAX_GROUP:
            raise ValueError(f"no plan for {rounds} rounds and {missing} packets missing")
        rounds = min(rounds, MAX_ROUNDS)
        if len(self._frames[rounds]) <= missing:
            for row in range(1, rounds + 1):
                for m in range(len(self._frames[row]), missing + 1):
                    self._decide(row, m)
        return rounds

    def _decide(self, row: int, m: int) -> None:
        """Append the best number of frames for m packets to the row."""
        after = self._cost[row - 1]
        best, frames = after[m], 0
        n = 1
        while n <= best and n <= MAX_FRAMES:
            arrivals = self._arrivals_of(n)
            cost = float(n)
            if row == 1:
                restored = self.price * min(1.0, m / n)
                for j in range(min(n + 1, m)):
                    cost += arrivals[j] * (after[m] - j * restored)
            else:
                for j in range(min(n + 1, m)):
                    cost += arrivals[j] * after[m - j]
            if cost <= best * _TIE:
                best, frames = cost, n
            n += 1
        arrivals = self._arrivals_of(frames)
        sent, missed = float(frames), 0.0
        restored = min(1.0, m / frames) if frames and row == 1 else 1.0
        for j in range(min(frames + 1, m)):
            sent += arrivals[j] * self._sent[row - 1][m - j]
            missed += arrivals[j] * (m - j * restored if row == 1 else self._missed[row - 1][m - j])
        self._frames[row].append(frames)
        self._sent[row].append(sent)
        self._missed[row].append(missed)
        self._cost[row].append(best)

    def _arrivals_of(self, n: int) -> list[float]:
        """Return the probabilities that j of n frames arrive, as Polya's urn draws them."""
        for done in range(len(self._arrivals) - 1, n):
            before = self._arrivals[done]
            scale = 1 - self.correlation + done * self.correlation
            arrives, is_lost = (1 - self.loss) * (1 - self.correlation), self.loss * (1 - self.correlation)
            after = [0.0] * (min(done + 1, MAX_GROUP) + 1)
            for j in range(len(before)):
                after[j] += before[j] * (is_lost + (done - j) * self.correlation) / scale
                if j < MAX_GROUP:
                    after[j + 1] += before[j] * (arrives + j * self.correlation) / scale
            self._arrivals.append(after)
        return self._arrivals[n]


def plan_for(loss: float, correlation: float, price: float) -> Plan:
    """Return a plan for about these values, from a cache.

    The plan's choices cost at most 1 % more than the best ones for this loss and price. The correlation is the
    nearest of a few. A loss beyond 10^-6 to 0.95 counts as these. Raises ValueError as `Plan` does.
    """
    if not (0 <= loss <= 1 and 0 <= correlation < 1 and price >= 0):
        raise ValueError(f"no plan for loss {loss}, correlation {correlation}, price {price}")
    odds = log(loss / (1 - loss)) if 0 < loss < 1 else (_MOST_LOSS if loss else _LEAST_LOSS)
    nearest = 0
    while nearest + 1 < len(_CORRELATIONS) and correlation > (_CORRELATIONS[nearest] + _CORRELATIONS[nearest + 1]) / 2:
        nearest += 1
    return _plan(
        round(min(max(odds, _LEAST_LOSS), _MOST_LOSS) / _LOSS_STEP),
        _CORRELATIONS[nearest],
        round(log(min(max(price, 1.0), _MOST_PRICE)) / _PRICE_STEP),
    )


@lru_cache(maxsize=64)
def _plan(loss_steps: int, correlation: float, price_steps: int) -> Plan:
    """Return the plan for a point of the grid."""
    return Plan(1 / (1 + exp(-loss_steps * _LOSS_STEP)), correlation, exp(price_steps * _PRICE_STEP))


def plan_within(
    loss: float, correlation: float, rounds: int, missing: int, residual: float, dearness: float = 1.0
) -> Plan:
    """Return the plan with the lowest price at which at most this share of `missing` packets is missed.

    Prices are powers of two. A share that even the highest of them does not reach is not paid for any further.
    `dearness`: a factor of that price. Raises ValueError as `Plan` does.
    """
    plan = _cheapest(plan_for(loss, correlation, 1.0), rounds, missing, residual)
    return plan_for(plan.loss, plan.correlation, plan.price * dearness)


def cost_within(loss: float, rounds: int, missing: int, residual: float) -> float:
    """Return what a packet of `missing` costs by the plan of `plan_within` without correlation, in frames.

    The loss is met within an eighth of its odds. Raises ValueError as `Plan` does.
    """
    odds = log(loss / (1 - loss)) if 0 < loss < 1 else (_MOST_LOSS if loss else _LEAST_LOSS)
    odds = min(max(odds, _LEAST_LOSS), _MOST_LOSS)
    return _cost_within(round(odds / _COST_STEP), min(rounds, MAX_ROUNDS), missing, residual)


@lru_cache(maxsize=1024)
def _cost_within(steps: int, rounds: int, missing: int, residual: float) -> float:
    plan = plan_within(1 / (1 + exp(-steps * _COST_STEP)), 0.0, rounds, missing, residual)
    return plan.cost(rounds, missing) / missing


@lru_cache(maxsize=16)
def _cheapest(plan: Plan, rounds: int, missing: int, residual: float) -> Plan:
    """Return the plan with the lowest price that keeps within the residual, at the loss and correlation of `plan`."""
    price = 1.0
    while price < _DEAREST and plan.missed(rounds, missing) > residual * missing:
        price *= 2
        plan = plan_for(plan.loss, plan.correlation, price)
    return plan
