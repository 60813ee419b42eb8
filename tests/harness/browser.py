"""A dashboard with made-up runs, and a real browser on its page.

Read first: `made_up_runs.py`, whose runs these are. The page forbids `eval`, so tests wait for what they can see
(Playwright's locators) or ask again and again (`wait_for`), never with `wait_for_function`.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from playwright.sync_api import Browser, Page, expect, sync_playwright

from dashboard.app import DashboardConfig, Served, create_app, serve
from dashboard.control import RunRequest
from dashboard.hub import Hub
from dashboard.tour import Tour
from testbed.cli.docs.chromium import CHROMIUM, FLAGS
from tests.harness.made_up_runs import MadeUpRuns
from tests.harness.waiting import PATIENCE_S, wait_for

TOKEN = "a token of the tests"
#: as in `DashboardConfig`
Teller = Callable[[Path, float, str], Mapping[str, Any]]
expect.set_options(timeout=1000 * PATIENCE_S)


class Site(Protocol):
    """Something that serves the page: a `Stage`, or a dashboard in a process of its own."""

    @property
    def url(self) -> str:
        """Where the page is."""


class Stage:
    """A dashboard on a free port, whose run starter makes up runs; it can be stopped and started again on that port."""

    def __init__(self, runs: Path, *, token_to_read: bool = False, tell: Teller | None = None) -> None:
        self.runs = runs
        self._tell = tell
        self._token_to_read = token_to_read
        self._port = 0
        self._open = ExitStack()
        self.begin()

    def begin(self) -> None:
        """Serve a new dashboard, which knows of no run."""
        self.hub = Hub()
        self.made_up = self._open.enter_context(MadeUpRuns(self.hub))
        self.tour = Tour(self.made_up, story_s=0.1, result_s=0.5)
        self._open.callback(self.tour.close)
        config = DashboardConfig(
            self.hub,
            self.runs,
            TOKEN,
            starter=self.made_up,
            tour=self.tour,
            tell=self._tell,
            version="test",
            require_token_to_read=self._token_to_read,
        )
        self._served: Served = self._open.enter_context(serve(create_app(config), "127.0.0.1", self._port))
        self._port = self._served.port

    def end(self) -> None:
        self._open.close()

    def play(self, *schemes: str) -> None:
        self.made_up.start(RunRequest("made-up", "vusrp", schemes or ("none", "slacp"), 600, 1))

    def stop(self) -> None:
        for run in tuple(self.made_up._runs):
            run.controls.stop()
        wait_for(lambda: not self.made_up.names)

    @property
    def url(self) -> str:
        """Where the page is."""
        return self._served.url


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield opened
        opened.close()


@contextmanager
def visit(
    browser: Browser, site: Site, address: str = "", *, token: bool = False, expect: str = "", **context: Any
) -> Iterator[Page]:
    """Open the page in a browser of its own, and complain at the end of all it complained about.

    `expect` is a pattern for complaints that belong to the test.
    """
    complaints: list[str] = []
    with browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **context}) as window:
        page = window.new_page()
        page.set_default_timeout(1000 * PATIENCE_S)
        page.on("console", lambda message: complaints.append(message.text) if message.type != "log" else None)
        page.on("pageerror", lambda error: complaints.append(f"uncaught: {error}"))
        page.on("requestfailed", lambda request: complaints.append(f"failed: {request.url} {request.failure}"))
        # the answer to a token leads to the page
        page.goto(f"{site.url}/?token={TOKEN}{address}" if token else f"{site.url}/{address}")
        wait_for(
            lambda: page.locator("html[data-ready]").count(), explain=lambda: f"the page is not ready: {complaints}"
        )
        yield page
    # what was under way when the window closed is nobody's fault
    serious = [complaint for complaint in complaints if "ERR_ABORTED" not in complaint]
    unexpected = [complaint for complaint in serious if not (expect and re.search(expect, complaint))]
    assert not unexpected, unexpected


def number(words: str) -> float:
    """Return the number with which a figure begins; NaN, which fits nothing, of a figure that is not there yet."""
    try:
        return float(words.replace(",", "").replace("−", "-").split()[0])
    except (IndexError, ValueError):
        return math.nan


def pixels(page: Page, chart: str) -> str:
    """Return a live chart's picture, as text that differs when it does."""
    return pictures(page, f"[data-chart={chart}] canvas")[0]


def pictures(page: Page, *canvases: str) -> list[str]:
    """Return what is on the first canvas of each selector below the live view, likewise."""
    expect(page.locator(f"#live {canvases[0]}").first).to_be_visible()
    for canvas in canvases:
        # a chart gets its canvas with its first record
        expect(page.locator(f"#live {canvas}").first).to_be_attached()
    script = "selectors => selectors.map((one) => document.querySelector(`#live ${one}`).toDataURL())"
    return list(page.evaluate(script, list(canvases)))


def names_of(stage: Stage) -> list[str]:
    """The names of the runs in a stage's folder, sorted."""
    return sorted(path.name for path in stage.runs.iterdir())


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
