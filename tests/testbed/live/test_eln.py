"""ELN marking on the live tiers: real runs with kernel TCP."""

from pathlib import Path

import pytest

from tests.harness.scenarios import scenario
from tests.harness.steered import ENDLESS, Drive
from tests.hosts.harness import needs_network

pytestmark = needs_network


@pytest.mark.light
def test_eln_can_be_switched_while_a_run_goes_on(tmp_path: Path) -> None:
    channel = {"rate_bps": 4_000_000, "delay_ms": 10, "per": 0.05}
    with Drive(scenario(workloads=ENDLESS, link={"scheme": "none"}, channel=channel), tmp_path) as drive:
        sink, steer = drive.sink, drive.steering.set
        drive.until(lambda: sink.received() > 100_000)
        assert sink.links()[-1].eln_marks == 0

        steer("eln", True)
        drive.until(lambda: sink.links()[-1].eln_marks > 5)
        sent = sink.links()[-1].packets
        # the other schemes, too, while it is on
        steer("slacp", True)
        drive.until(lambda: sink.links()[-1].scheme == "slacp" and sink.links()[-1].established)
        drive.grows(sink.received, 50_000)
        sessions = sink.links()[-1].packets
        steer("eln", False)
        drive.until(lambda: len(sink.links()) > 1 and sink.links()[-1].packets > sessions)
        drive.grows(sink.received, 100_000)
        steer("slacp", False)
        drive.until(lambda: sink.links()[-1].scheme == "none")
        marks = sink.links()[-1].eln_marks
        drive.grows(sink.corrupted, 10)
        assert sink.links()[-1].eln_marks == marks
        assert sink.links()[-1].packets > sent

        summary = drive.end()
        assert summary.intact
        assert summary.confusion is not None
        assert summary.confusion["eln"]["corruption"]["corruption"] > 0
        for side in ("up", "down"):
            counts = [link.eln_marks for link in sink.links(side)]
            assert counts == sorted(counts)
