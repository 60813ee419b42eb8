"""Grafana's boards on a real run: what a finished run has recorded fills every panel."""

from pathlib import Path

import pytest

from telemetry.parquet import read_records
from telemetry.records import RECORD_TYPES
from tests.dashboard.grafana import BOARDS, SECOND, database, keep
from tests.hosts.harness import needs_network
from tests.testbed.live import folder_of, run_all
from tests.testbed.samples import scenario

pytestmark = [*needs_network, pytest.mark.patient]

#: filled where there is a radio
RADIO = {"SNR", "EVM", "Carrier frequency offset", "Frames lost"}


def test_a_finished_run_fills_every_panel_but_the_radios(tmp_path: Path) -> None:
    work = [{"kind": "bulk", "duration_s": 2.5, "drain_s": 1}]
    [summary] = run_all([scenario(channel={"per": 0.1}, workloads=work)], tmp_path / "runs")
    folder = folder_of(summary)
    records = (kind(**row) for kind in RECORD_TYPES for row in read_records(folder, kind.measurement))
    empty = set()
    with database(tmp_path / "influxdb") as influx:
        run = keep(influx, folder.name, 1_790_000_000 * SECOND, records, tmp_path / "spool")
        for board in BOARDS.values():
            for panel in board["panels"]:
                for target in panel["targets"]:
                    found = run.rows(target["query"], board, panel["interval"])
                    if not found or any(None in values for _, values in found):
                        empty.add(panel["title"])
    assert empty == RADIO
