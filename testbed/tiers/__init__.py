"""Tiers: the ways to run a scenario, a file each, which declares a `TIER`.

Read first: docs/architecture.md, whose table of tiers is made from the declarations.

Rule kept: no other code compares the name of a tier; it asks the tier for the ability that matters to it.
"""

from dataclasses import dataclass
from typing import Final, Literal

from common.registry import Registry

Clock = Literal["virtual", "wall"]
#: the path between two antennas: none without radios, a channel emulator that the run sets, or the real air
Air = Literal["none", "virtual", "real"]


@dataclass(frozen=True, slots=True)
class Cost:
    """The cores that one link needs: a fixed part, and one for each Msps (Mbit/s where there are no radios)."""

    fixed: float
    per_mega: float


@dataclass(frozen=True, kw_only=True)
class Tier:
    """One tier: its medium, its clocks and its abilities."""

    name: str
    #: the carrier of frames in a few words, for the tables of documents
    summary: str
    #: the clocks that it can run by, its usual one first
    clocks: tuple[Clock, ...]
    #: its medium (testbed/live/media/); None: hosts and stations are objects of one process (testbed/model/)
    medium: str | None
    air: Air = "none"
    #: whether the hosts are Linux's, with its TCP beside our own, IP fragments, and veths for wires
    kernel: bool
    #: whether frames have octets, which captures need
    octets: bool
    #: whether the fate of every frame on the air is known
    fates: bool
    #: whether the hosts can have a second link beside the first
    second_link: bool = False
    #: the TCP of scenarios that name none
    default_tcp: str
    #: scenario of the demo, in scenarios/; None: no demo
    demo: str | None = None
    #: of one link, both stations and hosts together, on an idle machine (docs/measurements.md); None: not measured
    cost: Cost | None = None

    @property
    def simulated(self) -> bool:
        """Whether the run is a simulation, which repeats to the byte."""
        return self.medium is None

    @property
    def radio(self) -> bool:
        """Whether frames cross the air as IQ samples."""
        return self.air != "none"


TIERS: Final = Registry("testbed.tiers", "TIER", Tier)


def names_of(*, simulated: bool) -> str:
    """Return the names of all simulated tiers, or of all others, for messages."""
    return ", ".join(name for name, tier in TIERS.items() if tier.simulated is simulated)


def tier_with(air: Air) -> str:
    """Return the name of the tier that has an air."""
    return next(name for name, tier in TIERS.items() if tier.air == air)
