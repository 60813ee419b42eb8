"""The story of a loss on the page of a past run: a click asks for the nearest one, which `explain` tells."""

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, expect

import testbed.api as fadelab
from dashboard.app import DashboardConfig, create_app
from dashboard.control import ControlError
from dashboard.hub import Hub
from testbed.cli.dashboard.stories import Stories
from testbed.exports.losses import Losses
from testbed.exports.source import timeline_of
from tests.harness.browser import TOKEN, Stage, visit

pytestmark = pytest.mark.patient

LOSSY = fadelab.root() / "scenarios" / "lossy-link.yaml"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    settings = {"workloads.0.duration_s": 5, "channel.per": 0.1}
    return fadelab.run(LOSSY, tier="model", settings=settings, out=tmp_path_factory.mktemp("runs")).folder


@pytest.fixture(scope="module")
def stories() -> Iterator[Stories]:
    with closing(Stories()) as opened:
        yield opened


@pytest.fixture
def stage(run: Path, stories: Stories) -> Iterator[Stage]:
    opened = Stage(run.parent, tell=stories.tell)
    yield opened
    opened.end()


def test_a_click_on_the_losses_tells_the_nearest_one(browser: Browser, stage: Stage, run: Path) -> None:
    losses = Losses(timeline_of(run))
    with visit(browser, stage, f"#/run/{run.name}") as page:
        plot = page.locator("#past .losses-plot")
        expect(plot).to_be_visible()
        box = plot.bounding_box()
        assert box is not None
        with page.expect_request("**/story?*") as asked:
            page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 5)
        wanted = parse_qs(urlsplit(asked.value.url).query)
        assert wanted["direction"] == ["up"]
        middle_s = float(wanted["time"][0])
        # the page shows the run from 0 to its end
        assert middle_s == pytest.approx(timeline_of(run).records["link"][-1]["time_ns"] / 2e9, rel=0.02)
        story = page.locator("#past .story")
        expect(story.locator("strong")).to_contain_text("Loss")
        up = [loss for loss in losses.all if loss.frame.side == "up"]
        nearest = min(up, key=lambda loss: abs(loss.frame.sent_ns / 1e9 - middle_s))
        told = losses.story(nearest.number)
        expect(story.locator("strong")).to_have_text(f"Loss {nearest.number}. ")
        expect(story.locator(".story-head p")).to_contain_text(told.sentence())
        assert story.locator("tbody tr").count() == len(told.events)
        assert story.locator("tbody td:last-child").all_inner_texts() == [event.words() for event in told.events]
        lost = [each for each in told.events if getattr(each, "fate", "ok") != "ok"]
        assert story.locator("tbody tr.lost").count() == len(lost) > 0
        page.get_by_role("button", name="Close the story").click()
        expect(story).to_be_hidden()
        # a drag zooms, and asks for nothing
        page.mouse.move(box["x"] + 50, box["y"] + 5)
        page.mouse.down()
        page.mouse.move(box["x"] + 150, box["y"] + 5)
        page.mouse.up()
        expect(story).to_be_hidden()
        # the keyboard does as well
        plot.focus()
        plot.press("ArrowLeft")
        plot.press("Enter")
        expect(story.locator("strong")).to_contain_text("Loss")


def test_what_is_wrong_is_a_line(browser: Browser, run: Path, stories: Stories, tmp_path: Path) -> None:
    other = tmp_path / "runs" / run.name
    other.mkdir(parents=True)
    for path in run.glob("*"):
        if path.suffix in (".json", ".parquet", ".yaml"):
            (other / path.name).write_bytes(path.read_bytes())
    (other / "scenario.yaml").write_text("name: [")
    with pytest.raises(ControlError, match=r"scenario\.yaml"):
        stories.tell(other, 1.0, "")
    stage = Stage(other.parent, tell=stories.tell)
    try:
        with visit(browser, stage, f"#/run/{run.name}", expect="status of 409") as page:
            plot = page.locator("#past .losses-plot")
            expect(plot).to_be_visible()
            plot.click(position={"x": 100, "y": 5})
            expect(page.locator("#past .story .problem")).to_contain_text("scenario.yaml")
    finally:
        stage.end()


def test_requests_that_cannot_be_told_are_refused(run: Path, stories: Stories) -> None:
    hub = Hub()
    told = create_app(DashboardConfig(hub, run.parent, TOKEN, tell=stories.tell)).test_client()
    silent = create_app(DashboardConfig(hub, run.parent, TOKEN)).test_client()
    here = {"Host": "localhost"}
    for client, address, status, words in (
        (told, f"/api/runs/{run.name}/story?direction=sideways", 400, "direction is up or down"),
        (told, f"/api/runs/{run.name}/story?time=soon", 400, "time is a number"),
        (told, "/api/runs/nothing/story", 404, "there is no run of this name"),
        (silent, f"/api/runs/{run.name}/story", 409, "this dashboard tells no stories"),
    ):
        answer = client.get(address, headers=here)
        assert answer.status_code == status
        assert words in answer.get_json()["error"]


def test_stories_go_on_with_another_process_and_another_run(run: Path, tmp_path: Path) -> None:
    losses = Losses(timeline_of(run))
    with closing(Stories()) as stories:
        first = stories.tell(run, 1.0, "up")
        nearest = losses.nearest(1.0, "up")
        assert nearest is not None
        assert first == json.loads(json.dumps(losses.story(nearest).plain()))
        process = stories._process
        assert stories.tell(run, 2.0, "") != first
        assert stories._process is process
        assert process is not None
        process.kill()
        assert stories.tell(run, 1.0, "up") == first
        # the files of another run under the same name
        settings = {"workloads.0.duration_s": 3, "channel.per": 0.1}
        other = fadelab.run(LOSSY, tier="model", settings=settings, seed=2, out=tmp_path).folder
        copy = tmp_path / "copies" / "one"
        shutil.copytree(run, copy)
        assert stories.tell(copy, 1.0, "up")["events"] == first["events"]
        shutil.rmtree(copy)
        shutil.copytree(other, copy)
        assert stories.tell(copy, 1.0, "up")["events"] != first["events"]
        ended = stories._process
    assert ended is not None
    assert ended.poll() is not None


def test_story_that_takes_too_long_is_not_waited_for(run: Path) -> None:
    with closing(Stories(patience_s=0.0)) as stories:
        with pytest.raises(ControlError, match=r"^the story takes long: .* explain "):
            stories.tell(run, 1.0, "")
        assert stories._process is None
