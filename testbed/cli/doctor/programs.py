"""Looks at programs and libraries that single commands call."""

from pathlib import Path

from common.compiled import state
from testbed.cli.doctor.look import Look, Seen, apt, exists, program

_DYGRAPHS = Path("/usr/share/javascript/dygraphs/dygraph.min.js")

LOOKS = (
    Look("compiled cores", lambda: Seen(state() == "compiled", state()), "./fadelab compile", ("fast tier model",)),
    program("InfluxDB", ("influxd", "version"), "influxdb", "dashboard"),
    Look("dygraphs", lambda: exists(_DYGRAPHS), apt("libjs-dygraphs"), ("dashboard",)),
    program("Chromium", ("chromium", "--version"), "chromium", "tests"),
    program("tshark", ("tshark", "--version"), "tshark", "reading captures"),
    program("iperf3", ("iperf3", "--version"), "iperf3", "outside traffic"),
)
