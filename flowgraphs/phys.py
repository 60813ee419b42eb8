"""The PHYs by name. A new PHY is a module beside this one and a line here."""

from dataclasses import fields
from typing import Any

from flowgraphs.phy import Phy, PhyError


def make_phy(name: str, *, rate_sps: float, **options: Any) -> Phy:
    """Return the PHY `name` at `rate_sps`; options are its own. Raises PhyError, never takes another instead."""
    kind = _kind(name)
    known = [field.name for field in fields(kind) if field.name != "rate_sps"]
    for option in options:
        if option not in known:
            raise PhyError(f"PHY {name} has no option {option!r}: choose from {', '.join(known)}")
    phy: Phy = kind(rate_sps=rate_sps, **options)
    return phy


def _kind(name: str) -> Any:
    if name == "ofdm":
        from flowgraphs.ofdm import OfdmPhy

        return OfdmPhy
    if name == "wifi":
        from flowgraphs.wifi import WifiPhy

        return WifiPhy
    raise PhyError(f"there is no PHY {name!r}: choose from ofdm, wifi")
