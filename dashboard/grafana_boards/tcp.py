"""TCP at its senders: window, timing, losses, and what is acknowledged."""

from grafana_foundation_sdk.models import dashboard, units

from dashboard.grafana_boards.frame import board
from dashboard.grafana_boards.influxql import FLOW, TCP, last, mean, rate
from dashboard.grafana_boards.panels import RATE, Line, chart


def make() -> dashboard.Dashboard:
    """Return the board."""
    return board(
        "tcp",
        "fadelab: TCP",
        "The senders' kernels by tcp_info, and the receivers' goodput.",
        [
            chart(
                "Congestion window and threshold",
                "cwnd and ssthresh; there is no threshold before the first loss.",
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
                "Round trip and retransmission timeout",
                "The smoothed round-trip time, and the timeout computed from it (RFC 6298).",
                units.Milliseconds,
                [Line("srtt", TCP, mean(TCP, "srtt_ms")), Line("rto", TCP, mean(TCP, "rto_ms"))],
                span=12,
                height=9,
            ),
            chart(
                "Acknowledged and received",
                "Acknowledged: payload the sender knows to be across. Received: what the application there has read.",
                units.BitsPerSecondSI,
                [
                    Line("acknowledged", TCP, rate(TCP, "bytes_acked", times=8)),
                    Line("received", FLOW, mean(FLOW, "goodput_bps")),
                ],
                span=8,
                every=RATE,
            ),
            chart(
                "Retransmitted segments",
                "Segments sent again, per second: losses TCP saw, or believed to see.",
                units.CountsPerSecond,
                [Line("retransmitted", TCP, rate(TCP, "retransmits"))],
                span=8,
                every=RATE,
            ),
            chart(
                "Timeouts",
                "Retransmission timeouts since the connection began. Each one also marks all charts.",
                units.Short,
                [Line("timeouts", TCP, last(TCP, "timeouts"))],
                span=8,
                steps=True,
            ),
        ],
        ("host", "flow"),
    )
