"""The first board: how well TCP does, on what link, through what air."""

from grafana_foundation_sdk.models import dashboard, units

from dashboard.grafana_boards.frame import board
from dashboard.grafana_boards.influxql import FLOW, LINK, PHY, TCP, Target, last, mean, ratio, total
from dashboard.grafana_boards.panels import LOSS, RATE, SNR, Line, chart, figure, link_states


def make() -> dashboard.Dashboard:
    """Return the board."""
    return board(
        "overview",
        "fadelab: overview",
        "One run at a glance. The other boards go into TCP, the link layer and the radio.",
        [
            figure(
                "Goodput",
                "Payload that receivers have got, all chosen flows together.",
                units.BitsPerSecondSI,
                Target("A", total(FLOW, "goodput_bps"), "goodput"),
                span=4,
                colour="green",
            ),
            figure(
                "On the air",
                "All bits sent, headers, acknowledgements, retransmissions and redundancy included.",
                units.BitsPerSecondSI,
                Target("A", total(LINK, "throughput_bps"), "throughput"),
                span=4,
                colour="blue",
            ),
            figure(
                "Lost before the link layer",
                "Share of frames the medium damaged or erased.",
                units.PercentUnit,
                Target("A", ratio(LINK, "corruption_losses", "frames"), "$tag_link"),
                span=4,
                every=RATE,
                colour=LOSS,
                decimals=1,
            ),
            figure(
                "Lost after it",
                "Share of packets the link layer could not bring across.",
                units.PercentUnit,
                Target("A", ratio(LINK, "residual_losses", "packets"), "$tag_link"),
                span=4,
                every=RATE,
                colour=LOSS,
                decimals=1,
            ),
            figure(
                "SNR",
                "At the receiver; none on tiers without a radio.",
                units.Decibel,
                Target("A", mean(PHY, "snr_db"), "$tag_link"),
                span=4,
                colour=SNR,
                decimals=1,
            ),
            figure(
                "Retransmitted by TCP",
                "Segments, since the connections began.",
                units.Short,
                Target("A", last(TCP, "retransmits"), "$tag_flow"),
                span=4,
                colour="orange",
            ),
            chart(
                "Throughput and goodput",
                "What is sent on the air in each direction, and what the flows' receivers get of it.",
                units.BitsPerSecondSI,
                [
                    Line("throughput", LINK, mean(LINK, "throughput_bps")),
                    Line("goodput", FLOW, mean(FLOW, "goodput_bps")),
                ],
                span=12,
                height=9,
            ),
            chart(
                "Congestion window",
                "TCP's congestion window and slow start threshold at the sender.",
                units.BytesSI,
                [
                    Line("cwnd", TCP, last(TCP, "cwnd_bytes")),
                    Line("ssthresh", TCP, last(TCP, "ssthresh_bytes")),
                ],
                span=12,
                height=9,
                steps=True,
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
                "SNR",
                "Mean over the frames heard in each interval.",
                units.Decibel,
                [Line("snr", PHY, mean(PHY, "snr_db"))],
                span=8,
                from_zero=False,
                thresholds=SNR,
            ),
            chart(
                "IP queue",
                "Bytes that wait in front of the link.",
                units.BytesSI,
                [Line("queue", LINK, mean(LINK, "queue_bytes"))],
                span=8,
            ),
            link_states(span=24),
        ],
        ("host", "flow", "link"),
    )
