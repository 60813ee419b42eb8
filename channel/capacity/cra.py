"""Constant-rate assignment: a constant rate, as on any link that is not shared."""

from typing import ClassVar

from channel.capacity import Capacity, CapacityModel
from common.options import NoOptions


class ConstantRate(Capacity):
    """A constant rate."""

    constant: ClassVar[bool] = True

    def __init__(self, rate_bps: int) -> None:
        self._rate_bps = rate_bps

    def rate_bps(self) -> int:
        return self._rate_bps


CAPACITY_MODEL = CapacityModel(
    name="cra",
    summary="always there",
    options=NoOptions,
    make=lambda options, rate_bps, rng: ConstantRate(rate_bps),
    example={},
)
