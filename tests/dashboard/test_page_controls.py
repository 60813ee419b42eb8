"""The page in a real browser: what it lets people do.

Every test fails on a complaint of the browser's: a script that fails, a request without an answer, a policy broken.
"""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

from dashboard.hub import RunInfo
from tests.harness.browser import TOKEN, Stage, visit
from tests.harness.waiting import wait_for

pytestmark = pytest.mark.patient

#: what Chromium says of a server that is gone, or of an answer that tests asked for
NO_SERVER = (
    "ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|ERR_CONTENT_LENGTH_MISMATCH"
    "|status of 404"
)


def test_a_control_moved_by_keys_reaches_both_runs(browser: Browser, stage: Stage) -> None:
    stage.play()
    with visit(browser, stage, token=True) as page:
        slider = page.get_by_role("slider", name="SNR")
        slider.focus()
        for _ in range(3):
            page.keyboard.press("ArrowRight")
            # slower than the page sends, so that answers and the stream come in between
            page.wait_for_timeout(200)
        runs = stage.made_up._runs
        wait_for(lambda: [run.controls.value("snr_db") for run in runs] == [15.5, 15.5])
        expect(page.locator("[data-control=snr_db] .verdict-mark")).to_have_attribute("data-state", "accepted")
        wait_for(lambda: page.evaluate("fadelab.live.runs.every(({ data }) => data.notes.at(-1)?.value === 15.5)"))
        page.get_by_text("A · slacp").click()
        page.get_by_role("switch", name="SLACP").press(" ")
        wait_for(lambda: sorted(run.controls.value("slacp") for run in runs) == [False, False])
        expect(page.get_by_role("switch", name="SLACP")).not_to_be_checked()


def test_a_control_that_cannot_be_changed_says_why(browser: Browser, stage: Stage) -> None:
    stage.play("slacp")
    with visit(browser, stage, token=True) as page:
        switch = page.get_by_role("switch", name="ELN")
        expect(switch).to_be_disabled()
        expect(switch).to_have_accessible_description("a made-up run has none")


def test_until_its_stream_speaks_a_run_is_waited_for(browser: Browser, stage: Stage) -> None:
    with visit(browser, stage, token=True) as page:
        held: list[Route] = []
        page.route("**/api/stream*", lambda route: held.append(route), times=1)
        stage.play("slacp")
        hint = page.locator("[data-part=controls] > .hint")
        expect(hint).to_have_text("Waiting for the first record.")
        expect(page.get_by_role("slider", name="SNR")).to_have_count(0)
        # a question to the page, so that what it asks the server gets here
        wait_for(lambda: page.title() and held)
        held[0].continue_()
        expect(page.get_by_role("slider", name="SNR")).to_be_enabled()
        expect(hint).to_be_hidden()


def test_a_run_without_controls_cannot_be_changed_and_says_so(browser: Browser, stage: Stage) -> None:
    stage.hub.open(RunInfo("elsewhere", "elsewhere", "sample", "slacp", "vusrp", "cubic", 1))
    with visit(browser, stage, token=True) as page:
        expect(page.locator("[data-part=controls] > .hint")).to_have_text("This run cannot be changed from here.")


def test_a_value_of_zero_is_shown(browser: Browser, stage: Stage) -> None:
    stage.play("slacp")
    stage.made_up._runs[0].controls.set("per", 0)
    with visit(browser, stage, token=True) as page:
        expect(page.get_by_role("spinbutton", name="Frames lost at random in %")).to_have_value("0")


def test_a_refused_change_says_so_and_goes_back(browser: Browser, stage: Stage) -> None:
    stage.play("slacp")
    with visit(browser, stage, token=True, expect="status of 409") as page:
        page.route("**/controls", lambda route: route.fulfill(status=409, json={"error": "not now"}))
        page.get_by_role("combobox", name="Fading").select_option("flat")
        verdict = page.locator("[data-control=fading] .verdict-mark")
        expect(verdict).to_have_attribute("data-state", "refused")
        expect(verdict).to_have_text("not now")
        expect(page.get_by_role("combobox", name="Fading")).to_have_value("rician")


def test_without_the_token_nothing_can_be_changed(browser: Browser, stage: Stage) -> None:
    stage.play("slacp")
    with visit(browser, stage, expect="status of 403") as page:
        expect(page.get_by_role("slider", name="SNR")).to_be_disabled()
        expect(page.get_by_role("button", name="Stop run")).to_be_disabled()
        field = page.get_by_label("To change a run")
        field.fill("wrong")
        field.press("Enter")
        expect(page.locator("[data-part=controls] .problem")).to_contain_text("not the dashboard's token")
        field.fill(TOKEN)
        field.press("Enter")
        expect(page.get_by_role("slider", name="SNR")).to_be_enabled()
        expect(field).to_be_hidden()


def test_where_reading_takes_the_token_the_page_asks_for_it(browser: Browser, tmp_path: Path) -> None:
    stage = Stage(tmp_path, token_to_read=True)
    try:
        stage.play("slacp")
        with visit(browser, stage) as page:
            field = page.get_by_label("This dashboard shows itself")
            field.fill(TOKEN)
            field.press("Enter")
            expect(page.locator("#live .chart canvas").first).to_be_visible()
    finally:
        stage.end()


def test_runs_are_started_and_stopped_from_the_page(browser: Browser, stage: Stage) -> None:
    with visit(browser, stage, token=True) as page:
        expect(page.get_by_label("none (no repair)")).to_be_checked()
        page.get_by_label("Seed").fill("5")
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.locator("#live .strip")).to_have_count(2)
        assert {run.info.seed for run in stage.made_up._runs} == {5}
        page.get_by_role("button", name="Stop run").click()
        dialog = page.get_by_role("dialog", name="End the run now?")
        expect(dialog).to_be_visible()
        page.keyboard.press("Escape")
        assert len(stage.made_up.names) == 2
        page.get_by_role("button", name="Stop run").click()
        dialog.get_by_role("button", name="End it").click()
        wait_for(lambda: not stage.made_up.names)


def test_a_restarted_server_is_found_again(browser: Browser, stage: Stage) -> None:
    stage.play("slacp")
    with visit(browser, stage, expect=NO_SERVER) as page:
        expect(page.locator("#connection")).to_contain_text("live")
        stage.end()
        expect(page.locator("#connection")).to_contain_text("reconnecting")
        stage.begin()
        # it does not know the run, whose picture stays
        expect(page.locator("#connection")).to_contain_text("ended")
        expect(page.locator("#live .strip .badge")).to_have_text("SLACP")
        stage.play("none")
        expect(page.locator("#connection")).to_contain_text("live")
        expect(page.locator("#live .strip .badge")).to_have_text("no repair")
