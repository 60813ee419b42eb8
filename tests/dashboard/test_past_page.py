"""The page in a real browser: past runs, found, compared and taken away.

Every test fails on a complaint of the browser's: a script that fails, a request without an answer, a policy broken.
"""

import csv
import io
import re

import pytest
from playwright.sync_api import Browser, expect

from linklayer.schemes import SCHEMES
from tests.harness.browser import Stage, names_of, visit
from tests.harness.dashboard_runs import keep

pytestmark = pytest.mark.patient


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
    with visit(browser, past, f"#/run/{names_of(past)[0]}") as page:
        with page.expect_download() as plot:
            page.get_by_role("link", name="plot as png").last.click()
        assert plot.value.path().read_bytes().startswith(b"\x89PNG")
        with page.expect_download() as saved:
            page.get_by_role("link", name="all of it as one html file").last.click()
        assert f"<h2>{names_of(past)[0]}</h2>" in saved.value.path().read_text()
        with page.expect_download() as records:
            page.get_by_role("link", name="link as csv").last.click()
        rows = list(csv.DictReader(io.StringIO(records.value.path().read_text())))
        assert len(rows) == 160
        with page.expect_download() as parquet:
            page.get_by_role("link", name="flow as parquet").last.click()
        assert parquet.value.path().read_bytes().startswith(b"PAR1")


def test_an_unknown_run_is_one_line_and_shows_nothing_of_another_one(browser: Browser, past: Stage) -> None:
    a, b, _ = names_of(past)
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
