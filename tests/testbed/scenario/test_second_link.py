"""The second link of a scenario: what is refused beside it, its plan, and its changes."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.scenario.file import load, plan_of
from testbed.scenario.resolver import resolve
from testbed.scenario.settings import ScenarioError
from tests.harness.live_runs import Capture, refused

TWO = Path(__file__).parents[3] / "scenarios/two-links.yaml"
MPTCP = "{kind: mptcp, bytes: 1000}"


def test_the_second_link_has_a_plan_of_its_own() -> None:
    change = "changes=[{at_s: 2, set: {second_link.channel.per: 1, second_link.link.scheme: arq}}]"
    plan = resolve(load(TWO, [change]))
    second = plan.second
    assert second is not None
    assert second.second is None
    assert [each.scheme.name for each in (plan, second)] == ["slacp", "none"]
    assert [each.stations["up"].hop.rate_bps for each in (plan, second)] == [4_000_000, 1_000_000]
    # losses are drawn independently
    assert plan.seed != second.seed
    [planned] = plan.changes
    after = planned.plan.second
    assert after is not None
    assert [after.scheme.name, after.stations["up"].hop.errors.options.per] == ["arq", 1]
    assert planned.plan.stations == plan.stations
    # what the processes of stations get says the same
    assert plan_of(second.values).stations == second.stations


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (["tier=model"], "workloads.0.kind mptcp needs Linux, and tier model has none"),
        (["tier=usrp"], "second_link: tier usrp has one link"),
        (["tcp=user:sack"], "tcp 'user:sack' has no MPTCP: take another profile of the kernel's TCP"),
        (["tcp_h2=reference"], "tcp_h2 'reference' has no MPTCP"),
        (["workloads=[{kind: bulk, bytes: 1}]"], "second_link: only workloads of kind mptcp use it"),
        (
            [f"workloads=[{MPTCP}, {{kind: mptcp, bytes: 1, direction: down}}]"],
            "second_link: the paths are set up for one sending host",
        ),
        (["link.scheme=snoop"], "second_link: link has packet filters (snoop)"),
        (["second_link.link.eln=ends"], "second_link: second_link.link has packet filters (eln-ends)"),
        (["second_link.link.scheme=split"], "second_link: second_link.link.scheme split splits connections"),
        (["second_link=null", "link.scheme=split"], "link.scheme split splits connections, which ends MPTCP"),
        (["capture=true"], "second_link: capture keeps the frames of one link only"),
        (["second_link.channel=null"], "second_link.channel: must be a mapping"),
        (["second_link.channel.mac_buffer_bytes=9"], "second_link: channel.mac_buffer_bytes is 9: must hold a frame"),
        (["second_link.channel.pre=0.1"], "second_link.channel.pre: unknown key (did you mean per?)"),
        (["changes=[{at_s: 1, set: {second_link.mtu: 9}}]"], "second_link.mtu cannot change while a run goes on"),
        (
            ["second_link=null", "changes=[{at_s: 1, set: {second_link.channel.per: 1}}]"],
            "second_link.channel.rate_bps",
        ),
    ],
)
def test_refusals(settings: list[str], complaint: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(TWO, settings)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_refusals_end_with_status_2(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "mine.yaml"
    values: dict[str, Any] = {**yaml.safe_load(TWO.read_text()), "tier": "usrp"}
    path.write_text(yaml.safe_dump(values))
    assert "second_link: tier usrp has one link" in refused(capsys, "run", str(path), "--out", str(tmp_path))
    assert "has one link" in refused(capsys, "host", "--as", "h1", "--peer", "10.0.0.1", "--scenario", str(TWO))
