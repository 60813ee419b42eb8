"""The physical layer at the receivers. Tiers without a radio have none."""

from grafana_foundation_sdk.models import dashboard, units

from dashboard.grafana_boards.frame import board
from dashboard.grafana_boards.influxql import LINK, PHY, mean, ratio
from dashboard.grafana_boards.panels import LOSS, RATE, SNR, Line, chart


def make() -> dashboard.Dashboard:
    """Return the board."""
    return board(
        "radio",
        "fadelab: radio",
        "Each direction as its receiver hears it, down dashed. Empty on tiers without a radio.",
        [
            chart(
                "SNR",
                "Signal to noise ratio, mean over the frames heard in each interval.",
                units.Decibel,
                [Line("snr", PHY, mean(PHY, "snr_db"))],
                span=12,
                height=9,
                from_zero=False,
                thresholds=SNR,
            ),
            chart(
                "Frames lost",
                "per: share of frames this receiver missed or heard damaged. before: the same with what a model took "
                "before transmission.",
                units.PercentUnit,
                [
                    Line("per", PHY, mean(PHY, "per")),
                    Line("before", LINK, ratio(LINK, "corruption_losses", "frames")),
                ],
                span=12,
                height=9,
                every=RATE,
                thresholds=LOSS,
            ),
            chart(
                "EVM",
                "Error vector magnitude of the equalised symbols, relative to the ideal constellation.",
                units.Decibel,
                [Line("evm", PHY, mean(PHY, "evm_db"))],
                span=12,
                from_zero=False,
            ),
            chart(
                "Carrier frequency offset",
                "Between transmitter and receiver, as estimated on each frame.",
                units.Hertz,
                [Line("cfo", PHY, mean(PHY, "cfo_hz"))],
                span=12,
                from_zero=False,
            ),
        ],
        ("link",),
    )
