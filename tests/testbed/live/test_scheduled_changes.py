"""Live runs whose scenario changes them while they go on."""

import json
from pathlib import Path
from typing import Any

import pytest

from telemetry.parquet import read_records
from testbed.running import run_once
from tests.harness.live_runs import folder_of, tell_lateness
from tests.harness.scenarios import scenario
from tests.hosts.harness import needs_network

pytestmark = [*needs_network, pytest.mark.light]

#: a change waits for the stations' messages, which a busy machine delays
LATE_S = 0.5


def test_a_run_follows_its_schedule(tmp_path: Path) -> None:
    changes: list[dict[str, Any]] = [
        {"at_s": 1, "set": {"channel.per": 0.2}},
        {"at_s": 2, "set": {"link.scheme": "none"}},
        {"at_s": 3, "set": {"link.scheme": "slacp", "channel.per": 0}},
        {"at_s": 4, "set": {"link.eln": "ends"}},
    ]
    run = scenario(
        channel={"rate_bps": 4_000_000, "delay_ms": 10},
        workloads=[{"kind": "bulk", "duration_s": 5}],
        changes=changes,
    )
    summary = run_once(run, tmp_path, lambda progress: None)
    tell_lateness(summary)
    assert (summary.intact, summary.finished, summary.changes) == (True, True, 0)
    folder = folder_of(summary)
    control = read_records(folder, "control")
    wanted = [(change["at_s"], key, value) for change in changes for key, value in change["set"].items()]
    assert [(row["name"], json.loads(row["value"])) for row in control] == [(key, value) for _, key, value in wanted]
    for row, (at_s, _, _) in zip(control, wanted, strict=True):
        assert at_s <= row["time_ns"] / 1e9 < at_s + LATE_S

    links = [row for row in read_records(folder, "link") if row["link"] == "up"]

    def at(time_s: float) -> dict[str, Any]:
        """What the link last told by then: a busy machine delays its reports, too."""
        return [row for row in links if row["time_ns"] <= time_s * 1e9][-1]

    made_s = {(row["name"], row["value"]): row["time_ns"] / 1e9 for row in control}
    worse, off, on, clean = (
        made_s[name, json.dumps(value)]
        for name, value in (
            ("channel.per", 0.2),
            ("link.scheme", "none"),
            ("link.scheme", "slacp"),
            ("channel.per", 0),
        )
    )
    assert at(1.0)["corruption_losses"] == 0 < at(worse + LATE_S)["corruption_losses"]
    assert [at(s)["scheme"] for s in (2.0, off + LATE_S, on + LATE_S)] == ["slacp", "none", "slacp"]
    last = links[-1]["corruption_losses"]
    assert at(clean + LATE_S)["corruption_losses"] == last > 20
