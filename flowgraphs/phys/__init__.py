"""The PHYs: a file or a folder each, which declares a `PHY`.

Rules kept: a declaration is cheap to import, and neither GNU Radio nor numpy comes with it; only `make` imports them.
No PHY takes the place of another: one that cannot run raises PhyError.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Final

from annotated_types import Ge, Gt, Le

from common.registry import Registry

if TYPE_CHECKING:
    from flowgraphs.phy import Phy


@dataclass(frozen=True, kw_only=True)
class PhyOptions:
    """Options of all PHYs."""

    #: root mean square of the samples of a burst; full scale is 1, and 12 dB below it leave room for OFDM's peaks
    rms: Annotated[float, Gt(0), Le(1)] = 0.25
    #: tells networks on one frequency apart
    network: Annotated[int, Ge(0), Le(0xFFFF)] = 0

    def mode(self) -> str:
        """Return modulation and code in a few words, as `Received.mode` has them."""
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhyContext:
    """Properties of the radio that a PHY may use."""

    #: complex samples per second
    rate_sps: float
    #: of the received signal
    carrier_hz: float


@dataclass(frozen=True, kw_only=True)
class PhyPlugin:
    """A PHY as scenarios know it: `radio.phy` is its name, its options stand beside that."""

    name: str
    #: the signal, for the table in docs/scenarios.md
    summary: str
    #: a dataclass derived from PhyOptions, whose fields have defaults
    options: type[PhyOptions]
    #: makes the PHY of its options. Raises PhyError in one line.
    make: Callable[[Any, PhyContext], "Phy"]


PHYS: Final = Registry("flowgraphs.phys", "PHY", PhyPlugin)


def make_phy(name: str, *, rate_sps: float, carrier_hz: float = 2.4e9, **options: Any) -> "Phy":
    """Return the PHY `name`; options are its own. Raises PhyError in one line."""
    from pydantic import TypeAdapter, ValidationError

    from flowgraphs.phy import PhyError

    if name not in PHYS:
        raise PhyError(f"there is no PHY {name!r}: choose from {', '.join(PHYS)}")
    plugin = PHYS[name]
    known = [field.name for field in fields(plugin.options)]
    for option in options:
        if option not in known:
            raise PhyError(f"PHY {name} has no option {option!r}: choose from {', '.join(known)}")
    for what, value in (("rate_sps", rate_sps), ("carrier_hz", carrier_hz)):
        if not value > 0:
            raise PhyError(f"PHY {name}: {what} is {value}: it must be positive")
    try:
        checked = TypeAdapter(plugin.options).validate_python(options)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["type"] == "value_error":
            raise PhyError(f"PHY {name}: {first['ctx']['error']}") from None
        message = first["msg"][0].lower() + first["msg"][1:]
        raise PhyError(f"PHY {name}: {first['loc'][0]} is {first['input']!r}: {message}") from None
    return plugin.make(checked, PhyContext(rate_sps=rate_sps, carrier_hz=carrier_hz))
