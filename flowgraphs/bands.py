"""The bands in which a real transmitter may use an antenna, by region.

Read first: docs/hardware.md, whose table says where these bands come from and what limits hold in them. A band here is
no permission: power and duty cycle are the user's responsibility.

Left out: virtual devices, which radiate nothing.
"""

from collections.abc import Mapping

#: ERC/REC 70-03; 47 CFR 15.247
BANDS_HZ: Mapping[str, tuple[tuple[float, float], ...]] = {
    "europe": ((433.05e6, 434.79e6), (863e6, 870e6), (2400e6, 2483.5e6), (5725e6, 5875e6)),
    "usa": ((902e6, 928e6), (2400e6, 2483.5e6), (5725e6, 5850e6)),
}


def fault_of(hz: float, rate_sps: float, region: str | None, cabled: bool) -> str | None:
    """Return why a real radio must not transmit on this carrier, with a remedy; None where it may.

    The signal is taken to fill the sampled band.
    """
    if cabled:
        return None
    low_hz, high_hz = hz - rate_sps / 2, hz + rate_sps / 2
    band = f"{low_hz / 1e6:.2f} to {high_hz / 1e6:.2f} MHz"
    cables = "radio.cabled=true (replay: --cabled) where cables and attenuators join the radios"
    if region is None:
        return f"would radiate on {band}: set {cables}, else radio.region (--region) to {' or '.join(BANDS_HZ)}"
    bands = BANDS_HZ[region]
    if any(low <= low_hz and high_hz <= high for low, high in bands):
        return None
    own = ", ".join(f"{low / 1e6:g} to {high / 1e6:g}" for low, high in bands)
    return f"must not radiate on {band} in region {region}: take a carrier in {own} MHz, or set {cables}"
