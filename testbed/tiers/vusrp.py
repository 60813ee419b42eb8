"""Tier `vusrp`: Linux hosts over virtual USRPs, whose air is a channel emulator."""

from testbed.tiers import Cost, Tier

TIER = Tier(
    name="vusrp",
    summary="IQ samples between virtual USRPs",
    clocks=("wall", "virtual"),
    medium="virtual-air",
    air="virtual",
    kernel=True,
    octets=True,
    fates=False,
    second_link=True,
    default_tcp="cubic",
    demo="fading-link.yaml",
    cost=Cost(0.25, 0.12),
)
