"""Looks at programs and libraries that single commands call."""

from pathlib import Path

from testbed.cli.doctor.look import Look, apt, exists, program

_DYGRAPHS = Path("/usr/share/javascript/dygraphs/dygraph.min.js")

LOOKS = (
    program("InfluxDB", ("influxd", "version"), "influxdb", "dashboard"),
    Look("dygraphs", lambda: exists(_DYGRAPHS), apt("libjs-dygraphs"), ("dashboard",)),
    program("Chromium", ("chromium", "--version"), "chromium", "tests"),
    program("tshark", ("tshark", "--version"), "tshark", "reading captures"),
    program("iperf3", ("iperf3", "--version"), "iperf3", "outside traffic"),
)
