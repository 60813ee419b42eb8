"""The plan of the demo on this machine: two links at once, one after the other, or one at a lower rate.

Rules kept
- Links side by side need free processors, for stations compete with each other. A single link may take processors from
  ordinary programs, because stations run in real time (SCHED_RR); where that is not allowed, it needs free ones, too.
- The cost of a link was measured on an idle machine (docs/measurements.md). With less it may still keep the clock: that
  is the margin.
- Everything here is pure: the same figures give the same plan.

Left out: the load of other programs later. A run that is late all the same says so.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from common.sides import SIDES
from testbed.cli.machine.processors import Room
from testbed.scenario.schema import Scenario
from testbed.tiers import TIERS

#: shares of its rates that a link may run at, the whole first
SHARES = (Fraction(1), Fraction(1, 2), Fraction(1, 4))


@dataclass(frozen=True, slots=True)
class DemoPlan:
    """How to run some links: the number that run together, and their share of the scenario's rates."""

    together: int
    share: Fraction
    #: whether the machine is expected to carry that
    fits: bool = True


def choose(room: Room, costs: Mapping[Fraction, float], links: int) -> DemoPlan:
    """Return all links at once where that fits; else one after the other at the largest share that fits, or the least.

    `costs`: the cores that a link needs, by the share of its rates. The largest share is the one that is wanted.
    """
    wanted = max(costs)
    if links * costs[wanted] <= room.free:
        return DemoPlan(links, wanted)
    fitting = [share for share, cores in costs.items() if cores <= max(room.free, room.claimable)]
    return DemoPlan(1, max(fitting, default=min(costs)), fits=bool(fitting))


def side_by_side(room: Room, costs: Mapping[Fraction, float], links: int) -> DemoPlan:
    """Return all links at once, at the largest share of their rates that fits, or the least. `costs`: as above."""
    fitting = [share for share, cores in costs.items() if links * cores <= room.free]
    return DemoPlan(links, max(fitting, default=min(costs)), fits=bool(fitting))


def explain(plan: DemoPlan, room: Room, costs: Mapping[Fraction, float], links: int) -> str:
    """Return a line that says why the links do not run all at once; empty where they do."""
    if plan.together == links:
        return ""
    wanted = max(costs)
    if plan.share == wanted and plan.fits:
        return (
            f"One run after the other: {links} links at once take {links * costs[wanted]:.1f} cores, "
            f"and {room.free:.1f} are free."
        )
    own = max(room.free, room.claimable)
    at = "" if plan.share == wanted else f" at {plan.share} of its rates"
    late = "" if plan.fits else f" Even the {costs[plan.share]:.1f} that it takes now are too much: it may be late."
    return f"One run after the other{at}: a link takes {costs[wanted]:.1f} cores, and {own:.1f} are to be had.{late}"


def link_costs(scenario: Scenario, slow: float) -> dict[Fraction, float]:
    """Return the cores that a link of the scenario needs, by the share of its rates; `slow` as from `slowness`."""
    tier = TIERS[scenario.tier]
    assert tier.cost is not None
    bps = max(direction.rate_bps for direction in map(scenario.channel.direction, SIDES))
    mega = (scenario.radio.rate_sps if tier.radio else bps) / 1e6
    return {share: slow * (tier.cost.fixed + tier.cost.per_mega * mega * share) for share in SHARES}


def lowered(scenario: Scenario, share: Fraction) -> tuple[str, ...]:
    """Return the settings that lower the scenario's rates to a share, and say so in its description."""
    if share == 1:
        return ()
    return (
        f"channel.rate_bps={round(scenario.channel.rate_bps * share)}",
        f"radio.rate_sps={float(scenario.radio.rate_sps * share)}",
        f"description={json.dumps(f'{scenario.description}, at {share} of these rates')}",
    )
