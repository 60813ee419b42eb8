"""Charts of a carrier that both stations share."""

from dashboard.charts import Chart, Line, Rate, Value
from telemetry.records import AccessRecord

CHART = (
    Chart(
        "airtime",
        "Airtime on a shared carrier",
        "%",
        "Share of the time that each station is on the air, and that its bursts waited on an idle carrier",
        (
            Line(AccessRecord, "link", "on the air", Rate("airtime_ms", 0.1)),
            Line(AccessRecord, "link", "backoff", Rate("backoff_ms", 0.1)),
        ),
    ),
    Chart(
        "access",
        "Channel accesses",
        "1/s",
        "Bursts of each station on a shared carrier, those that waited for the other one, and collisions",
        (
            Line(AccessRecord, "link", "bursts", Rate("bursts")),
            Line(AccessRecord, "link", "deferrals", Rate("deferrals")),
            Line(AccessRecord, "link", "collisions", Rate("collisions")),
            Line(AccessRecord, "link", "collisions heard", Rate("collisions_heard")),
        ),
    ),
    Chart(
        "access-lag",
        "Late samples at the channel access",
        "ms",
        "Most that received samples came late to each station's channel access",
        (Line(AccessRecord, "link", "", Value("lag_ms")),),
    ),
)
