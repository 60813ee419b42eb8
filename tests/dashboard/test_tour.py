"""The guided tour: what its steps say of figures, how it goes on, and what survives a run that fails."""

import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from typing_extensions import override

from dashboard.control import ControlError, Outcome, Scene
from dashboard.tour import STEPS, Figures, Phase, Tour, figures_of
from linklayer.schemes import SCHEMES
from testbed.cli.dashboard import run_starter
from testbed.paths import root
from testbed.scenario.file import load
from tests.harness.browser import Stage, number, visit
from tests.harness.dashboard_runs import Page, RecordingStarter, application
from tests.harness.waiting import wait_for

pytestmark = pytest.mark.patient

BARE = Figures(500_000, 2_000_000, frames=1000, damaged=90, left=90, eln_marks=0)
SENTENCES = {
    # 1.9 of 2 Mbit/s; 0.5 of 2
    "clean": ([replace(BARE, goodput_bps=1_900_000, damaged=0)], "0 of 1000 frames were damaged, and TCP carried 1.90 "
              "Mbit/s: 95% of what the link can."),
    "fading": ([BARE], "The air damaged 90 of 1000 frames, and TCP fell to 0.50 Mbit/s: 25% of what the link can, "
               "against 95% on the clear channel."),
    "slacp": ([BARE, replace(BARE, goodput_bps=1_500_000, left=2)], "With SLACP 3.0 times as much arrived over the "
              "same channel: it repaired all but 2 of the 90 losses before TCP noticed."),
    "eln": ([BARE, replace(BARE, goodput_bps=800_000, eln_marks=31)], "From the sender that is told 1.6 times as much "
            "arrived: 31 acknowledgements told it that the air was to blame."),
    "replay": ([BARE, replace(BARE, goodput_bps=520_000)], "With SLACP about the same arrived through the recorded "
               "losses: 0.52 Mbit/s against 0.50 Mbit/s."),
}  # fmt: skip


class Scripted(RecordingStarter):
    """Plays scenes as a test says: each ends at once with its outcomes, or goes on until it is stopped."""

    def __init__(self) -> None:
        super().__init__()
        self.scenes: list[Scene] = []
        self.failing: dict[int, str] = {}
        self.lasting = False

    def start_scene(self, scene: Scene) -> "ScriptedRuns":
        self.scenes.append(scene)
        problem = self.failing.get(len(self.scenes), "")
        if problem == "refused":
            raise ControlError("nothing can be started: a run is going on")
        started = ScriptedRuns([Outcome(None, problem) if problem else Outcome(SUMMARY) for _ in scene.runs])
        if not self.lasting:
            started.over.set()
        return started


class ScriptedRuns:
    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self._outcomes = outcomes
        self.over = threading.Event()

    def wait(self, seconds: float) -> bool:
        return self.over.wait(seconds)

    def stop(self) -> None:
        self.over.set()

    def outcomes(self) -> Sequence[Outcome]:
        return self._outcomes


UP = {"throughput_bps": 1.8e6, "frames": 1000, "packets": 900, "corruption_losses": 90, "residual_losses": 90}
SUMMARY: dict[str, Any] = {
    "goodput_bps": 500_000.0,
    "capacity_bps": 2_000_000,
    "on_time": True,
    "link": {"down": UP | {"throughput_bps": 6e4, "frames": 1200, "corruption_losses": 1}, "up": UP},
}


def test_each_step_tells_the_figures_of_its_runs() -> None:
    assert figures_of(SUMMARY) == BARE
    before: dict[str, Sequence[Figures]] = {}
    for step in STEPS:
        figures, sentence = SENTENCES[step.name]
        assert step.tell(figures, before) == sentence
        before[step.name] = figures


def test_each_step_is_a_scene_that_this_program_can_run() -> None:
    for step in STEPS:
        assert step.scene.tier in run_starter._TIERS
        for settings in step.scene.runs:
            path = root() / "scenarios" / f"{step.scene.scenario}.yaml"
            assert load(path, settings, tier=step.scene.tier).link.scheme in SCHEMES
        # one sentence
        assert step.story.count(".") == 1
        assert step.story.endswith(".")


def test_unattended_tour_goes_round_and_outlives_what_fails() -> None:
    starter = Scripted()
    starter.failing = {2: "the air is out", 3: "refused"}
    failed: list[tuple[int, str]] = []

    class Noted(Tour):
        """Notes what a page could see, in the tour's thread: whoever asks from outside may come too late."""

        @override
        def _tell(self, phase: Phase, sentence: str) -> None:
            super()._tell(phase, sentence)
            state = self.describe()
            if state["phase"] == "failed":
                failed.append((state["step"], state["sentence"]))

    with closing(Noted(starter, story_s=0, result_s=0.02)) as tour:
        tour.begin(unattended=True)
        wait_for(lambda: len(starter.scenes) > len(STEPS))
        with pytest.raises(ControlError, match="the tour is on already"):
            tour.begin(unattended=True)
    assert starter.scenes[: len(STEPS)] == [step.scene for step in STEPS]
    assert starter.scenes[len(STEPS)] == STEPS[0].scene
    assert failed == [
        (1, "A run of this step has failed: the air is out"),
        (2, "This step could not begin: nothing can be started: a run is going on"),
    ]
    assert not tour.describe()["on"]


def test_requests_of_the_page(tmp_path: Path) -> None:
    starter = Scripted()
    starter.lasting = True
    with closing(Tour(starter, story_s=0, result_s=0)) as tour:
        page = Page(application(tmp_path, starter=starter, tour=tour))
        assert page.post("/api/tour", {"act": "next"}) == (409, {"error": "there is no tour: begin it first"})
        assert page.post("/api/tour", {"act": "fly"})[0] == 400
        assert page.post("/api/tour", {"act": "begin"}) == (200, {"ok": True})
        wait_for(lambda: len(starter.scenes) == 1)
        # back from the first step is the last one, whose runs take the place of those that were stopped
        assert page.post("/api/tour", {"act": "previous"})[0] == 200
        wait_for(lambda: len(starter.scenes) == 2)
        assert starter.scenes[1] == STEPS[-1].scene
        state = page.get("/api/state")["tour"]
        assert (state["on"], state["step"], state["phase"]) == (True, len(STEPS) - 1, "running")
        assert page.post("/api/tour", {"act": "end"})[0] == 200
    assert not page.get("/api/state")["tour"]["on"]
    assert Page(application(tmp_path), token=None).post("/api/tour", {"act": "begin"})[0] == 401


@pytest.mark.slow
def test_presenter_leads_through_the_tour_by_keys(browser: Browser, stage: Stage) -> None:
    with visit(browser, stage, "#/demo", token=True, viewport={"width": 1920, "height": 1080}) as page:
        expect(page.get_by_role("button", name="Guided tour")).to_be_visible()
        page.keyboard.press("g")
        here = page.locator("#demo .tour [aria-current=step]")
        sentence = page.locator("#demo .comment-words")
        expect(here).to_contain_text(STEPS[0].title)
        expect(here.locator(".tour-tier")).to_have_text(STEPS[0].scene.tier)
        expect(sentence).to_have_text(STEPS[0].story)
        page.keyboard.press("PageDown")
        page.keyboard.press("ArrowRight")
        expect(here).to_contain_text("Repair on the link")
        expect(page.locator("#demo .lane h2")).to_have_text(["Without repair", "Repair on the link"])
        wait_for(lambda: page.evaluate("fadelab.live.time.end > 2"))
        stage.stop()
        # the sentence and the card have the same figures
        expect(sentence).to_contain_text("as much arrived over the same channel")
        ratio = page.locator("#demo .score-ratio .number")
        said = r"""() => document.querySelector("#demo .comment-words").textContent.match(/[0-9.]+/)[0]"""
        wait_for(lambda: number(ratio.inner_text()) == pytest.approx(float(page.evaluate(said)), abs=0.06))
        damaged = page.locator("#demo .score tr[data-row=damagedCount] td").last
        wait_for(lambda: f"all {damaged.inner_text()} losses" in sentence.inner_text())
        # all of it on a projector's screen, beside each other
        page.keyboard.press("p")
        root_size = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
        wait_for(lambda: page.evaluate(root_size) == [1920, 1080])
        page.keyboard.press("ArrowRight")
        expect(page.locator("#demo .lane h2")).to_have_text(["The sender has to guess", "The sender is told"])
        stage.made_up.scene_problem = "the air is out"
        page.keyboard.press("ArrowRight")
        expect(sentence).to_have_text("This step could not begin: the air is out")
        # unattended it goes on to the next step, whose runs last: a round of steps that fail takes three seconds, and
        # whoever looks once a second sees the same three of them for ever
        stage.made_up.scene_problem = ""
        page.keyboard.press("u")
        expect(here).to_contain_text(STEPS[0].title)
        page.get_by_role("button", name="Back to the demo").click()
        expect(page.locator("#demo .tour")).to_be_hidden()
        expect(page.get_by_role("button", name="Again")).to_be_visible()
