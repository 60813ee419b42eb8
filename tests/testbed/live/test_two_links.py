"""MPTCP over two links, live."""

from pathlib import Path

import pytest

from telemetry.parquet import read_records
from testbed.results.show import paths, warnings
from testbed.running import run_once
from testbed.scenario.file import load
from tests.harness.live_runs import folder_of, tell_lateness
from tests.hosts.harness import needs_mptcp, needs_network

TWO = Path(__file__).parents[3] / "scenarios/two-links.yaml"


pytestmark = [
    *needs_network,
    pytest.mark.slow,
    pytest.mark.light,
    needs_mptcp,
]


def test_a_flow_takes_both_links_and_outlives_the_first(tmp_path: Path) -> None:
    cut_s, nbytes = 2, 1_500_000
    run = load(
        TWO,
        [
            f"workloads=[{{kind: mptcp, bytes: {nbytes}}}]",
            *(f"{place}rate_bps=2e6" for place in ("channel.", "second_link.channel.")),
            *(f"{place}delay_ms=10" for place in ("channel.", "second_link.channel.")),
            f"changes=[{{at_s: {cut_s}, set: {{channel.per: 1}}}}]",
        ],
    )
    summary = run_once(run, tmp_path, lambda progress: None)
    tell_lateness(summary)
    [flow] = summary.flows
    # the receiver compares each octet with the one that was sent
    assert (summary.finished, summary.intact, flow.bytes, flow.fallback) == (True, True, nbytes, None)
    first, second = flow.paths
    assert [first.scheme, second.scheme] == ["slacp", "none"]
    assert first.bytes > 50_000
    assert second.bytes > 50_000
    # what a path has acknowledged by itself: what arrived on the first as it was cut, MPTCP acknowledges on the second
    assert first.bytes_sent + second.bytes >= nbytes
    assert first.share is not None
    assert first.share == pytest.approx(first.bytes / (first.bytes + second.bytes))
    assert paths([summary]) is not None
    assert not [line for line in warnings([summary]) if "path" in line]

    folder = folder_of(summary)
    [(control_s, name)] = [(row["time_ns"] / 1e9, row["name"]) for row in read_records(folder, "control")]
    assert (name, control_s >= cut_s) == ("channel.per", True)
    rows = read_records(folder, "tcp")
    assert {row["flow"] for row in rows} == {"mptcp/1", "mptcp/2"}
    acked = {
        flow: [(row["time_ns"] / 1e9, row["bytes_acked"]) for row in rows if row["flow"] == flow]
        for flow in ("mptcp/1", "mptcp/2")
    }
    # what was under way at the cut is lost, or arrives within a round trip
    late = {nbytes for time_s, nbytes in acked["mptcp/1"] if time_s > control_s + 1}
    assert len(late) == 1
    before = max(nbytes for time_s, nbytes in acked["mptcp/2"] if time_s < control_s + 1)
    assert acked["mptcp/2"][-1][1] > before + 100_000
    # each link's stations have counted their own frames
    for prefix, sides in (("", summary.link), ("second-", summary.second_link)):
        assert sides["up"].frames > 100
        assert read_records(folder, f"{prefix}link")
    assert summary.second_link["up"].corruption_losses == 0 < summary.link["up"].corruption_losses
