"""The guided tour, hour after hour before a browser: `sudo .venv/bin/python -m benchmarks.unattended`.

A row tells of so many minutes: steps of the tour that were played, failed or late, errors in the browser, the delay
from a click to its effect (95 %), and what there is at the end of them. Memory is resident memory, that of dashboard
and database the least of these minutes: what a run needs comes and goes with it, what is never given back stays. The
page's heap is that after a collection. Compare later rows with the second: in the first, caches fill. At the end come
all errors, the requests that the server failed to answer, and what it has said on stderr.
"""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from statistics import quantiles

from playwright.sync_api import CDPSession, Page, Response

from benchmarks.common import Column, Results, parser
from benchmarks.dashboard import click_ms, watch_clicks
from benchmarks.processes import Memory, descriptors, entries, family, part, shared_bytes, threads
from dashboard.tour import LATE, STEPS
from hosts.kernel.namespaces import NETNS_DIR
from tests.harness.browser import chromium
from tests.harness.dashboards import FREE, Dashboard, running

_MIB = 1 / 2**20
#: between two looks at the tour
_LOOK_S = 0.5
_CLICK_S = 5.0
_SERVER_FAULT = 500
_COLUMNS = {
    "minute": Column("minute", ".1f"),
    "steps": Column("steps"),
    "failed": Column("failed"),
    "late": Column("late"),
    "errors": Column("errors"),
    "click_ms": Column("click", ".0f"),
    "dashboard_bytes": Column("dashboard", ".1f", _MIB),
    "database_bytes": Column("influxd", ".1f", _MIB),
    "page_bytes": Column("page", ".1f", _MIB),
    "nodes": Column("nodes"),
    "shared_bytes": Column("/dev/shm", ".1f", _MIB),
    "descriptors": Column("fds"),
    "threads": Column("threads"),
    "processes": Column("procs"),
    "namespaces": Column("netns"),
}


class Tour:
    """What the dashboard says of its tour, looked at again and again."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard
        self._phase = ""
        self.played = self.failed = self.late = 0
        #: in the dashboard's words
        self.sentences: list[str] = []

    def look(self) -> None:
        """Count the step whose result has come since the last look."""
        tour = self._dashboard.ask("/api/state")["tour"]
        if tour["phase"] == self._phase:
            return
        self._phase = tour["phase"]
        if self._phase in ("result", "failed"):
            self.played += 1
            self.failed += self._phase == "failed"
            self.late += tour["sentence"].endswith(LATE)
        if self._phase == "failed":
            self.sentences.append(f"{STEPS[tour['step']].name}: {tour['sentence']}")


def standing(dashboard: Dashboard, devtools: CDPSession) -> dict[str, float]:
    """What there is now of the dashboard, its page, and of what runs leave behind."""
    commands = family(dashboard.process.pid)
    server = dashboard.process.pid
    devtools.send("HeapProfiler.collectGarbage")
    page = {each["name"]: each["value"] for each in devtools.send("Performance.getMetrics")["metrics"]}
    return {
        "page_bytes": page["JSHeapUsedSize"],
        "nodes": page["Nodes"],
        "shared_bytes": shared_bytes(),
        "descriptors": descriptors(server),
        "threads": threads(server),
        "processes": len(commands),
        "namespaces": entries(NETNS_DIR),
    }


def watch(page: Page, tour: Tour, look: Callable[[], None], until: float) -> list[float]:
    """Look at the tour and click until then, a `look` with every click; return how long clicks took (ms)."""
    clicks: list[float] = []
    clicked = time.monotonic()
    while time.monotonic() < until:
        tour.look()
        if time.monotonic() > clicked + _CLICK_S:
            look()
            clicks.append(click_ms(page, "theme"))
            clicked = time.monotonic()
        page.wait_for_timeout(1000 * _LOOK_S)
    return clicks


def main() -> None:
    """Let the tour go on by itself before a browser."""
    options_of = parser(__doc__, seed=None)
    options_of.add_argument("--minutes", type=float, default=60.0, help="default 60")
    options_of.add_argument("--every", type=float, default=5.0, help="minutes of a row (default 5)")
    options = options_of.parse_args()
    results = Results(options, "vusrp, emulated", "memory in MiB, clicks in ms", _COLUMNS)
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryFile("w+") as said,
        running(*FREE, "--out", folder, "--tour", stderr=said) as dashboard,
        chromium() as browser,
    ):
        errors: list[str] = []
        page = browser.new_page(viewport={"width": 1920, "height": 1080})
        page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))

        def answered(response: Response) -> None:
            if response.status >= _SERVER_FAULT:
                errors.append(f"{response.status}: {response.url}")

        page.on("response", answered)
        page.goto(dashboard.page)
        watch_clicks(page)
        devtools = page.context.new_cdp_session(page)
        devtools.send("Performance.enable")
        tour, memory = Tour(dashboard), Memory()
        [database] = [pid for pid, command in family(dashboard.process.pid).items() if part(command) == "influxd"]
        groups = {"dashboard_bytes": [dashboard.process.pid], "database_bytes": [database]}
        start = time.monotonic()
        minute = 0.0
        while minute < options.minutes:
            minute = min(minute + options.every, options.minutes)
            clicks = watch(page, tour, partial(memory.look, groups), start + 60 * minute)
            results.add(
                minute=minute,
                steps=tour.played,
                failed=tour.failed,
                late=tour.late,
                errors=len(errors),
                click_ms=quantiles(clicks, n=20)[-1],
                **memory.least(),
                **standing(dashboard, devtools),
            )
        said.seek(0)
        # progress comes again and again on one line
        server = [line.split("\r")[-1] for line in said.read().split("\n") if line]
        for line in (*tour.sentences, *errors, *server):
            results.say(line)
        results.finish(sentences=tour.sentences, errors=errors, server=server)


if __name__ == "__main__":
    main()
