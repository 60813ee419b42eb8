"""Two stations on one carrier of a virtual air, in real time."""

from pathlib import Path

from telemetry.parquet import read_records
from testbed.paths import root
from testbed.running import run_once
from testbed.scenario.file import load
from tests.harness.live_runs import folder_of
from tests.harness.radios import needs_vusrp
from tests.hosts.harness import needs_network

pytestmark = [*needs_network, needs_vusrp]


def test_two_stations_share_a_carrier(tmp_path: Path) -> None:
    """A loaded machine may be late, so the goodput is not asked for."""
    settings = ('workloads=[{"kind": "bulk", "direction": "up", "duration_s": 3}]', "seed=5")
    summary = run_once(load(root() / "scenarios" / "one-carrier.yaml", settings), tmp_path, lambda progress: None)
    assert summary.finished
    assert summary.intact
    assert summary.flows[0].bytes > 100_000
    for side in ("up", "down"):
        access = summary.access[side]
        assert 0 < access.deferrals <= access.bursts
        assert 0.0 < access.airtime_share < 1.0
        assert access.collisions is not None
        assert access.collisions_heard < access.bursts / 2
        assert access.collisions < access.bursts / 2
    # several frames go with an access
    assert summary.link["up"].frames > 1.5 * summary.access["up"].bursts
    assert {record["link"] for record in read_records(folder_of(summary), "access")} == {"up", "down"}
