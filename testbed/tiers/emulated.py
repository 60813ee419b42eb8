"""Tier `emulated`: Linux hosts over channel models in real time."""

from testbed.tiers import Cost, Tier

TIER = Tier(
    name="emulated",
    summary="channel models",
    clocks=("wall", "virtual"),
    medium="sockets",
    kernel=True,
    octets=True,
    fates=True,
    second_link=True,
    default_tcp="cubic",
    demo="lossy-link.yaml",
    cost=Cost(0.1, 0.05),
)
