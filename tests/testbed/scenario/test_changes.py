"""Scheduled changes of a scenario: what may change, in which order, and what is refused."""

from pathlib import Path

import pytest

from testbed.scenario.file import load, plan_of
from testbed.scenario.resolver import resolve
from testbed.scenario.settings import ScenarioError

ROOT = Path(__file__).parents[3]
LOSSY = ROOT / "scenarios/lossy-link.yaml"


def test_changes_add_up_in_the_order_of_their_times() -> None:
    scenario = load(
        LOSSY,
        [
            "changes=[{at_s: 9, set: {link.scheme: none, paused: true}},"
            " {at_s: 4, set: {channel.errors.per: 0.2}}, {at_s: 4, set: {channel.up.per: 0.3}}]",
        ],
    )
    plans = resolve(scenario).changes
    assert [change.at_ns for change in plans] == [4_000_000_000, 4_000_000_000, 9_000_000_000]
    pers = [[change.plan.stations[side].hop.errors.options.per for side in ("up", "down")] for change in plans]
    assert pers == [[0.2, 0.2], [0.3, 0.2], [0.3, 0.2]]
    assert [change.plan.scheme.name for change in plans] == ["slacp", "slacp", "none"]
    assert [change.paused for change in plans] == [None, None, True]
    # what a station's process gets says the same
    assert plan_of(scenario.plain()).changes == plans


def test_paths_in_a_change_start_at_the_scenarios_folder(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces/one.parquet").write_bytes((ROOT / "scenarios/traces/fading-link-up.parquet").read_bytes())
    mine = tmp_path / "mine.yaml"
    given = "\nchanges:\n  - {at_s: 1, set: {channel.up.errors: {model: trace, path: traces/one.parquet}}}\n"
    mine.write_text(LOSSY.read_text() + given)
    [change] = resolve(load(mine)).changes
    assert change.plan.stations["up"].hop.errors.options.path == tmp_path / "traces/one.parquet"
    mine.write_text(LOSSY.read_text() + given.replace("one.parquet", "two.parquet"))
    with pytest.raises(ScenarioError, match=r"mine\.yaml: changes: channel\.up\.errors\.path: .*two\.parquet"):
        load(mine)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("{at_s: 3, set: {mtu: 900}}", r"changes\.0\.set: mtu cannot change while a run goes on: what can is paused"),
        ("{at_s: 3, set: {channel.rate_bps: 900}}", r"channel\.rate_bps cannot change"),
        ("{at_s: 3, set: {channel.per: 3}}", r"changes\.0\.set\.channel\.per: input should be less"),
        ("{at_s: 3, set: {link.scheme: osn}}", r"changes\.0\.set\.link: scheme 'osn' is unknown"),
        ("{at_s: 3, set: {link.scheme: split}}", r"changes\.0\.set: split splits connections"),
        ("{at_s: 3, set: {channel.snr_db: 3}}", r"channel\.snr_db: tier emulated has no radio"),
        ("{at_s: 3, set: {paused: 1}}", "paused is 1: must be true or false"),
        ("{at_s: -3, set: {paused: true}}", r"changes\.0\.at_s: input should be greater"),
        ("{at_s: 3, set: {}}", r"changes\.0\.set: needs 1 entry at least"),
        ("{at_s: 3}", r"changes\.0\.set: is missing"),
        (
            "{at_s: 1, set: {link.eln: ends}}, {at_s: 2, set: {link.filters: eln-ends}}",
            r"changes\.1\.set\.link: .*twice",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_the_run(change: str, complaint: str) -> None:
    with pytest.raises(ScenarioError, match=complaint):
        load(LOSSY, [f"changes=[{change}]"])


def test_a_scenario_that_splits_connections_keeps_its_scheme() -> None:
    changes = "changes=[{at_s: 3, set: {link.scheme: none}}]"
    with pytest.raises(ScenarioError, match=r"changes\.0\.set: split splits connections"):
        load(LOSSY, ["link.scheme=split", changes])
