"""The link layer: what goes over the air, what is repaired, what stays lost, what waits."""

from grafana_foundation_sdk.models import dashboard, units

from dashboard.grafana_boards.frame import board
from dashboard.grafana_boards.influxql import LINK, mean, rate, ratio
from dashboard.grafana_boards.panels import RATE, Line, chart, link_states


def make() -> dashboard.Dashboard:
    """Return the board."""
    return board(
        "link",
        "fadelab: link layer",
        "Each direction as its sending station counts it, down dashed.",
        [
            chart(
                "Throughput and goodput",
                "All bits on the air, and those of packets that are across: acknowledged or, without ARQ, sent once.",
                units.BitsPerSecondSI,
                [
                    Line("throughput", LINK, mean(LINK, "throughput_bps")),
                    Line("goodput", LINK, mean(LINK, "goodput_bps")),
                ],
                span=12,
                height=9,
            ),
            chart(
                "What is sent",
                "Packets sent for the first time, retransmissions, redundancy frames. Acknowledgements come on top.",
                units.CountsPerSecond,
                [
                    Line("packets", LINK, rate(LINK, "packets")),
                    Line("retransmissions", LINK, rate(LINK, "retransmissions")),
                    Line("fec", LINK, rate(LINK, "fec_frames")),
                ],
                span=12,
                height=9,
                every=RATE,
                stacked=True,
            ),
            chart(
                "Losses by cause",
                "Corruption: frames the medium took. Congestion: packets a queue refused. Residual: lost for good.",
                units.CountsPerSecond,
                [
                    Line("corruption", LINK, rate(LINK, "corruption_losses")),
                    Line("congestion", LINK, rate(LINK, "congestion_losses")),
                    Line("residual", LINK, rate(LINK, "residual_losses")),
                ],
                span=8,
                every=RATE,
            ),
            chart(
                "Losses before and after the link layer",
                "Before: share of frames the medium damaged or erased. After: share of packets that stayed lost.",
                units.PercentUnit,
                [
                    Line("before", LINK, ratio(LINK, "corruption_losses", "frames")),
                    Line("after", LINK, ratio(LINK, "residual_losses", "packets")),
                ],
                span=8,
                every=RATE,
            ),
            chart(
                "Repairs and notifications",
                "Packets rebuilt from redundancy, and explicit loss notifications to TCP.",
                units.CountsPerSecond,
                [
                    Line("repairs", LINK, rate(LINK, "fec_repairs")),
                    Line("notifications", LINK, rate(LINK, "eln_marks")),
                ],
                span=8,
                every=RATE,
            ),
            chart(
                "IP queue",
                "Bytes that wait in front of the link.",
                units.BytesSI,
                [Line("queue", LINK, mean(LINK, "queue_bytes"))],
                span=12,
                height=6,
            ),
            link_states(span=12),
        ],
        ("link",),
    )
