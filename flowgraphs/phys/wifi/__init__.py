"""PHY `wifi`: IEEE 802.11 frames by gr-ieee802-11 (docs/wifi.md)."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from flowgraphs.phys import PhyContext, PhyPlugin
from flowgraphs.phys.wifi.options import WifiOptions

if TYPE_CHECKING:
    from flowgraphs.phys.wifi.modem import WifiPhy


def _make(options: WifiOptions, context: PhyContext) -> "WifiPhy":
    from flowgraphs.phys.wifi.modem import WifiPhy

    return WifiPhy(context.rate_sps, carrier_hz=context.carrier_hz, **asdict(options))


PHY = PhyPlugin(
    name="wifi",
    summary="IEEE 802.11's OFDM, by gr-ieee802-11 ([wifi.md](wifi.md))",
    options=WifiOptions,
    make=_make,
)
