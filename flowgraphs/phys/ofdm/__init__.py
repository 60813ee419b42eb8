"""PHY `ofdm`: liquid-dsp's OFDM flexible frames (docs/ofdm.md)."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from flowgraphs.phys import PhyContext, PhyPlugin
from flowgraphs.phys.ofdm.options import OfdmOptions

if TYPE_CHECKING:
    from flowgraphs.phys.ofdm.modem import OfdmPhy


def _make(options: OfdmOptions, context: PhyContext) -> "OfdmPhy":
    from flowgraphs.phys.ofdm.modem import OfdmPhy

    return OfdmPhy(context.rate_sps, carrier_hz=context.carrier_hz, **asdict(options))


PHY = PhyPlugin(
    name="ofdm",
    summary="liquid-dsp's OFDM frames ([ofdm.md](ofdm.md))",
    options=OfdmOptions,
    make=_make,
)
