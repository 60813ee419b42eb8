"""The PHYs by name. A new PHY is a module beside this one and a line here."""

from typing import Any

from flowgraphs.phy import Phy, PhyError


def make_phy(name: str, *, rate_sps: float, **options: Any) -> Phy:
    """Return the PHY `name` at `rate_sps`; options are its own. Raises PhyError, never takes another instead."""
    if name == "ofdm":
        from flowgraphs.ofdm import OfdmPhy

        return OfdmPhy(rate_sps=rate_sps, **options)
    if name == "wifi":
        from flowgraphs.wifi import WifiPhy

        return WifiPhy(rate_sps=rate_sps, **options)
    raise PhyError(f"there is no PHY {name!r}: choose from ofdm, wifi")
