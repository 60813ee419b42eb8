"""Charts of the radios."""

from dashboard.charts import Chart, Line, Rate, Share, Value
from telemetry.records import LinkRecord, PhyRecord

CHART = (
    Chart(
        "snr",
        "SNR and EVM",
        "dB",
        "Each receiver's signal-to-noise ratio, and the error vector magnitude of its symbols",
        (
            Line(PhyRecord, "link", "SNR", Value("snr_db")),
            Line(PhyRecord, "link", "EVM", Value("evm_db")),
        ),
        scale="free",
        page=5,
    ),
    Chart(
        "frames-lost",
        "Frames lost",
        "%",
        "Frames that the receiver missed or received damaged, and these with the losses of the modelled medium",
        (
            Line(PhyRecord, "link", "at the receiver", Value("per", 100.0)),
            Line(LinkRecord, "link", "with the model's", Share("corruption_losses", "frames")),
        ),
    ),
    Chart(
        "cfo",
        "Carrier frequency offset",
        "Hz",
        "Carrier frequency of the transmitter minus the receiver's, estimated on each frame",
        (Line(PhyRecord, "link", "", Value("cfo_hz")),),
        scale="free",
    ),
    Chart(
        "level",
        "Receivers' level and gain",
        "dB",
        "Mean level of the frames relative to full scale, and the gain of the receiver",
        (
            Line(PhyRecord, "link", "level", Value("rssi_dbfs")),
            Line(PhyRecord, "link", "gain", Value("rx_gain_db")),
        ),
        scale="free",
    ),
    Chart(
        "overflows",
        "Gaps in received samples",
        "1/s",
        "Times at which a receiver lost samples because this machine took them too late, mean of the last second",
        (Line(PhyRecord, "link", "", Rate("overflows")),),
    ),
)
