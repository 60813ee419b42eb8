"""The radios of a scenario's two stations (docs/scenarios.md, `radio`)."""

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, model_validator

from common.options import NotNegative, Positive
from common.sides import Side
from flowgraphs.access import AccessOptions
from flowgraphs.frontend import FrontEndOptions
from flowgraphs.phys import PHYS, PhyOptions
from testbed.scenario.plugin_options import Choice, Part, options_of, part_of

MAX_RATE_SPS: Final = 50_000_000

if TYPE_CHECKING:
    FrontEndPart = Part
    AccessPart = Part
else:
    FrontEndPart = part_of(FrontEndOptions, Part)
    AccessPart = part_of(AccessOptions, Part)


class RadioOptions(FrontEndPart):
    """The radios of the two stations, on tiers with radios: the PHY with its options, and the radio front ends."""

    phy: str
    #: complex samples per second, of both radios
    rate_sps: Annotated[float, Field(ge=100_000, le=MAX_RATE_SPS)] = 2_500_000
    #: carrier per direction (FDD), or the same for both with `access`
    up_hz: Positive = 2.46e9
    down_hz: Positive = 2.41e9
    #: how the stations share one carrier: `lbt` (listen before talk) stands for a mapping of its defaults;
    #: None: each direction has its own carrier
    access: Annotated[AccessPart | None, BeforeValidator(lambda raw: {} if raw == "lbt" else raw)] = None
    #: None: the middle of the device's range
    tx_gain_db: NotNegative | None = None
    rx_gain_db: NotNegative | Literal["auto"] = "auto"
    #: UHD device arguments of ST's and of BAS's radio, for tier usrp, which needs them;
    #: None: virtual devices, on tier vusrp
    devices: tuple[str, str] | None = None
    #: choose each frame's mode by the SNR and the losses at the far end; channel.rate_bps is then the most
    modes: Annotated[Literal["off", "auto"], BeforeValidator(lambda raw: "off" if raw is False else raw)] = "off"
    #: record the received samples of both radios as SigMF
    record: bool = False

    @model_validator(mode="after")
    def _check(self) -> "RadioOptions":
        if self.access is not None and self.up_hz != self.down_hz:
            raise ValueError("access is for one carrier: set up_hz and down_hz to the same frequency")
        if self.spacing_hz < self.rate_sps:
            raise ValueError(
                "up_hz and down_hz are closer than rate_sps: each direction needs a band of its own, or both access lbt"
            )
        if self.devices is not None and self.devices[0] == self.devices[1]:
            raise ValueError(f"devices are both {self.devices[0]!r}: name one by serial or addr for each station")
        return self

    def front_end(self) -> FrontEndOptions:
        """Return the settings of the front ends."""
        options: FrontEndOptions = options_of(self, FrontEndOptions)
        return options

    @property
    def spacing_hz(self) -> float:
        """The distance of the directions' carriers; infinite where they share one."""
        return math.inf if self.access is not None else abs(self.up_hz - self.down_hz)

    def access_options(self) -> AccessOptions | None:
        """Return the options of the shared carrier, or None."""
        return None if self.access is None else options_of(self.access, AccessOptions)

    def phy_options(self, receiving: Side) -> dict[str, Any]:
        """Return the arguments of `make_phy` at the station that receives on a side."""
        return {**asdict(self._options()), "carrier_hz": self.carrier_hz(receiving)}

    @property
    def mode(self) -> str:
        """A short name of the PHY's modulation and code."""
        return self._options().mode()

    def _options(self) -> PhyOptions:
        options: PhyOptions = options_of(self, PHYS[self.phy].options)
        return options

    def carrier_hz(self, side: Side) -> float:
        """The carrier of one direction."""
        return self.up_hz if side == "up" else self.down_hz


# lenient: a user may change `phy` alone
RADIO: Final = Choice(PHYS.values(), "phy", RadioOptions, "ofdm", lenient=True)
