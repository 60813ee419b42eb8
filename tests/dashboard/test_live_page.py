"""The page in a real browser: what it shows of runs that go on.

Every test fails on a complaint of the browser's: a script that fails, a request without an answer, a policy broken.
"""

import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import dashboard
from common.units import SECOND
from dashboard.charts import CHARTS
from dashboard.hub import RunInfo
from tests.harness.browser import Stage, luminance, names_of, number, pictures, pixels, visit
from tests.harness.dashboard_runs import LINK
from tests.harness.live_runs import folder_of, run_all
from tests.harness.scenarios import scenario
from tests.harness.waiting import wait_for

pytestmark = pytest.mark.patient

STATIC = Path(dashboard.__file__).parent / "static"
KEYS = tuple(chart.name for chart in CHARTS)


def test_all_modules_are_asked_for_at_once(browser: Browser, stage: Stage) -> None:
    with visit(browser, stage) as page:
        links = page.locator("link[rel=modulepreload]").all()
        asked = {Path(link.get_attribute("href") or "").name for link in links}
    assert asked | {"main.js"} == {path.name for path in STATIC.glob("*.js")}


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
        assert all(-50 < latency < 10_000 for latency in latencies)


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
        a, b, _ = names_of(past)
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
