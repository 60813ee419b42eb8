"""Tier `model`: the cores on one virtual clock, in one process."""

from testbed.tiers import Tier

TIER = Tier(
    name="model",
    summary="channel models",
    clocks=("virtual",),
    medium=None,
    kernel=False,
    octets=False,
    fates=True,
    # the nearest of ours to the default of kernels
    default_tcp="sack",
)
