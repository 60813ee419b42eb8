"""Charts of what a link believes of its losses, and does about them."""

from dashboard.charts import Chart, Line, Ratio, Share, Value
from telemetry.records import BeliefRecord

CHART = (
    Chart(
        "believed-loss",
        "Believed loss",
        "%",
        "Frames that the link expects to lose, and the bounds between which it believes the rate to be",
        (
            Line(BeliefRecord, "link", "", Value("loss", 100.0), "estimate"),
            Line(BeliefRecord, "link", "low", Value("loss_low", 100.0), band=True),
            Line(BeliefRecord, "link", "high", Value("loss_high", 100.0), band=True),
        ),
        page=9,
    ),
    Chart(
        "redundancy",
        "Frames and rounds",
        "per packet",
        "Frames sent for each delivered packet, rounds begun for each new one, and the rounds that one has at most",
        (
            Line(BeliefRecord, "link", "frames", Ratio("frames", "delivered")),
            Line(BeliefRecord, "link", "rounds", Ratio("rounds", "packets")),
            Line(BeliefRecord, "link", "planned", Value("rounds_planned"), "rounds planned"),
        ),
        page=10,
    ),
    Chart(
        "budget-met",
        "Budget met",
        "%",
        "Packets that came within the delay budget, of all whose fate the sender has learned in the last second",
        (Line(BeliefRecord, "link", "in time", Share("in_time", "settled")),),
        scale="free",
        page=11,
    ),
    Chart(
        "missed",
        "Packets missed",
        "%",
        "Packets given up as their time was over, of all whose fate the sender has learned in the last second",
        (Line(BeliefRecord, "link", "missed", Share("missed", "settled")),),
    ),
    Chart(
        "budget",
        "Delay budget",
        "ms",
        "How long a packet may be under way, from its first frame on",
        (Line(BeliefRecord, "link", "", Value("budget_ms")),),
    ),
    Chart(
        "burst-correlation",
        "Correlation of losses",
        "%",
        "Believed correlation of the losses of two frames that follow each other: 0 where they are independent",
        (Line(BeliefRecord, "link", "", Value("burst_correlation", 100.0)),),
    ),
)
