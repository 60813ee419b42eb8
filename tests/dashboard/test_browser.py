"""The page in a real browser: what it shows of runs that go on, what it lets people do, and who can use it.

Every test fails on a complaint of the browser's: a script that fails, a request without an answer, a policy broken.
"""

import csv
import io
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

import dashboard
from common.units import SECOND
from dashboard.charts import CHARTS
from dashboard.hub import RunInfo
from linklayer.schemes import SCHEMES
from tests.harness.browser import TOKEN, Stage, number, pictures, pixels, visit
from tests.harness.colours import apart
from tests.harness.dashboard_runs import LINK, keep, records
from tests.harness.live_runs import folder_of, run_all
from tests.harness.scenarios import scenario
from tests.harness.waiting import PATIENCE_S, wait_for

pytestmark = pytest.mark.patient

STATIC = Path(dashboard.__file__).parent / "static"
KEYS = tuple(chart.name for chart in CHARTS)
#: what Chromium says of a server that is gone, or of an answer that tests asked for
NO_SERVER = "ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|status of 404"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    opened = Stage(tmp_path / "runs")
    yield opened
    opened.end()


@pytest.fixture
def past(stage: Stage) -> Stage:
    made = [("304", "sample", "slacp", 1.8e6), ("305", "sample", "none", 0.9e6), ("306", "other", "slacp", 1e6)]
    for minute, made_for, scheme, goodput_bps in made:
        name = f"20260102-0{minute}05-{made_for}-emulated-{scheme}-s1"
        keep(stage.runs, name, records(1, 8.0), scenario=made_for, scheme=scheme, goodput_bps=goodput_bps)
    return stage


def test_all_modules_are_asked_for_at_once(browser: Browser, stage: Stage) -> None:
    with visit(browser, stage) as page:
        links = page.locator("link[rel=modulepreload]").all()
        asked = {Path(link.get_attribute("href") or "").name for link in links}
    assert asked | {"main.js"} == {path.name for path in STATIC.glob("*.js")}


# -- what it shows ---------------------------------------------------------------------------------------------


def test_it_opens_without_a_run(browser: Browser, past: Stage) -> None:
    with visit(browser, past) as page:
        expect(page.get_by_role("heading", name="No run yet")).to_be_visible()
        expect(page.get_by_role("heading", name="Start a run")).to_be_visible()
        expect(page.locator("[data-part=recent] a")).to_have_count(3)
        expect(page.locator("#connection")).to_contain_text("ready")


def test_every_chart_moves_while_a_run_goes_on(browser: Browser, stage: Stage) -> None:
    stage.play()
    # high enough for all charts to be on the screen: others rest
    with visit(browser, stage, viewport={"width": 1920, "height": 1600}) as page:
        expect(page.locator("#live .chart canvas").first).to_be_visible()
        expect(page.locator("#live .chart")).to_have_count(len(KEYS))
        views = ("canvas.constellation", "canvas.spectrum", "canvas.waterfall")
        canvases = (*(f"[data-chart={key}] canvas" for key in KEYS), *views)
        expect(page.locator("#live canvas.spectrum").first).to_be_visible()
        before = pictures(page, *canvases)
        wait_for(lambda: all(one != other for one, other in zip(before, pictures(page, *canvases), strict=True)))
        for key in KEYS:
            values = page.locator(f"#live [data-chart={key}] .chip-value")
            wait_for(lambda: any(value != "–" for value in values.all_inner_texts()), lambda: key)  # noqa: B023
        expect(page.locator(".losses-count").first).to_contain_text("A")
        expect(page.locator(".verdict-words")).to_contain_text("SLACP over no repair")
        latencies = wait_for(lambda: page.evaluate("fadelab.latency.length > 20 && fadelab.latency"))
        assert all(-50 < latency < 1000 * PATIENCE_S for latency in latencies)


def test_a_theme_can_be_chosen_and_stays(browser: Browser, stage: Stage) -> None:
    with visit(browser, stage, color_scheme="light") as page:
        page.keyboard.press("d")
        page.keyboard.press("d")
        assert luminance(page, "surface") < 0.05
        page.keyboard.press("p")
        page.reload()
        expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()
        expect(page.get_by_role("button", name="Projector mode")).to_have_attribute("aria-pressed", "true")
        assert luminance(page, "surface") < 0.05


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_sticks_out_sideways(browser: Browser, past: Stage, width: int) -> None:
    past.play()
    with visit(browser, past, viewport={"width": width, "height": 844}, expect="status of 404") as page:
        wait_for(lambda: page.evaluate("fadelab.latency.length > 3"))
        a, b, _ = names(past)
        addresses = ("#/", "#/demo", "#/runs", f"#/run/{a}", f"#/compare/{a}/{b}", "#/run/nonsense", "#/campaigns")
        for address in addresses:
            page.evaluate("address => { location.hash = address; }", address)
            page.wait_for_timeout(200)
            for directions in page.get_by_role("button", name="both", exact=True).all():
                if directions.is_visible():
                    directions.click()
            page.wait_for_timeout(200)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, address


def test_the_display_can_stand_still(browser: Browser, stage: Stage) -> None:
    stage.play()
    with visit(browser, stage) as page:
        wait_for(lambda: page.evaluate("fadelab.latency.length > 5"))
        page.keyboard.press(" ")
        expect(page.locator("#connection")).to_contain_text("display paused")
        still = pixels(page, "throughput")
        end = page.evaluate("fadelab.live.time.end")
        wait_for(lambda: page.evaluate("fadelab.live.time.end") > end + 0.5)
        assert pixels(page, "throughput") == still
        page.keyboard.press(" ")
        wait_for(lambda: pixels(page, "throughput") != still)


def test_dragging_zooms_all_charts_and_a_double_click_resets(browser: Browser, stage: Stage) -> None:
    stage.play()
    with visit(browser, stage) as page:
        plot = page.locator("[data-chart=goodput] .plot-frame")
        wait_for(lambda: page.evaluate("fadelab.live.time.end > 3"))
        box = plot.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 40, steps=4)
        page.mouse.up()
        low, high = page.evaluate("fadelab.live.time.range()")
        # a third of what was shown, however long the run has lasted by now
        assert 0 < high - low < 0.5 * page.evaluate("Math.max(fadelab.live.time.end, 5)")
        expect(page.get_by_role("button", name="Reset zoom")).to_be_visible()
        plot.dblclick()
        expect(page.get_by_role("button", name="Reset zoom")).to_be_hidden()


def test_the_cursor_moves_by_keys_and_tells_values(browser: Browser, stage: Stage) -> None:
    stage.play()
    with visit(browser, stage) as page:
        wait_for(lambda: page.evaluate("fadelab.live.time.end > 4"))
        page.locator("[data-chart=goodput] .plot-frame").focus()
        for _ in range(4):
            page.keyboard.press("PageUp")
        assert page.evaluate("fadelab.live.time.cursor") == pytest.approx(0.6)
        at_cursor = page.locator("[data-chart=throughput] .chip-value").first
        wait_for(lambda: number(at_cursor.inner_text()) > 0)
        page.keyboard.press("Escape")
        assert page.evaluate("fadelab.live.time.cursor") is None


def test_a_chart_has_its_values_as_a_table(browser: Browser, stage: Stage) -> None:
    stage.play()
    with visit(browser, stage) as page:
        wait_for(lambda: page.evaluate("fadelab.live.time.end > 3"))
        values = page.locator("[data-chart=goodput] details")
        values.locator("summary").click()
        expect(values.locator("caption")).to_contain_text("Goodput")
        wait_for(lambda: len(values.locator("tbody tr").all()) >= 3)
        newest = values.locator("tbody tr").nth(0).locator("td").first
        wait_for(lambda: number(newest.inner_text()) > 0)


def test_thinning_keeps_the_extremes(browser: Browser, stage: Stage) -> None:
    with visit(browser, stage) as page:
        rows = page.evaluate(
            """async () => {
                const { Series } = await import("/static/data.js");
                const { rowsOf, stepFor } = await import("/static/rows.js");
                const series = new Series();
                const t = Array.from({ length: 6000 }, (_, i) => i / 10);
                series.append(t, t.map((time) => (time === 300 ? 99 : time === 400 ? -99 : 1)));
                series.append(t, t.map(() => 5));
                return { rows: rowsOf([series], 0, 600, stepFor(600, 500)), points: series.t.length };
            }"""
        )
        values = [value for _, value in rows["rows"]]
        assert max(values) == 99
        assert min(values) == -99
        assert rows["points"] == 6000
        assert len(values) < 1300
        assert all(before < after for (before, _), (after, _) in pairwise(rows["rows"]))


def test_what_ends_is_said(browser: Browser, stage: Stage) -> None:
    stage.play("slacp")
    with visit(browser, stage) as page:
        expect(page.locator("#connection")).to_contain_text("live")
        stage.stop()
        expect(page.locator("#connection")).to_contain_text("ended")
        expect(page.locator("#announcer")).to_contain_text("has ended")
        expect(page.locator("#live .chart").first).to_be_visible()


def test_losses_are_counted_by_direction_and_from_the_start_of_the_run(browser: Browser, stage: Stage) -> None:
    run = stage.hub.open(RunInfo("long", "a long run", "sample", "slacp", "emulated", "cubic", 1, radio=False))
    run.begin(time.time_ns() - 400 * SECOND)
    # longer than the history that a page gets, and with losses in its first record
    for second in range(400):
        for link, each in (("up", 3), ("down", 1)):
            lost = each * (second + 1) if link == "up" else min(second + 1, 350)
            given_up = second // 100 if link == "up" else None
            one = replace(LINK, time_ns=second * SECOND, link=link, congestion_losses=each)
            run.write(replace(one, corruption_losses=lost, residual_losses=given_up))
    expected = {
        "up": ["1,200", "3", "3"],
        "down": ["350", "–", "1"],
        "both": ["up 1,200, down 350", "up 3, down –", "up 3, down 1"],
    }
    with visit(browser, stage) as page:
        for again in range(2):
            for direction, words in expected.items():
                page.get_by_role("button", name=direction, exact=True).first.click()
                expect(page.locator("#live .losses-count")).to_have_text(words)
                # in the time shown, no frame down was lost: pixels of the ticks are more red than green
                ticks = """() => {
                    const canvas = document.querySelector("#live .losses-plot canvas");
                    const copy = new OffscreenCanvas(canvas.width, canvas.height / 4).getContext("2d");
                    copy.drawImage(canvas, 0, 0);
                    const { data } = copy.getImageData(0, 0, canvas.width, canvas.height / 4);
                    return data.filter((_, i) => i % 4 === 0 && data[i] > data[i + 1] + 30).length;
                }"""
                wait_for(lambda: (page.evaluate(ticks) > 0) == (direction != "down"))  # noqa: B023
            if not again:
                page.reload()
                expect(page.locator("html[data-ready]")).to_be_visible()


@pytest.mark.slow
def test_losses_of_a_past_run_are_those_of_its_summary(browser: Browser, stage: Stage) -> None:
    work = [{"kind": "bulk", "duration_s": 8, "drain_s": 1}, {"kind": "bulk", "duration_s": 8, "direction": "down"}]
    lossy = {"tier": "model", "channel": {"per": 0.05, "rate_bps": 2_000_000, "delay_ms": 25}, "workloads": work}
    for scheme in ("slacp", "none", "snoop"):
        [summary] = run_all([scenario(link={"scheme": scheme, "ip_queue_bytes": 12_000}, **lossy)], stage.runs)
        with visit(browser, stage, f"#/run/{folder_of(summary).name}") as page:
            for direction in ("up", "down"):
                page.locator("#past").get_by_role("group", name="Direction of the link").get_by_text(
                    direction, exact=True
                ).click()
                link = summary.link[direction]
                counts = (link.corruption_losses, link.residual_losses, link.congestion_losses)
                assert link.corruption_losses > 20
                expect(page.locator("#past .losses-count")).to_have_text([str(count) for count in counts])


def test_two_runs_that_end_stay_with_their_result_until_another_begins(browser: Browser, stage: Stage) -> None:
    stage.play()
    with visit(browser, stage) as page:
        wait_for(lambda: page.evaluate("fadelab.latency.length > 20 && fadelab.live.time.end > 4"))
        runs = {run.info.scheme: run for run in stage.made_up._runs}
        shown = [runs[scheme].info.name for scheme in ("slacp", "none")]
        # the newer one first, so that only its twin goes on
        for scheme in ("slacp", "none"):
            runs[scheme].controls.stop()
            wait_for(lambda: runs[scheme].info.name not in stage.made_up.names)  # noqa: B023
            expect(page.locator(".tile-note")).to_have_text(["A: result" if scheme == "slacp" else "result"] * 4)
            assert [page.locator(f"#run-{slot}").input_value() for slot in "ab"] == shown
        results = [runs[scheme].summary() for scheme in ("slacp", "none")]
        goodputs = [result["goodput_bps"] for result in results]
        figures = page.locator(".tile").first.locator(".number")
        # to three digits; a run's result comes a moment after its end
        in_units = [goodput / (1e6 if goodput >= 1e6 else 1e3) for goodput in goodputs]
        wait_for(lambda: [number(figure) for figure in figures.all_inner_texts()] == pytest.approx(in_units, rel=0.01))
        expect(page.locator(".verdict-words")).to_contain_text("SLACP over no repair in the whole run")
        ratio = page.locator(".verdict .number")
        wait_for(lambda: number(ratio.inner_text()) == pytest.approx(goodputs[0] / goodputs[1], rel=0.01))
        losses = page.locator(".tile").nth(2).locator(".number")
        shares = [100 * result["link"]["up"][name] for result in results for name in ("per", "residual_per")]
        wait_for(
            lambda: (
                [number(share) for figure in losses.all_inner_texts() for share in figure.split(" → ")]
                == pytest.approx(shares, abs=0.006)
            )
        )
        stage.play("slacp")
        expect(page.locator("#run-a")).to_have_value(stage.made_up.names[0])
        expect(page.locator("#run-b")).to_have_value("")
        expect(page.locator(".tile-note")).to_have_text([""] * 4)


# -- what it lets people do ------------------------------------------------------------------------------------


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


# -- past runs -------------------------------------------------------------------------------------------------


def names(stage: Stage) -> list[str]:
    return sorted(path.name for path in stage.runs.iterdir())


def test_past_runs_are_filtered_sorted_and_compared(browser: Browser, past: Stage) -> None:
    with visit(browser, past, "#/runs") as page:
        rows = page.locator("#runs tbody tr")
        expect(rows).to_have_count(3)
        page.get_by_label("Scenario", exact=True).last.select_option("sample")
        expect(rows).to_have_count(2)
        assert "scenario=sample" in page.url
        page.get_by_role("button", name="Goodput").click()
        expect(rows.first).to_contain_text("1.80 Mbit/s")
        page.get_by_role("button", name="Goodput").click()
        expect(rows.first).to_contain_text("900 kbit/s")
        compare = page.get_by_role("button", name="Compare")
        expect(compare).to_be_disabled()
        page.get_by_label("select 20260102-030405-sample-emulated-slacp-s1").check()
        page.get_by_label("select 20260102-030505-sample-emulated-none-s1").check()
        compare.click()
        expect(page.get_by_role("heading", name="Two runs side by side")).to_be_visible()
        expect(page.get_by_role("row", name="link.scheme slacp none")).to_be_visible()
        expect(page.get_by_role("row", name="goodput 1.80 Mbit/s 900 kbit/s 0.50 ×")).to_be_visible()
        expect(page.locator("#past [data-chart=goodput] canvas").first).to_be_visible()
        page.go_back()
        expect(rows).to_have_count(2)


def test_a_run_that_goes_on_is_not_listed_as_cut_short(browser: Browser, stage: Stage) -> None:
    stage.play("slacp")
    [live] = stage.made_up.names
    for name in (live, "20260102-030405-sample-emulated-slacp-s1"):
        (keep(stage.runs, name) / "summary.json").unlink()
    keep(stage.runs, "20260102-030505-sample-emulated-slacp-s1", finished=False)
    with visit(browser, stage, "#/runs") as page:
        rows = page.locator("#runs tbody tr").filter(has=page.get_by_label(f"select {live}"))
        expect(rows.locator(".remarks")).to_have_text("goes on")
        remarks = page.locator("#runs tbody tr .remarks")
        expect(remarks).to_have_text(
            ["goes on", "cut short", "no result: the run failed, was stopped or goes on"], use_inner_text=True
        )
        stage.stop()
        page.reload()
        expect(rows.locator(".remarks")).to_contain_text("no result")


def test_a_scheme_says_what_it_does(browser: Browser, stage: Stage) -> None:
    made = sorted(SCHEMES)
    for second, name in enumerate(made):
        keep(stage.runs, f"20260102-0304{second:02}-sample-emulated-{name}-s1", scheme=name)
    with visit(browser, stage, "#/runs?sort=scheme") as page:
        cells = page.locator("#runs tbody td:nth-child(5)")
        expect(cells).to_have_text([SCHEMES[name].label or name for name in made])
        assert [cell.get_attribute("title") for cell in cells.all()] == [SCHEMES[name].summary for name in made]
        snoop = made.index("snoop")
        page.locator("#runs tbody a").nth(snoop).click()
        expect(page.locator("#past .run-line")).to_contain_text(f"Snoop ({SCHEMES['snoop'].summary})")


def test_search_finds_words(browser: Browser, past: Stage) -> None:
    with visit(browser, past) as page:
        page.keyboard.press("/")
        expect(page.get_by_label("Search")).to_be_focused()
        page.keyboard.type("other")
        expect(page.locator("#runs tbody tr")).to_have_count(1)
        expect(page.locator("#announcer")).to_have_text("1 run")
        page.get_by_label("Search").fill("nowhere at all")
        expect(page.locator("#runs tbody tr")).to_have_count(0)
        expect(page.locator("#runs [data-status]")).to_have_text("No run fits.")


def test_what_is_seen_can_be_taken_away(browser: Browser, past: Stage) -> None:
    with visit(browser, past, f"#/run/{names(past)[0]}") as page:
        with page.expect_download() as plot:
            page.get_by_role("link", name="plot as png").last.click()
        assert plot.value.path().read_bytes().startswith(b"\x89PNG")
        with page.expect_download() as saved:
            page.get_by_role("link", name="all of it as one html file").last.click()
        assert f"<h2>{names(past)[0]}</h2>" in saved.value.path().read_text()
        with page.expect_download() as records:
            page.get_by_role("link", name="link as csv").last.click()
        rows = list(csv.DictReader(io.StringIO(records.value.path().read_text())))
        assert len(rows) == 160
        with page.expect_download() as parquet:
            page.get_by_role("link", name="flow as parquet").last.click()
        assert parquet.value.path().read_bytes().startswith(b"PAR1")


def test_an_unknown_run_is_one_line_and_shows_nothing_of_another_one(browser: Browser, past: Stage) -> None:
    a, b, _ = names(past)
    with visit(browser, past, f"#/compare/{a}/{b}", expect="status of 404") as page:
        problem = page.locator("[data-problem]")
        for address, words in {
            "#/run/nonsense": "there is no run of this name",
            f"#/compare/{a}/nonsense": "there is no run of this name",
            "#/run/": "the address names no run",
        }.items():
            expect(page.locator("#past .losses-count").first).to_be_visible()
            page.evaluate("address => { location.hash = address; }", address)
            expect(problem).to_have_text(words)
            heading = "Two runs side by side" if "compare" in address else "Run"
            expect(page.locator("#past")).to_have_text(re.compile(rf"^\s*{heading}\s*{words}\s*$"), use_inner_text=True)
            page.go_back()


# -- who can use it --------------------------------------------------------------------------------------------


def test_everything_that_can_be_used_has_a_name(browser: Browser, past: Stage) -> None:
    past.play()
    with visit(browser, past, token=True) as page:
        expect(page.locator("#live .chart canvas").first).to_be_visible()
        for address in ("#/", "#/demo", "#/runs", f"#/compare/{names(past)[0]}/{names(past)[1]}"):
            page.evaluate("address => { location.hash = address; }", address)
            page.wait_for_timeout(300)
            nameless = page.evaluate(
                """() => [...document.querySelectorAll("a, button, input, select, summary, [tabindex='0'], [role=img]")]
                    .filter((node) => node.checkVisibility())
                    .filter((node) => !(node.getAttribute("aria-label") || node.textContent.trim()
                        || [...(node.labels ?? [])].some((label) => label.textContent.trim())))
                    .map((node) => node.outerHTML.slice(0, 200))"""
            )
            assert not nameless, address


def test_everything_is_reached_by_keys_in_the_order_it_is_seen(browser: Browser, stage: Stage) -> None:
    stage.play("slacp")
    with visit(browser, stage, token=True) as page:
        address = page.url
        expect(page.locator("#live .chart canvas").first).to_be_visible()
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        place = page.locator(".skip").bounding_box()
        assert place is not None
        assert place["y"] >= 0
        order = []
        for _ in range(16):
            page.keyboard.press("Tab")
            order.append(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", order[-1]
        assert order[:5] == ["fadelab", "Live", "Demo", "Runs", "Campaigns"]
        assert order[5:10] == ["run-a", "run-b", "theme", "projector", "help"]
        assert order[10:16] == ["window-30", "window-120", "window-all", "up", "down", "both"]
        # Enter on the skip link leads past all that, and the address stays
        page.locator(".skip").press("Enter")
        expect(page.locator("#main")).to_be_focused()
        assert page.url == address
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_of_a_chart_are_told_apart_with_any_colour_vision(browser: Browser, past: Stage, scheme: str) -> None:
    a, b = names(past)[:2]
    with visit(browser, past, f"#/compare/{a}/{b}", color_scheme=scheme) as page:
        expect(page.locator("#past .chart").first).to_be_visible()
        page.get_by_role("button", name="both", exact=True).last.click()
        shown = page.evaluate(
            """() => Object.fromEntries([...document.querySelectorAll("#past .chart")].map((chart) => [
                chart.dataset.chart,
                [...chart.querySelectorAll(".chip")].map((chip) => {
                    const line = chip.querySelector("line");
                    return {
                        name: chip.getAttribute("aria-label"),
                        dash: line.getAttribute("stroke-dasharray"),
                        colour: line.getAttribute("stroke").match(/[0-9.]+/g).slice(0, 3).map(Number),
                        band: Number(line.getAttribute("stroke-width")) < 1.5,
                    };
                }),
            ]))"""
        )
    lines = {key: [line for line in chart if not line["band"]] for key, chart in shown.items()}
    # in each run: four kinds in each direction, and two flows
    assert len(lines["repairs"]) == 20
    # 10 is four times what is just noticeable
    alike = [
        (key, one["name"], other["name"])
        for key, chart in lines.items()
        for one, other in combinations(chart, 2)
        if one["dash"] == other["dash"] and apart(one["colour"], other["colour"]) < 10
    ]
    assert alike == []
    arq, fec, rebuilt, eln, tcp = (
        next(line for line in lines["repairs"] if line["name"] == f"{name} of A")
        for name in ("up retransmissions", "up FEC frames", "up FEC repairs", "up ELN marks", "bulk-1 TCP retransmits")
    )
    assert len({line["dash"] for line in (arq, fec, rebuilt, eln)}) == 4
    assert (arq["dash"], arq["colour"]) != (tcp["dash"], tcp["colour"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(browser: Browser, stage: Stage, scheme: str) -> None:
    """WCAG 2.2: 1.4.3 asks for 4.5 of text, 1.4.11 for 3 of lines and of what marks a control."""
    text = {
        ("ink", "surface"), ("ink", "ground"), ("ink", "raised"), ("muted", "surface"), ("muted", "ground"),
        ("muted", "raised"), ("accent", "surface"), ("accent", "ground"), ("on-accent", "accent"), ("good", "surface"),
        ("warn", "surface"), ("bad", "surface"), ("text-a", "surface"), ("text-b", "surface"),
    }  # fmt: skip
    lines = {"run-a", "run-a2", "run-b", "run-b2", "corruption", "given-up", "congestion", "note", "edge"}
    with visit(browser, stage, color_scheme=scheme) as page:
        surface = luminance(page, "surface")
        assert surface > 0.9 if scheme == "light" else surface < 0.05
        for front, back in text:
            assert contrast(page, front, back) >= 4.5, (front, back)
        for line in lines:
            assert contrast(page, line, "surface") >= 3, line


def contrast(page: Page, one: str, other: str) -> float:
    dark, bright = sorted((luminance(page, one), luminance(page, other)))
    return (bright + 0.05) / (dark + 0.05)


def luminance(page: Page, name: str) -> float:
    """Return the relative luminance of one of the page's colours (WCAG 2.2, "relative luminance")."""
    red, green, blue = page.evaluate(
        """(name) => {
            const probe = document.body.appendChild(document.createElement("span"));
            probe.style.color = `var(--${name})`;
            const colour = getComputedStyle(probe).color;
            probe.remove();
            return colour.match(/[0-9.]+/g).slice(0, 3).map(Number);
        }""",
        name,
    )
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red / 255, green / 255, blue / 255)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
