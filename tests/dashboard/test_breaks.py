"""Breaks: what they change, that they mend themselves, and what is refused."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from dashboard import breaks
from dashboard.breaks import BREAKS, Break, Breaker
from dashboard.control import Control, ControlError, Value, require
from tests.harness.breaks import held_breaks
from tests.harness.dashboard_runs import HERE, Stage
from tests.harness.waiting import wait_for

__all__ = ["held_breaks"]

NAMES = [each.name for each in BREAKS]


class Bench:
    """The controls of a run, with what was set."""

    def __init__(self, *, snr_db: float = 15.0, per: float = 0.0, errors: str = "none", no_air: str = "") -> None:
        self.controls = {
            "snr_db": Control("snr_db", "SNR", "range", snr_db, "dB", 0, 40, 0.5, why_not=no_air),
            "per": Control("per", "Frames lost at random", "range", per, "%", 0, 50, 0.5),
            "errors": Control("errors", "Error model", "choice", errors, choices=("none", "bernoulli", "gilbert")),
        }
        self.changes: list[tuple[str, Value]] = []
        self.over = False

    def describe(self) -> Sequence[Control]:
        return list(self.controls.values())

    def set(self, name: str, value: Value) -> None:
        if self.over:
            raise ControlError("the run is over")
        require(self.describe(), name, value)
        self.controls[name] = replace(self.controls[name], value=value)
        self.changes.append((name, value))

    def stop(self) -> None:
        self.over = True


@pytest.fixture(autouse=True)
def soon_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breaks, "BREAKS", tuple(replace(each, seconds=0.05) for each in BREAKS))


@pytest.mark.parametrize("wanted", BREAKS, ids=NAMES)
def test_break_changes_all_runs_and_mends_them(wanted: Break) -> None:
    runs = Bench(), Bench(snr_db=20.0, per=2.0, errors="bernoulli")
    before = [run.controls[wanted.control].value for run in runs]
    told: list[int] = []
    Breaker(lambda: told.append(1)).start(wanted.name, runs)
    wait_for(lambda: len(told) == 2)
    for run, value in zip(runs, before, strict=True):
        assert run.changes == [(wanted.control, wanted.value), (wanted.control, value)]


def test_one_break_at_a_time(held_breaks: threading.Event) -> None:
    run, breaker = Bench(), Breaker()
    breaker.start("fade", [run])
    with pytest.raises(ControlError, match="one break at a time: wait for the end of the fade"):
        breaker.start("interferer", [run])
    held_breaks.set()
    wait_for(lambda: len(run.changes) == 2)
    breaker.start("interferer", [run])
    wait_for(lambda: len(run.changes) == 4)


def test_value_that_somebody_changes_meanwhile_stays(held_breaks: threading.Event) -> None:
    touched, other, told = Bench(), Bench(), list[int]()
    Breaker(lambda: told.append(1)).start("fade", [touched, other])
    touched.set("snr_db", 25.0)
    held_breaks.set()
    wait_for(lambda: len(told) == 2)
    assert touched.controls["snr_db"].value == 25.0
    assert other.controls["snr_db"].value == 15.0


def test_run_that_ends_in_a_break_keeps_nobody_from_being_mended(held_breaks: threading.Event) -> None:
    ends, other, told = Bench(), Bench(), list[int]()
    Breaker(lambda: told.append(1)).start("fade", [ends, other])
    ends.stop()
    held_breaks.set()
    wait_for(lambda: len(told) == 2)
    assert other.controls["snr_db"].value == 15.0


@pytest.mark.parametrize(
    ("name", "run", "complaint"),
    [
        ("flood", Bench(), "flood is no break: there are fade, burst, interferer"),
        ("fade", Bench(snr_db=8.0), "SNR is 8 dB already: that is as bad as the break"),
        ("interferer", Bench(per=20.0), "Frames lost at random is 20 % already"),
        ("interferer", Bench(errors="gilbert"), "the run has the error model gilbert, which a break could not restore"),
        ("fade", Bench(no_air="tier emulated has no radio"), "SNR cannot be changed: tier emulated has no radio"),
    ],
)
def test_what_is_no_break_is_refused_and_changes_no_run(name: str, run: Bench, complaint: str) -> None:
    good = Bench()
    with pytest.raises(ControlError, match=complaint):
        Breaker().start(name, [good, run])
    assert (good.changes, run.changes) == ([], [])


# -- over HTTP ---------------------------------------------------------------------------------------------------


def test_page_gets_the_breaks_and_starts_one(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    offered = stage.page.get("/api/breaks")["breaks"]
    assert [each["name"] for each in offered] == NAMES
    assert {"label", "plain", "terms", "control", "value", "seconds"} <= offered[0].keys()
    assert stage.page.post("/api/breaks", {"name": "fade", "runs": ["live-run"]}) == (200, {"ok": True})
    wait_for(lambda: stage.controls.changes == [("snr_db", BREAKS[0].value), ("snr_db", 20.0)])


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"name": "fade"}, 400),
        ({"name": 1, "runs": ["live-run"]}, 400),
        ({"name": "fade", "runs": []}, 400),
        ({"name": "fade", "runs": ["live-run", "live-run"]}, 400),
        ({"name": "fade", "runs": ["nothing"]}, 404),
        ({"name": "flood", "runs": ["live-run"]}, 409),
        ({"name": "interferer", "runs": ["live-run"]}, 409),
    ],
)
def test_wrong_requests_break_nothing(tmp_path: Path, body: object, status: int) -> None:
    stage = Stage(tmp_path)
    answer, error = stage.page.post("/api/breaks", body)
    assert (answer, list(error)) == (status, ["error"])
    assert stage.controls.changes == []


def test_breaking_and_starting_take_the_token(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    for path, body in (("/api/breaks", {"name": "fade", "runs": ["live-run"]}), ("/api/demo", {})):
        assert stage.client.post(path, json=body, headers=HERE).status_code == 401
    assert stage.controls.changes == []
    assert stage.starter.requests == []


def test_demo_is_started_once(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    assert stage.page.post("/api/demo", {}) == (200, {"ok": True})
    assert stage.starter.requests[0].schemes == ("none", "slacp")
    assert stage.page.post("/api/demo", {}) == (409, {"error": "nothing can be started: a run is going on"})
