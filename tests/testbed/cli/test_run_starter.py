"""The run starter: its offers, its refusals, and runs that it starts and ends."""

import os
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dashboard.control import ControlError, Outcome, RunRequest, Scene
from flowgraphs.air import LIBRARY
from linklayer.schemes import SCHEMES
from testbed.cli.dashboard.run_starter import LiveRuns, LiveRunStarter
from testbed.cli.machine.processors import Room
from testbed.cli.options import DEMO_SCENARIOS, DEMO_TIER
from testbed.observers import MakeHooks, no_hooks
from testbed.results.store import RunFolder
from testbed.results.summary import Summary
from testbed.run_hooks import RunHooks
from testbed.scenario.file import load
from testbed.scenario.schema import Scenario
from testbed.steering import Steering
from tests.harness.live_runs import left_behind
from tests.harness.scenarios import FLOW, scenario, summary
from tests.harness.steered import RecordingSink
from tests.harness.waiting import PATIENCE_S, wait_for
from tests.hosts.harness import needs_network

SCENARIOS = Path(__file__).parents[3] / "scenarios"
REQUEST = RunRequest("lossy-link", "emulated", ("none", "slacp"), 600, 3)


class FakeRuns:
    """Stands for `run_once`: a run gets ready, begins and is over; that of the scheme `failing` fails before."""

    def __init__(self) -> None:
        self.room = Room(9.0, 9.0)
        self.failing = ""
        self.scenarios: list[Scenario] = []
        self.begun: list[int] = []
        self._lock = threading.Lock()
        self._ready = 0

    def run(self, scenario: Scenario, runs: Path, show: object, make_hooks: MakeHooks) -> Summary:
        if scenario.link.scheme == self.failing:
            raise RuntimeError("the air is out")
        hooks = make_hooks(scenario, RunFolder(runs / scenario.link.scheme))
        with self._lock:
            self.scenarios.append(scenario)
            self._ready += 1
        hooks.ready()
        with self._lock:
            self.begun.append(self._ready)
        return summary()


class HookRecorder:
    """Hooks that record every call of each run."""

    def __init__(self) -> None:
        self.scenarios: list[Scenario] = []
        self.sinks: list[RecordingSink] = []
        self.outcomes: list[tuple[Summary | None, str | None]] = []

    def make_hooks(self, scenario: Scenario, folder: RunFolder) -> RunHooks:
        self.scenarios.append(scenario)
        self.sinks.append(RecordingSink())
        return RunHooks([self.sinks[-1]], None, Steering(scenario), lambda *outcome: self.outcomes.append(outcome))


@pytest.fixture
def recorder() -> HookRecorder:
    return HookRecorder()


@pytest.fixture
def complaints() -> list[str]:
    return []


@pytest.fixture
def starter(tmp_path: Path, recorder: HookRecorder, complaints: list[str]) -> Iterator[LiveRunStarter]:
    with closing(LiveRunStarter(SCENARIOS, tmp_path, recorder.make_hooks, complaints.append)) as opened:
        yield opened


def test_starter_offers_every_scenario_with_its_own_tier_first(starter: LiveRunStarter) -> None:
    offers = {offer.name: offer for offer in starter.offers()}
    assert set(offers) == {path.stem for path in SCENARIOS.glob("*.yaml")}
    assert offers["lossy-link"].tiers[0] == "emulated"
    if LIBRARY.exists():
        assert offers["fading-link"].tiers == ("vusrp", "emulated")
    assert offers["lossy-link"].schemes == tuple(SCHEMES)
    assert offers["fading-link"].description


def test_unreadable_scenario_is_not_offered(tmp_path: Path, complaints: list[str]) -> None:
    (tmp_path / "good.yaml").write_text((SCENARIOS / "lossy-link.yaml").read_text())
    (tmp_path / "bad.yaml").write_text("name: [")
    starter = LiveRunStarter(tmp_path, tmp_path / "runs", no_hooks, complaints.append)
    assert [offer.name for offer in starter.offers()] == ["good"]
    assert [str(tmp_path / "bad.yaml") in line for line in complaints] == [True]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"scenario": "../lossy-link"}, r"no scenario of the name '\.\./lossy-link'"),
        ({"scenario": "nothing"}, "no scenario of the name 'nothing'"),
        ({"tier": "usrp"}, "tier is 'usrp': must be one of vusrp, emulated"),
        ({"seconds": 1.0}, "1 seconds: must be 2 to 86400"),
        ({"seconds": float("nan")}, "nan seconds: must be"),
        ({"schemes": ("magic",)}, "scheme 'magic' is unknown"),
        ({"seed": -1}, "seed"),
    ],
)
def test_what_cannot_be_started_is_refused(
    starter: LiveRunStarter, recorder: HookRecorder, tmp_path: Path, change: dict[str, Any], complaint: str
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: without, the refusal says that and nothing else")
    with pytest.raises(ControlError, match=complaint):
        starter.start(replace(REQUEST, **change))
    assert (recorder.scenarios, list(tmp_path.iterdir())) == ([], [])


@pytest.mark.light
@pytest.mark.net
@needs_network[1]
def test_runs_start_side_by_side_and_end_with_the_starter(
    tmp_path: Path, recorder: HookRecorder, complaints: list[str]
) -> None:
    with closing(LiveRunStarter(SCENARIOS, tmp_path, recorder.make_hooks, complaints.append)) as starter:
        starter.start(REQUEST, ["channel.rate_bps=1e6"])
        wait_for(lambda: {link.scheme for sink in recorder.sinks for link in sink.links()} == {"none", "slacp"})
        assert {s.channel.rate_bps for s in recorder.scenarios} == {1_000_000}
        assert starter.why_not() == "a run is going on: stop it first"
        with pytest.raises(ControlError, match="nothing can be started: a run is going on"):
            starter.start(REQUEST)
    assert complaints == []
    started = {(s.seed, s.link.scheme, s.make_workloads()[0].ends_s) for s in recorder.scenarios}
    assert started == {(3, "none", 600), (3, "slacp", 600)}
    assert [(summary is not None, error) for summary, error in recorder.outcomes] == [(True, None)] * 2
    assert len(list(tmp_path.glob("*/summary.json"))) == 2
    assert left_behind(os.getpid()) == []
    with pytest.raises(ControlError, match="the dashboard is closing"):
        starter.start(REQUEST)


@pytest.mark.light
@pytest.mark.net
@needs_network[1]
def test_a_run_that_fails_is_a_complaint(
    starter: LiveRunStarter, recorder: HookRecorder, complaints: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object) -> None:
        raise RuntimeError("the air\nis out")

    monkeypatch.setattr("testbed.running.run_live", broken)
    starter.start(replace(REQUEST, schemes=("slacp",)))
    wait_for(lambda: complaints)
    assert (complaints, recorder.outcomes) == (["the air is out"], [(None, "the air is out")])
    wait_for(lambda: starter.why_not() == "")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRuns:
    runs = FakeRuns()
    place = "testbed.cli.dashboard.run_starter"
    for name, replacement in (("run_once", runs.run), ("check_machine", bool), ("check_tier", lambda scenario: None)):
        monkeypatch.setattr(f"{place}.{name}", replacement)
    monkeypatch.setattr(f"{place}.processors.look", lambda: runs.room)
    monkeypatch.setattr(f"{place}.processors.slowness", lambda: 1.0)
    return runs


def test_runs_of_a_request_begin_when_all_are_ready(starter: LiveRunStarter, fake: FakeRuns) -> None:
    starter.start(REQUEST)
    wait_for(lambda: len(fake.begun) == 2)
    # how many were ready when each began
    assert fake.begun == [2, 2]


def test_run_that_fails_before_its_start_keeps_no_other_waiting(
    starter: LiveRunStarter, fake: FakeRuns, complaints: list[str]
) -> None:
    fake.failing = "none"
    starter.start(REQUEST)
    wait_for(lambda: fake.begun)
    assert (fake.begun, complaints) == ([1], ["the air is out"])


def test_runs_of_a_scene_differ_in_their_settings_and_have_one_rate(starter: LiveRunStarter, fake: FakeRuns) -> None:
    fake.room = Room(0.2, 0.2)
    runs = (("link.scheme=none", "tcp=reno"), ("link.scheme=slacp", "tcp=cubic"))
    started = starter.start_scene(Scene("lossy-link", "emulated", 5.0, runs))
    assert started.wait(PATIENCE_S)
    assert {(made.link.scheme, made.tcp) for made in fake.scenarios} == {("none", "reno"), ("slacp", "cubic")}
    [rate] = {made.channel.rate_bps for made in fake.scenarios}
    assert rate <= load(SCENARIOS / "lossy-link.yaml").channel.rate_bps
    assert [outcome.summary for outcome in started.outcomes()] == [summary().plain()] * 2


@pytest.mark.parametrize(("free", "share"), [(9.0, 1.0), (1.8, 0.5), (0.2, 0.25)])
def test_demo_is_two_runs_of_one_channel_at_rates_that_the_machine_carries(
    starter: LiveRunStarter, fake: FakeRuns, complaints: list[str], free: float, share: float
) -> None:
    fake.room = Room(free, free)
    starter.start_demo()
    wait_for(lambda: len(fake.begun) == 2)
    assert {made.link.scheme for made in fake.scenarios} == {"none", "slacp"}
    asked = load(DEMO_SCENARIOS[DEMO_TIER], tier=DEMO_TIER)
    for made in fake.scenarios:
        assert (made.seed, made.channel.fading) == (asked.seed, asked.channel.fading)
        assert made.radio.rate_sps == share * asked.radio.rate_sps
        assert made.channel.rate_bps == share * asked.channel.rate_bps
    assert [f"the demo runs at {1 / share:g}".replace("at ", "at 1/") in line for line in complaints] == [True] * (
        share < 1
    )


def test_corrupt_run_is_complained_about(
    starter: LiveRunStarter, complaints: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    corrupt = summary(intact=False, flows=(replace(FLOW, intact=False),))
    monkeypatch.setattr("testbed.cli.dashboard.run_starter.run_once", lambda *args: corrupt)
    started = LiveRuns([scenario()], starter._run)
    started.begin()
    assert started.wait(PATIENCE_S)
    [line] = complaints
    assert started.outcomes() == (Outcome(None, line),)
    assert "scenario sample, flow bulk: what arrived is not what was sent" in line


def test_runs_that_have_not_begun_have_not_ended() -> None:
    """A page asks between the two, since a run's first steps keep the next one's thread from starting."""
    runs = LiveRuns(
        [scenario(), scenario()], lambda started, wanted, place: started.ended(place, Outcome(None, "over"))
    )
    assert not runs.wait(0)
    runs.begin()
    assert runs.wait(PATIENCE_S)
    assert [outcome.error for outcome in runs.outcomes()] == ["over", "over"]
