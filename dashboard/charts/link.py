"""Charts of the link."""

from dashboard.charts import Chart, Line, Rate, Share, Value
from telemetry.records import LinkRecord, TcpRecord

CHART = (
    Chart(
        "throughput",
        "Throughput",
        "bit/s",
        "All bytes that each direction of the link sends: headers, retransmissions and redundancy included",
        (Line(LinkRecord, "link", "", Value("throughput_bps")),),
        page=1,
    ),
    Chart(
        "per",
        "Errors before and after repair",
        "%",
        "Frames that the medium lost, and packets that the link layer lost for good, over the last second",
        (
            Line(LinkRecord, "link", "before", Share("corruption_losses", "frames"), "on the air"),
            Line(LinkRecord, "link", "after", Share("residual_losses", "packets"), "left for TCP"),
        ),
        page=6,
    ),
    Chart(
        "repairs",
        "Repairs",
        "1/s",
        "Retransmissions and redundancy of link layer and TCP, and ACKs marked with ELN, mean of the last second",
        (
            Line(LinkRecord, "link", "retransmissions", Rate("retransmissions"), "ARQ"),
            Line(LinkRecord, "link", "FEC frames", Rate("fec_frames"), "FEC"),
            Line(LinkRecord, "link", "FEC repairs", Rate("fec_repairs"), "rebuilt"),
            Line(LinkRecord, "link", "ELN marks", Rate("eln_marks"), "ELN"),
            Line(TcpRecord, "flow", "TCP retransmits", Rate("retransmits"), "TCP"),
        ),
        page=7,
    ),
    Chart(
        "queue",
        "Queue",
        "bytes",
        "Bytes that wait in each direction's IP queue",
        (Line(LinkRecord, "link", "", Value("queue_bytes")),),
        page=8,
    ),
    Chart(
        "link-goodput",
        "Goodput of the link",
        "bit/s",
        "Bytes of packets that were acknowledged or, without ARQ, sent and not known to be lost",
        (Line(LinkRecord, "link", "", Value("goodput_bps")),),
    ),
    Chart(
        "frames",
        "Frames sent",
        "frames/s",
        "All frames except acknowledgements, and the retransmissions and redundancy among them",
        (
            Line(LinkRecord, "link", "", Rate("frames")),
            Line(LinkRecord, "link", "retransmissions", Rate("retransmissions")),
            Line(LinkRecord, "link", "FEC frames", Rate("fec_frames")),
        ),
    ),
    Chart(
        "fec",
        "FEC: recovered and lost",
        "packets/s",
        "Packets rebuilt from redundancy, and packets that stayed lost",
        (
            Line(LinkRecord, "link", "recovered", Rate("fec_repairs")),
            Line(LinkRecord, "link", "lost", Rate("residual_losses")),
        ),
    ),
    Chart(
        "packets",
        "Packets sent, refused and marked",
        "packets/s",
        "Packets sent for the first time, packets that a queue refused, and ACKs marked with ELN",
        (
            Line(LinkRecord, "link", "", Rate("packets"), "sent"),
            Line(LinkRecord, "link", "congestion", Rate("congestion_losses")),
            Line(LinkRecord, "link", "ELN marks", Rate("eln_marks")),
        ),
    ),
)
