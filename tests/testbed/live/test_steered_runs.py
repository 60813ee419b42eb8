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

pytestmark = [*needs_network, pytest.mark.light]


def gained(counter: str, before: LinkRecord, after: LinkRecord) -> int:
    return int(getattr(after, counter) - getattr(before, counter))


def test_a_run_becomes_what_a_person_wants(tmp_path: Path) -> None:
    with Drive(scenario(workloads=ENDLESS, channel={"rate_bps": 4_000_000, "delay_ms": 10}), tmp_path) as drive:
        sink, steer = drive.sink, drive.steering.set
        drive.until(lambda: sink.received() > 200_000)
        assert sink.corrupted() == 0

        steer("per", 20)
        drive.until(lambda: sink.corrupted() > 20)
        assert sink.links()[-1].retransmissions > 0

        steer("slacp", False)
        drive.until(lambda: sink.links()[-1].scheme == "none")
        drive.grows(sink.corrupted, 5)
        bare = sink.links()[-1]
        drive.grows(sink.corrupted, 5)
        # nothing repairs now: every loss is a loss for good, and nothing is sent twice
        later = sink.links()[-1]
        assert gained("residual_losses", bare, later) == gained("corruption_losses", bare, later) > 0
        assert later.retransmissions == bare.retransmissions

        steer("per", 0)
        steer("slacp", True)
        drive.until(lambda: sink.links()[-1].scheme == "slacp" and sink.links()[-1].established)
        before = sink.received()
        drive.until(lambda: sink.received() > before + 200_000)

        steer("paused", True)
        # what TCP has buffered still goes out
        drive.until(lambda: [link.packets for link in sink.links()[-5:]].count(sink.links()[-1].packets) == 5)
        still = sink.received()
        steer("paused", False)
        drive.until(lambda: sink.received() > still + 100_000)

        summary = drive.end()
        names = ["per", "slacp", "per", "slacp", "paused", "paused"]
        assert (summary.changes, summary.intact, summary.finished, summary.scheme) == (len(names), True, False, "slacp")
        rows = read_records(folder_of(summary), "control")
        assert [(row["name"], json.loads(row["value"])) for row in rows] == list(
            zip(names, [20, False, 0, True, True, False], strict=True)
        )
        assert sink.closed
        assert drive.outcomes == [(summary, None)]
        # counters never run backwards, whatever was switched
        for side in SIDES:
            for name in ("packets", "frames", "retransmissions", "residual_losses", "corruption_losses"):
                counts = [getattr(link, name) for link in sink.links(side)]
                assert counts == sorted(counts), name
        # what other sinks got is what the run's folder has
        assert len(read_records(folder_of(summary), "link")) == len(sink.links("up")) + len(sink.links("down"))


@needs_vusrp
def test_air_changes_during_a_run_and_views_are_sent(tmp_path: Path) -> None:
    channel = {"rate_bps": 2_000_000, "delay_ms": 15, "snr_db": 25}
    with Drive(scenario(tier="vusrp", workloads=ENDLESS, channel=channel), tmp_path) as drive:
        sink = drive.sink

        def snr() -> float:
            heard = [r.snr_db for r in sink.records if isinstance(r, PhyRecord) and r.link == "up"]
            return next((snr_db for snr_db in reversed(heard) if snr_db is not None), 0.0)

        drive.until(lambda: sink.received() > 100_000 and abs(snr() - 25) < 2)
        assert sink.views == []
        sink.watched = True
        drive.until(lambda: {view.link for view in sink.views if view.symbols} == {"up", "down"})
        view = next(view for view in reversed(sink.views) if view.link == "up")
        assert (view.modulation, view.rate_sps, len(view.spectrum_db)) == ("qpsk", 2.5e6, 512)
        # QPSK's symbols lie about its four points
        assert all(abs(abs(i) - 0.707) < 0.4 and abs(abs(q) - 0.707) < 0.4 for i, q in view.symbols)
        sink.watched = False

        drive.steering.set("snr_db", 12)
        drive.until(lambda: abs(snr() - 12) < 2)
        drive.grows(sink.corrupted, 5)
        seen = len(sink.views)
        drive.steering.set("snr_db", 30)
        drive.until(lambda: abs(snr() - 30) < 2)
        # nobody looks any more
        assert len(sink.views) == seen
        assert drive.end().intact
