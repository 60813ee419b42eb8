"""Charts of TCP's senders and of the flows."""

from dashboard.charts import Chart, Line, Percentile, Rate, TotalRate, Value
from telemetry.records import FlowRecord, TcpRecord

CHART = (
    Chart(
        "goodput",
        "Goodput",
        "bit/s",
        "Payload that the receiver of each flow gets, mean of the last second",
        (
            Line(FlowRecord, "flow", "", Rate("bytes_received", 8)),
            Line(FlowRecord, "all", "", TotalRate("bytes_received", 8)),
        ),
        page=2,
    ),
    Chart(
        "cwnd",
        "Congestion window",
        "bytes",
        "Each TCP sender's congestion window, and its slow start threshold",
        (
            Line(TcpRecord, "flow", "", Value("cwnd_bytes"), "cwnd"),
            Line(TcpRecord, "flow", "ssthresh", Value("ssthresh_bytes")),
        ),
        page=3,
    ),
    Chart(
        "srtt",
        "Round-trip time",
        "ms",
        "Each TCP sender's smoothed round-trip time, and its retransmission timeout",
        (
            Line(TcpRecord, "flow", "", Value("srtt_ms"), "SRTT"),
            Line(TcpRecord, "flow", "RTO", Value("rto_ms")),
        ),
        page=4,
    ),
    Chart(
        "acknowledged",
        "Acknowledged",
        "bit/s",
        "Payload acknowledged to each TCP sender",
        (Line(TcpRecord, "flow", "", Rate("bytes_acked", 8)),),
    ),
    Chart(
        "rtt",
        "Percentiles of the round-trip time",
        "ms",
        "Median and 95th percentile of the smoothed round-trip times in each interval",
        (
            Line(TcpRecord, "flow", "p50", Percentile("srtt_ms", 50)),
            Line(TcpRecord, "flow", "p95", Percentile("srtt_ms", 95)),
        ),
    ),
    Chart(
        "tcp-retransmits",
        "Retransmitted by TCP",
        "segments/s",
        "Segments that TCP retransmitted after losses, real or presumed",
        (Line(TcpRecord, "flow", "", Rate("retransmits")),),
    ),
    Chart(
        "timeouts",
        "Timeouts",
        "timeouts",
        "Retransmission timeouts since the connection began; each is also a mark on all charts",
        (Line(TcpRecord, "flow", "", Value("timeouts", newest=True)),),
    ),
)
