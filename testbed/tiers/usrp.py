"""Tier `usrp`: Linux hosts over real USRPs."""

from testbed.tiers import Tier

TIER = Tier(
    name="usrp",
    summary="IQ samples between real USRPs",
    clocks=("wall",),
    medium="real-air",
    air="real",
    kernel=True,
    octets=True,
    fates=False,
    default_tcp="cubic",
    demo="fading-link.yaml",
)
