"""How the demo is run on machines large, small and busy."""

import os
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest

from testbed.cli.machine import capacity, processors
from testbed.cli.machine.capacity import DemoPlan, choose, side_by_side
from testbed.cli.machine.processors import Quota, Room
from testbed.paths import root
from testbed.scenario.file import load
from testbed.scenario.schema import Scenario

WHOLE, HALF, QUARTER = capacity.SHARES
COSTS = {WHOLE: 1.5, HALF: 1.0, QUARTER: 0.75}


@pytest.mark.parametrize(
    ("room", "plan"),
    [
        # side by side: what is free decides, to the last tenth
        (Room(free=3.0, claimable=3.8), DemoPlan(2, WHOLE)),
        (Room(free=2.9, claimable=3.8), DemoPlan(1, WHOLE)),
        # two cores, idle; one of them kept busy; both: a station takes its own
        (Room(free=2.0, claimable=1.9), DemoPlan(1, WHOLE)),
        (Room(free=1.0, claimable=1.9), DemoPlan(1, WHOLE)),
        (Room(free=0.0, claimable=1.9), DemoPlan(1, WHOLE)),
        # but not where real time is forbidden
        (Room(free=1.4, claimable=1.4), DemoPlan(1, HALF)),
        (Room(free=0.9, claimable=0.9), DemoPlan(1, QUARTER)),
        # one core
        (Room(free=1.0, claimable=0.95), DemoPlan(1, HALF)),
        (Room(free=0.9, claimable=0.95), DemoPlan(1, QUARTER)),
        (Room(free=0.0, claimable=0.95), DemoPlan(1, QUARTER)),
        # nothing fits: the least, and that is known
        (Room(free=0.5, claimable=0.5), DemoPlan(1, QUARTER, fits=False)),
    ],
)
def test_the_plan_is_the_best_that_fits(room: Room, plan: DemoPlan) -> None:
    assert choose(room, COSTS, links=2) == plan
    # a fixed rate is kept
    assert choose(room, {WHOLE: COSTS[WHOLE]}, links=2).share == WHOLE


@pytest.mark.parametrize(
    ("free", "plan"),
    [
        (4.0, DemoPlan(2, WHOLE)),
        (3.0, DemoPlan(2, HALF)),
        (2.3, DemoPlan(2, QUARTER)),
        (1.0, DemoPlan(2, QUARTER, fits=False)),
    ],
)
def test_watched_links_run_side_by_side_at_the_largest_share_that_fits(free: float, plan: DemoPlan) -> None:
    # beside the page; cores that only one real-time process could claim are no room for two links
    assert side_by_side(Room(free, 3.8).beside(0.75), COSTS, links=2) == plan


def test_every_plan_but_the_wanted_one_is_explained() -> None:
    def said(free: float, claimable: float) -> str:
        room = Room(free, claimable)
        return capacity.explain(choose(room, COSTS, 2), room, COSTS, 2)

    assert said(3.0, 3.8) == ""
    assert said(1.04, 1.9) == "One run after the other: 2 links at once take 3.0 cores, and 1.0 are free."
    assert said(0.9, 0.95) == (
        "One run after the other at 1/4 of its rates: a link takes 1.5 cores, and 0.9 are to be had."
    )
    assert said(0.5, 0.5) == (
        "One run after the other at 1/4 of its rates: a link takes 1.5 cores, and 0.5 are to be had. "
        "Even the 0.8 that it takes now are too much: it may be late."
    )


def demo(*settings: str, tier: str = "vusrp") -> Scenario:
    return load(root() / "scenarios" / "fading-link.yaml", settings, tier=tier)


def test_link_cost_grows_with_sample_rate_and_slowness() -> None:
    costs = capacity.link_costs(demo(), 1.0)
    assert list(costs) == [WHOLE, HALF, QUARTER]
    assert costs[WHOLE] > costs[HALF] > costs[QUARTER] > costs[WHOLE] / 4
    assert capacity.link_costs(demo(), 2.0)[HALF] == pytest.approx(2 * costs[HALF])
    assert capacity.link_costs(demo("radio.rate_sps=1.25e6"), 1.0)[WHOLE] == pytest.approx(costs[HALF])
    # without radios it is the bit rate, and little
    fast = capacity.link_costs(demo("channel.down={rate_bps: 4e6}", tier="emulated"), 1.0)
    assert capacity.link_costs(demo(tier="emulated"), 1.0)[WHOLE] < fast[WHOLE] < costs[HALF]


def test_two_idle_cores_carry_two_links_and_one_core_one() -> None:
    costs = capacity.link_costs(demo(), 1.0)
    assert choose(Room(2.0, 1.9), costs, 2) == DemoPlan(2, WHOLE)
    assert choose(Room(1.0, 0.95), costs, 2) == DemoPlan(1, WHOLE)
    assert choose(Room(0.5, 0.5), costs, 2).share < 1


@pytest.mark.parametrize("share", [HALF, QUARTER])
def test_lower_share_changes_rates_and_description(share: Fraction) -> None:
    wanted = demo("channel.snr_db=18")
    lower = demo("channel.snr_db=18", *capacity.lowered(wanted, share))
    assert lower.channel.rate_bps == wanted.channel.rate_bps * share
    assert lower.radio.rate_sps == wanted.radio.rate_sps * share
    assert lower.description == f"{wanted.description}, at {share} of these rates"
    same = {
        "description": wanted.description,
        "channel": lower.channel.model_copy(update={"rate_bps": wanted.channel.rate_bps}),
        "radio": lower.radio.model_copy(update={"rate_sps": wanted.radio.rate_sps}),
    }
    assert lower.model_copy(update=same) == wanted
    assert capacity.lowered(wanted, WHOLE) == ()


def test_slowness_is_at_least_one(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = iter([0.009, 0.0048, *[0.006] * 13, *[1e-6] * 15])
    monkeypatch.setattr(processors, "_work", lambda samples: next(tries))
    assert processors.slowness() == pytest.approx(3.0)
    assert processors.slowness() == 1.0


STAT = """\
cpu  100 0 100 4000 400 0 0 50 0 0
cpu0 50 0 50 1000 100 0 0 50 0 0
cpu1 50 0 50 3000 300 0 0 0 0 0
cpu12 0 0 0 70 7 0 0 0 0 0
intr 12345
"""


def test_idle_time_counts_allowed_processors_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sysconf", {"SC_CLK_TCK": 100}.__getitem__)
    assert processors.idle_s(STAT, {0, 1}) == 44
    assert processors.idle_s(STAT, {1}) == 33
    assert processors.idle_s(STAT, {12}) == 0.77


def group(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n")
    return folder


def test_quotas_of_cgroup_v2_hold_from_the_top_down(tmp_path: Path) -> None:
    group(tmp_path)
    outer = group(tmp_path / "a", cpu__max="150000 100000", cpu__stat="usage_usec 2500000\nuser_usec 1")
    inner = group(tmp_path / "a" / "b", cpu__max="max 100000", cpu__stat="usage_usec 1")
    own = group(inner / "c", cpu__max="50000 100000", cpu__stat="usage_usec 500000")
    found = list(processors.quotas("0::/a/b/c\n", tmp_path))
    assert [(quota.folder, quota.limit, quota.used_s()) for quota in found] == [(own, 0.5, 0.5), (outer, 1.5, 2.5)]


def test_quotas_of_cgroup_v1_are_those_of_its_controller_cpu(tmp_path: Path) -> None:
    limited = {"cpu__cfs_quota_us": "200000", "cpu__cfs_period_us": "100000", "cpuacct__usage": "3000000000"}
    group(tmp_path / "cpu,cpuacct", **{**limited, "cpu__cfs_quota_us": "-1"})
    own = group(tmp_path / "cpu,cpuacct" / "x", **limited)
    group(tmp_path / "cpuset" / "x", **limited)
    found = list(processors.quotas("4:cpuset:/x\n2:cpu,cpuacct:/x\n0::/x\n", tmp_path))
    assert [(quota.folder, quota.limit, quota.used_s()) for quota in found] == [(own, 2.0, 3.0)]


def test_cgroup_path_from_outside_container_leads_to_its_top(tmp_path: Path) -> None:
    top = group(tmp_path, cpu__max="100000 100000", cpu__stat="usage_usec 0")
    assert [quota.folder for quota in processors.quotas("0::/docker/0123/x\n", tmp_path)] == [top]


def test_a_look_at_this_machine() -> None:
    cores = len(os.sched_getaffinity(0))
    before = os.sched_getscheduler(0)
    room = processors.look(0.1)
    assert 0 <= room.free <= cores
    assert 0 <= room.claimable <= cores
    # whether real time is allowed was found out without asking for it ourselves
    assert os.sched_getscheduler(0) == before


def test_quota_is_reduced_by_use_of_its_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Spent(Quota):
        def used_s(self) -> float:
            return next(readings)

    readings = iter([7.0, 7.3])
    monkeypatch.setattr(processors, "quotas", lambda membership: [Spent(tmp_path, 0.5)])
    clock = SimpleNamespace(monotonic=iter([100.0, 101.0]).__next__, sleep=lambda seconds: None)
    monkeypatch.setattr(processors, "time", clock)
    monkeypatch.setattr(processors, "_real_time_allowed", lambda: True)
    room = processors.look()
    assert room.free <= 0.2
    assert room.claimable == pytest.approx(0.2)
