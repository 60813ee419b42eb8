"""What the demo says and how it ends, whatever the machine does; the runs are made up."""

import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from testbed import running
from testbed.cli import app
from testbed.cli.demo import plan_for
from testbed.cli.machine import processors
from testbed.cli.machine.capacity import DemoPlan
from testbed.cli.machine.processors import Room
from testbed.cli.options import DEMO_SCENARIOS
from testbed.results.summary import Summary
from testbed.scenario.file import load
from testbed.scenario.schema import Scenario
from tests.harness.live_runs import Capture
from tests.harness.scenarios import summary

IDLE = Room(free=8.0, claimable=8.0)
LATE: dict[str, Any] = {"late_events": 34, "events": 2891, "max_late_ms": 44.4, "on_time": False}


class DemoBench:
    """A demo whose runs are replaced: `results` are by scheme."""

    def __init__(self, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.out = out
        self.room = IDLE
        self.results: dict[str, dict[str, Any]] = {"none": {}, "slacp": {}}
        self.scenarios: list[Scenario] = []
        self.most_at_once = 0
        self._running = 0
        self._lock = threading.Lock()
        self._met = threading.Barrier(2)
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setattr(running, "check_tier", lambda scenario: None)
        monkeypatch.setattr(running, "run_once", self._run_once)
        monkeypatch.setattr(processors, "look", lambda: self.room)
        monkeypatch.setattr(processors, "slowness", lambda: 1.0)

    def demo(self, *args: str) -> int:
        return app.main(["demo", "--out", str(self.out), *args])

    def _run_once(self, scenario: Scenario, *_: object) -> Summary:
        with self._lock:
            self.scenarios.append(scenario)
            self._running += 1
            self.most_at_once = max(self.most_at_once, self._running)
        if self.room is IDLE:
            self._met.wait(10)
        folder = self.out / scenario.link.scheme
        folder.mkdir(parents=True)
        with self._lock:
            self._running -= 1
        return replace(summary(scheme=scenario.link.scheme, folder=str(folder)), **self.results[scenario.link.scheme])


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DemoBench:
    return DemoBench(tmp_path / "runs", monkeypatch)


@pytest.mark.slow
def test_a_demo_on_time_warns_of_nothing(bench: DemoBench, capsys: Capture) -> None:
    assert bench.demo("--allow-late") == 0
    assert bench.most_at_once == 2
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "after the other" not in shown.out


@pytest.mark.parametrize("late", [("none",), ("slacp",), ("none", "slacp")])
def test_a_late_demo_is_one_line_of_warning_and_status_0(
    late: tuple[str, ...], bench: DemoBench, capsys: Capture
) -> None:
    for scheme in late:
        bench.results[scheme] = LATE
    assert bench.demo() == 0
    shown = capsys.readouterr()
    assert "demo.png" in shown.out
    assert shown.err.count("\n") == 1
    assert shown.err.startswith("warning: this machine was late for some events: ")
    assert shown.err.count("34 of 2891") == len(late)


def test_a_corrupt_demo_shows_its_result_and_fails(bench: DemoBench, capsys: Capture) -> None:
    bench.results["slacp"] = {**LATE, "intact": False}
    assert bench.demo() == 2
    shown = capsys.readouterr()
    assert "demo.png" in shown.out
    late, corrupt = shown.err.splitlines()
    assert late.startswith("warning: ")
    assert corrupt.startswith("fadelab: ")
    assert "what arrived is not what was sent" in corrupt


def test_links_run_in_turn_with_room_for_one(bench: DemoBench, capsys: Capture) -> None:
    bench.room = Room(free=1.0, claimable=1.9)
    assert bench.demo() == 0
    assert bench.most_at_once == 1
    out = capsys.readouterr().out
    assert "One run after the other: 2 links at once take 1.1 cores, and 1.0 are free." in out
    assert {scenario.radio.rate_sps for scenario in bench.scenarios} == {2.5e6}


@pytest.mark.slow
def test_on_a_weak_machine_the_links_run_at_a_lower_rate(bench: DemoBench, capsys: Capture) -> None:
    bench.room = Room(free=0.3, claimable=0.35)
    assert bench.demo("--seconds", "4") == 0
    assert bench.most_at_once == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "One run after the other at 1/4 of its rates" in out
    assert "500.00 kbit/s, 25 ms each way, ofdm qpsk at 0.625 Msps" in out
    assert "the same 4 s without and with SLACP, tier vusrp, at 1/4 of its rates" in out
    # what a folder stores
    for scenario in bench.scenarios:
        assert (scenario.channel.rate_bps, scenario.radio.rate_sps) == (500_000, 625_000)
        assert scenario.description.endswith(", at 1/4 of these rates")


@pytest.mark.parametrize("setting", ["radio.rate_sps=5e6", "channel.up.rate_bps=1e6"])
def test_a_given_rate_is_kept(setting: str, bench: DemoBench, capsys: Capture) -> None:
    bench.room = Room(free=0.2, claimable=0.2)
    assert bench.demo("--set", setting) == 0
    assert "it may be late" in " ".join(capsys.readouterr().out.split())
    asked = load(DEMO_SCENARIOS["vusrp"], (setting,))
    for scenario in bench.scenarios:
        assert (scenario.channel, scenario.radio) == (asked.channel, asked.radio)


def test_one_pair_of_real_radios_is_never_shared(bench: DemoBench, capsys: Capture) -> None:
    bench.room = Room(free=64.0, claimable=60.0)
    assert bench.demo("--tier", "usrp", "--device", "a", "--device", "b") == 0
    assert bench.most_at_once == 1
    assert plan_for(bench.scenarios[0])[0] == DemoPlan(1, Fraction(1))
