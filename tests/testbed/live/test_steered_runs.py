"""Real runs that a person changes while they go on."""

import json
from pathlib import Path

import pytest

from common.sides import SIDES
from telemetry.parquet import read_records
from telemetry.records import LinkRecord, PhyRecord
from tests.harness.live_runs import folder_of
from tests.harness.radios import needs_vusrp
from tests.harness.scenarios import scenario
from tests.harness.steered import ENDLESS, Drive
from tests.hosts.harness import needs_network

pytestmark = needs_network


def gained(counter: str, before: LinkRecord, after: LinkRecord) -> int:
    return int(getattr(after, counter) - getattr(before, counter))


@pytest.mark.light
def test_a_run_becomes_what_a_person_wants(tmp_path: Path) -> None:
    with Drive(scenario(workloads=ENDLESS, channel={"rate_bps": 4_000_000, "delay_ms": 10}), tmp_path) as drive:
        eyes, steer = drive.eyes, drive.steering.set
        drive.until(lambda: eyes.received() > 200_000)
        assert eyes.corrupted() == 0

        steer("per", 20)
        drive.until(lambda: eyes.corrupted() > 20)
        assert eyes.links()[-1].retransmissions > 0

        steer("slacp", False)
        drive.until(lambda: eyes.links()[-1].scheme == "none")
        drive.grows(eyes.corrupted, 5)
        bare = eyes.links()[-1]
        drive.grows(eyes.corrupted, 5)
        # nothing repairs now: every loss is a loss for good, and nothing is sent twice
        later = eyes.links()[-1]
        assert gained("residual_losses", bare, later) == gained("corruption_losses", bare, later) > 0
        assert later.retransmissions == bare.retransmissions

        steer("per", 0)
        steer("slacp", True)
        drive.until(lambda: eyes.links()[-1].scheme == "slacp" and eyes.links()[-1].established)
        before = eyes.received()
        drive.until(lambda: eyes.received() > before + 200_000)

        steer("paused", True)
        # what TCP has buffered still goes out
        drive.until(lambda: [link.packets for link in eyes.links()[-5:]].count(eyes.links()[-1].packets) == 5)
        still = eyes.received()
        steer("paused", False)
        drive.until(lambda: eyes.received() > still + 100_000)

        summary = drive.end()
        names = ["per", "slacp", "per", "slacp", "paused", "paused"]
        assert (summary.changes, summary.intact, summary.finished, summary.scheme) == (len(names), True, False, "slacp")
        rows = read_records(folder_of(summary), "control")
        assert [(row["name"], json.loads(row["value"])) for row in rows] == list(
            zip(names, [20, False, 0, True, True, False], strict=True)
        )
        assert eyes.closed
        assert drive.outcomes == [(summary, None)]
        # counters never run backwards, whatever was switched
        for side in SIDES:
            for name in ("packets", "frames", "retransmissions", "residual_losses", "corruption_losses"):
                counts = [getattr(link, name) for link in eyes.links(side)]
                assert counts == sorted(counts), name
        # what other sinks got is what the run's folder has
        assert len(read_records(folder_of(summary), "link")) == len(eyes.links("up")) + len(eyes.links("down"))


@needs_vusrp
def test_the_air_is_reshaped_and_looked_at(tmp_path: Path) -> None:
    with Drive(
        scenario(tier="vusrp", workloads=ENDLESS, channel={"rate_bps": 2_000_000, "delay_ms": 15, "snr_db": 25}),
        tmp_path,
    ) as drive:
        eyes = drive.eyes

        def snr() -> float:
            heard = [
                r.snr_db for r in eyes.records if isinstance(r, PhyRecord) and r.link == "up" and r.snr_db is not None
            ]
            return heard[-1] if heard else 0.0

        drive.until(lambda: eyes.received() > 100_000 and abs(snr() - 25) < 2)
        assert eyes.views == []
        eyes.watched = True
        drive.until(lambda: {view.link for view in eyes.views if view.symbols} == {"up", "down"})
        view = next(view for view in reversed(eyes.views) if view.link == "up")
        assert (view.modulation, view.rate_sps, len(view.spectrum_db)) == ("qpsk", 2.5e6, 512)
        # QPSK's symbols lie about its four points
        assert all(abs(abs(i) - 0.707) < 0.4 and abs(abs(q) - 0.707) < 0.4 for i, q in view.symbols)
        eyes.watched = False

        drive.steering.set("snr_db", 12)
        drive.until(lambda: abs(snr() - 12) < 2)
        drive.grows(eyes.corrupted, 5)
        seen = len(eyes.views)
        drive.steering.set("snr_db", 30)
        drive.until(lambda: abs(snr() - 30) < 2)
        # nobody looks any more
        assert len(eyes.views) == seen
        assert drive.end().intact
