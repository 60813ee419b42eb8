"""Charts of the stations' processes."""

from dashboard.charts import Chart, Line, Rate, Value
from telemetry.records import StationRecord

CHART = (
    Chart(
        "processor",
        "Processor time",
        "%",
        "Processor time of each station's process, in percent of one core",
        (Line(StationRecord, "station", "", Value("processor_percent")),),
    ),
    Chart(
        "memory",
        "Memory",
        "bytes",
        "Resident memory of each station's process",
        (Line(StationRecord, "station", "", Value("memory_bytes")),),
    ),
    Chart(
        "late",
        "Late events",
        "1/s",
        "Frames that this machine delivered later than the scenario allows, mean of the last second",
        (Line(StationRecord, "station", "", Rate("late_events")),),
    ),
)
