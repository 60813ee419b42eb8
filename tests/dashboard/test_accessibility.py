"""The page read by axe-core, which knows what keeps people from using a page (WCAG 2.2, levels A and AA)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.harness.browser import Stage, visit
from tests.harness.dashboard_runs import keep, records

pytestmark = pytest.mark.patient

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
A, B, CUT = (f"20260102-0{minute}05-sample-emulated-slacp-s1" for minute in (304, 305, 306))
#: addresses, and an element that is there when the page has what it shows
PAST = (
    ("#/runs", "#runs tbody tr"),
    ("#/campaigns", "#campaigns h1"),
    (f"#/run/{A}", "#past .chart canvas"),
    (f"#/run/{CUT}", "#past .problem:not(:empty)"),
    (f"#/compare/{A}/{B}", "#past .tables table"),
    ("#/run/nonsense", "#past [data-problem]:not(:empty)"),
)


@pytest.fixture(params=["light", "dark"])
def theme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    opened = Stage(tmp_path / "runs")
    for name, scheme in ((A, "slacp"), (B, "snoop"), (CUT, "none")):
        keep(opened.runs, name, records(1, 8.0), scheme=scheme)
    (opened.runs / CUT / "summary.json").unlink()
    yield opened
    opened.end()


def violations(page: Page) -> list[str]:
    """What axe-core finds: the rule and the elements."""
    found: list[dict[str, Any]] = Axe().run(page, options=RULES).response["violations"]
    return [f"{each['id']}: {[node['html'][:120] for node in each['nodes']]}" for each in found]


def test_it_finds_what_is_wrong(browser: Browser, stage: Stage) -> None:
    with visit(browser, stage, color_scheme="light") as page:
        page.evaluate(
            """() => {
                const wrong = "<p class=wrong>pale</p><button></button>";
                document.getElementById("main").insertAdjacentHTML("beforeend", wrong);
                document.querySelector(".wrong").style.color = "#999";
            }"""
        )
        assert {each.split(":")[0] for each in violations(page)} == {"color-contrast", "button-name"}


def test_past_runs_are_for_everybody(browser: Browser, stage: Stage, theme: str) -> None:
    with visit(browser, stage, color_scheme=theme, expect="status of 404") as page:
        for address, ready in PAST:
            page.evaluate("address => { location.hash = address; }", address)
            expect(page.locator(ready).first).to_be_visible()
            assert violations(page) == [], address


def test_the_demo_is_for_everybody(browser: Browser, stage: Stage, theme: str) -> None:
    with visit(browser, stage, "#/demo", token=True, color_scheme=theme) as page:
        expect(page.get_by_role("button", name="Start the demo")).to_be_visible()
        assert violations(page) == []
        stage.play()
        expect(page.locator("#demo .score-ratio .number")).to_contain_text("×")
        page.keyboard.press("i")
        # plain words on a phone, and terms in the presenter's view on a projector
        for width in (390, 1920):
            page.set_viewport_size({"width": width, "height": 1080})
            assert violations(page) == [], width
            page.keyboard.press("t")
            page.keyboard.press("p")
        stage.stop()
        expect(page.locator("#demo .score h2")).to_have_text("Result")
        assert violations(page) == []


@pytest.mark.parametrize("width", [390, 1280])
def test_the_live_view_is_for_everybody(browser: Browser, stage: Stage, theme: str, width: int) -> None:
    with visit(browser, stage, token=True, color_scheme=theme, viewport={"width": width, "height": 900}) as page:
        assert violations(page) == []
        stage.play()
        expect(page.get_by_role("slider", name="SNR")).to_be_enabled()
        # drawn where it is on the screen
        page.locator("#live .chart").first.scroll_into_view_if_needed()
        expect(page.locator("#live .chart canvas").first).to_be_visible()
        assert violations(page) == []
        page.keyboard.press("?")
        assert violations(page) == []
