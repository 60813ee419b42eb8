"""The error models of SLACP's table 1, by name: interval between bursts and length of a burst, both uniform."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from channel.errors import ErrorModelPlugin
from channel.errors.uniform import UniformOnOff
from common.options import NoOptions
from common.units import MS, SECOND


class OnOff(NamedTuple):
    """The ranges (shortest, longest) of the good and the bad state, in ns."""

    good_ns: tuple[int, int]
    bad_ns: tuple[int, int]


TABLE_1: Mapping[str, OnOff] = MappingProxyType(
    {
        "low": OnOff((10 * SECOND, 30 * SECOND), (60 * MS, 60 * MS)),
        "med": OnOff((5 * SECOND, 15 * SECOND), (100 * MS, 300 * MS)),
        "high": OnOff((2 * SECOND, 10 * SECOND), (100 * MS, 300 * MS)),
        "vhigh": OnOff((0, 10 * SECOND), (100 * MS, 300 * MS)),
        "huge": OnOff((0, 7 * SECOND), (100 * MS, 100 * MS)),
    }
)


def _plugin(name: str, ranges: OnOff) -> ErrorModelPlugin:
    return ErrorModelPlugin(
        name=name,
        summary="in bad states, by the SLACP paper's models",
        options=NoOptions,
        make=lambda options, rng: UniformOnOff(ranges.good_ns, ranges.bad_ns, rng),
        example={},
    )


ERROR_MODEL = tuple(_plugin(name, ranges) for name, ranges in TABLE_1.items())
