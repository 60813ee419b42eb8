"""ELN marking on the live tiers: real runs with kernel TCP."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from linklayer.filters.filter import Cause
from telemetry.parquet import read_records
from testbed.results.ground_truth import CAUSES
from testbed.results.summary import Summary
from tests.harness.live_runs import folder_of, run_all
from tests.harness.scenarios import scenario
from tests.harness.steered import ENDLESS, Drive
from tests.hosts.harness import needs_network

pytestmark = needs_network


def rows_of(summary: Summary) -> Mapping[Cause, Mapping[Cause, int]]:
    assert summary.confusion is not None
    return summary.confusion["eln"]


@pytest.mark.light
def test_the_marker_is_right_about_a_link_that_loses_in_two_ways(tmp_path: Path) -> None:
    scenarios = [
        scenario(
            tcp=tcp,
            link={"scheme": "none", "eln": "ends", "ip_queue_bytes": 9000},
            channel={"rate_bps": 2_000_000, "delay_ms": 20, "per": 0.01},
            workloads=[{"kind": "bulk", "duration_s": 8, "direction": "down"}],
            timing={"late_fraction": 1.0},
        )
        for tcp in ("reno-nosack", "reno")
    ]
    for summary in run_all(scenarios, tmp_path):
        rows, link = rows_of(summary), summary.link["down"]
        total = sum(rows[truth][guess] for truth in CAUSES for guess in CAUSES)
        right = sum(rows[cause][cause] for cause in CAUSES)
        # a segment that the queue drops and then the link loses, before anybody can know, is two losses and one truth
        assert rows["congestion"]["corruption"] + rows["late"]["corruption"] <= 1, rows
        # and one that is sent again within three segments looks like one out of order
        assert total - right <= 0.15 * total, rows
        assert rows["corruption"]["corruption"] > 0
        assert rows["congestion"]["congestion"] > 0
        assert sum(rows["corruption"].values()) <= link.residual_losses
        assert sum(rows["congestion"].values()) <= link.congestion_losses
        assert link.eln_marks >= rows["corruption"]["corruption"]
        assert summary.link["up"].eln_marks == 0
        marks = [row["eln_marks"] for row in read_records(folder_of(summary), "link") if row["link"] == "down"]
        assert marks == sorted(marks)
        assert marks[-1] == link.eln_marks


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
        assert rows_of(summary)["corruption"]["corruption"] > 0
        for side in ("up", "down"):
            counts = [link.eln_marks for link in sink.links(side)]
            assert counts == sorted(counts)
