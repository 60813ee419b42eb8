"""The demo's page for an audience, in a real browser: made-up runs, words, breaks, the result, and screens."""

import threading

import pytest
from playwright.sync_api import Browser, Page, expect

from dashboard.breaks import BREAKS
from tests.harness.breaks import held_breaks
from tests.harness.browser import Stage, number, visit
from tests.harness.waiting import wait_for

__all__ = ["held_breaks"]

pytestmark = pytest.mark.patient

INTERFERER = next(each for each in BREAKS if each.name == "interferer")


def cells(page: Page, row: str) -> list[str]:
    """The figures of one row of the result card: without repair, with it."""
    return page.locator(f"#demo .score tr[data-row={row}] td").all_inner_texts()


def test_both_runs_are_told_side_by_side_in_plain_words_or_in_terms(browser: Browser, stage: Stage) -> None:
    stage.play()
    with visit(browser, stage, "#/demo", token=True) as page:
        titles = page.locator("#demo .lane h2")
        expect(titles).to_have_text(["Without repair", "Repair on the link"])
        expect(page.locator("#demo .comment-words")).not_to_be_empty()
        expect(page.locator("#demo .stop").nth(2)).to_have_text("base station")
        # both have lost, and only one of them has left it to its sender
        wait_for(lambda: [number(each) > 0 for each in cells(page, "damagedCount")] == [True, True])
        wait_for(lambda: [number(each) > 0 for each in cells(page, "leftCount")] == [True, False])
        wait_for(lambda: cells(page, "repaired") == ["0 %", "100 %"])

        def leads() -> bool:
            """Whether the link with repair has half as much again; in one unit, so that digits can be compared."""
            # the lanes in one question: they are drawn together
            bare, repaired = page.locator("#demo .lane-rate").all_inner_texts()
            return number(repaired) > 1.5 * number(bare) and bare.split()[1] == repaired.split()[1]

        wait_for(leads)

        page.keyboard.press("t")
        expect(titles).to_have_text(["no repair, TCP cubic", "SLACP, TCP cubic"])
        expect(page.locator("#demo .stop").nth(2)).to_have_text("BAS")
        expect(page.locator("#demo .lane-terms").first).to_contain_text("cwnd")
        page.reload()
        expect(titles.last).to_have_text("SLACP, TCP cubic")
        page.get_by_role("switch", name="Technical terms").press(" ")
        expect(titles.last).to_have_text("Repair on the link")


def test_break_reaches_both_runs_is_told_and_ends_by_itself(
    browser: Browser, stage: Stage, held_breaks: threading.Event
) -> None:
    stage.play()
    with visit(browser, stage, "#/demo", token=True) as page:
        wait_for(lambda: page.evaluate("fadelab.live.time.end > 1"))
        runs = stage.made_up._runs
        button = page.get_by_role("button", name="Interferer")
        # keys break nothing before the page has learned what can be broken
        expect(button).to_be_visible()
        page.keyboard.press("i")
        wait_for(lambda: [run.controls.value("per") for run in runs] == [INTERFERER.value] * 2)
        # a topic that does not wait for its turn
        expect(page.locator("#demo .comment-words")).to_contain_text("Another sender")
        expect(button).to_have_attribute("data-on", "")
        # one at a time
        expect(page.get_by_role("button", name="Fade")).to_have_attribute("aria-disabled", "true")
        page.keyboard.press("f")
        assert [run.controls.value("snr_db") for run in runs] == [14.0, 14.0]
        held_breaks.set()
        wait_for(lambda: [run.controls.value("per") for run in runs] == [2.0, 2.0])
        expect(button).not_to_have_attribute("data-on", "")
        bands = """async () => {
            const { broken } = await import("/static/race.js");
            return broken(fadelab.live.runs, fadelab.live.demo.breaker.breaks);
        }"""
        [band] = wait_for(lambda: [each for each in page.evaluate(bands) if each["to"]])
        assert band["label"] == "Interferer"
        assert band["from"] < band["to"]


def test_break_that_is_refused_says_why(browser: Browser, stage: Stage) -> None:
    stage.play()
    stage.made_up._runs[0].controls.set("per", 30)
    with visit(browser, stage, "#/demo", token=True, expect="status of 409") as page:
        page.get_by_role("button", name="Interferer").click()
        expect(page.locator("#demo .break .problem")).to_contain_text("Frames lost at random is 30 % already")
        expect(page.get_by_role("button", name="Interferer")).not_to_have_attribute("aria-disabled", "true")


def test_result_stays_when_the_runs_have_ended(browser: Browser, stage: Stage) -> None:
    with visit(browser, stage, "#/demo", token=True) as page:
        title = page.locator("#demo .score h2")
        expect(title).to_have_text("What you will see")
        page.get_by_role("button", name="Start the demo").click()
        expect(title).to_have_text("So far")
        wait_for(lambda: page.evaluate("fadelab.live.time.end > 3"))
        first = stage.made_up.names
        made = {run.info.scheme: run for run in stage.made_up._runs}
        page.get_by_role("button", name="Finish").click()
        expect(title).to_have_text("Result")
        bare, repaired = (made[scheme].summary() for scheme in ("none", "slacp"))
        for again in range(2):
            expect(page.locator("#demo .comment-words")).to_contain_text("times as much, over the same channel")
            expect(page.locator("#demo .break")).to_be_hidden()
            ratio = page.locator("#demo .score-ratio .number")
            wait_for(
                lambda: (
                    number(ratio.inner_text())  # noqa: B023
                    == pytest.approx(repaired["goodput_bps"] / bare["goodput_bps"], rel=0.01)
                )
            )
            expect(page.locator("#demo .lane-rate .unit")).to_have_text(["Mbit/s"] * 2)
            means = [bare["goodput_bps"] / 1e6, repaired["goodput_bps"] / 1e6]
            wait_for(
                lambda: [number(cell) for cell in cells(page, "mean")] == pytest.approx(means, abs=0.006)  # noqa: B023
            )
            damaged = [bare["link"]["up"]["corruption_losses"], repaired["link"]["up"]["corruption_losses"]]
            wait_for(lambda: cells(page, "damagedCount") == [str(count) for count in damaged])  # noqa: B023
            if not again:
                page.reload()
                expect(page.locator("html[data-ready]")).to_be_visible()
        # in one go: the page asks the server again every other second, which knows nothing of it
        late = """() => {
            fadelab.live.runs[0].data.info.ended.summary.on_time = false;
            fadelab.live.demo.draw(true);
            return document.querySelector("#demo .score .hint").textContent;
        }"""
        assert "This machine was too busy" in page.evaluate(late)
        page.get_by_role("button", name="Again").click()
        expect(title).to_have_text("So far")
        assert not set(stage.made_up.names) & set(first)


def test_audience_without_the_token_sees_all_and_changes_nothing(browser: Browser, stage: Stage) -> None:
    stage.play()
    with visit(browser, stage, "#/demo", viewport={"width": 390, "height": 844}) as page:
        expect(page.locator("#demo .comment-words")).not_to_be_empty()
        wait_for(lambda: number(page.locator("#demo .score-ratio .number").inner_text()) > 1)
        for name in ("Fade", "Burst", "Interferer", "Finish"):
            expect(page.get_by_role("button", name=name)).to_have_count(0)
        before = [run.controls.describe() for run in stage.made_up._runs]
        for key in "fbi":
            page.keyboard.press(key)
        assert [run.controls.describe() for run in stage.made_up._runs] == before


def test_presenter_needs_no_scrolling_on_a_projector(browser: Browser, stage: Stage) -> None:
    stage.play()
    with visit(browser, stage, "#/demo", token=True, viewport={"width": 1920, "height": 1080}) as page:
        size = "element => parseFloat(getComputedStyle(element).fontSize)"
        wait_for(lambda: page.evaluate("fadelab.live.time.end > 1"))
        plain = page.locator("#demo .lane-rate .number").first.evaluate(size)
        for keys in ("p", "t"):
            page.keyboard.press(keys)
            expect(page.get_by_role("button", name="Interferer")).to_be_in_viewport(ratio=1)
            root = "document.documentElement"
            wait_for(lambda: page.evaluate(f"[{root}.scrollWidth, {root}.scrollHeight]") == [1920, 1080])  # noqa: B023
        large = page.locator("#demo .lane-rate .number").first.evaluate(size)
        # digits of a tenth of the screen's height
        assert large > 1.5 * plain
        assert large > 100
        # and a way out for a mouse
        page.get_by_role("button", name="Projector mode").click()
        expect(page.get_by_role("link", name="Runs")).to_be_visible()
