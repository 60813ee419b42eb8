"""From probe to chart, and what the page costs: `sudo .venv/bin/python -m benchmarks.dashboard`.

Starts the dashboard with its demo (virtual radios, SLACP) and a headless browser on its page. Latency is the time from
a record's own time to the moment its point has been drawn, by the clock that all share. An answer is the time from a
click to the frame that shows its effect, or from a change that is posted to the server's reply. Steps of the SNR
control say how soon PER reacts, by the records' own times. Processor shares are those of one core. With `--burn`, a
program at the ordinary priority keeps one core busy besides.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles

from playwright.sync_api import Page

from benchmarks.common import parser, whole
from benchmarks.processes import family, part, spent_s
from telemetry.parquet import read_records
from tests.harness.browser import chromium
from tests.harness.dashboards import FREE, Dashboard, running
from tests.harness.waiting import wait_for


@contextmanager
def shown(dashboard: Dashboard) -> Iterator[Page]:
    """The dashboard's page in a headless browser; the page notes how late its points are drawn."""
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1920, "height": 1080})
        # the demo's own view, to which the address leads, has none of these buttons
        page.goto(dashboard.page.partition("#")[0] + "#/")
        yield page


def settle(page: Page) -> None:
    """Wait until points are drawn steadily, and forget how late the first ones were."""
    wait_for(lambda: page.evaluate("(window.fadelab?.latency?.length ?? 0) > 50"))
    page.evaluate("window.fadelab.latency.length = 0")


_BETWEEN_CLICKS_MS = 500
#: buttons that change what the page shows, and nothing of the run
_BUTTONS = ("window-30", "window-120", "window-all", "theme")
#: notes when the frame after a click has been handed to the screen
_WATCH_CLICKS = """() => {
  const painted = new MessageChannel();
  painted.port1.onmessage = () => { window.answered = Date.now(); };
  document.addEventListener("click", () => requestAnimationFrame(() => painted.port2.postMessage(null)), true);
}"""


def watch_clicks(page: Page) -> None:
    """Let a page note when clicks are answered, for `click_ms`."""
    page.evaluate(_WATCH_CLICKS)


def click_ms(page: Page, button: str) -> float:
    """How long a click with the mouse takes until its effect is drawn."""
    box = page.locator(f"#{button}").bounding_box()
    assert box is not None
    page.evaluate("window.answered = 0")
    start = time.time()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    answered = wait_for(lambda: page.evaluate("window.answered"))
    return float(answered) - start * 1000


@contextmanager
def busy_core(wanted: bool) -> Iterator[None]:
    """A program that keeps one core busy."""
    program = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if wanted else None
    try:
        yield
    finally:
        if program is not None:
            program.kill()
            program.wait()


def tails(values: list[float]) -> dict[str, float]:
    """Return median, 95th percentile and worst."""
    return {"median": median(values), "p95": quantiles(values, n=20)[-1], "worst": max(values)}


def reaction_s(folder: Path) -> list[float]:
    """From each lowering of the SNR to the first record in which the link up lost frames, by a run's records."""
    lowered = [
        row["time_ns"]
        for row in read_records(folder, "control")
        if row["name"] == "snr_db" and float(json.loads(row["value"])) < 15
    ]
    rows = [row for row in read_records(folder, "phy") if row["link"] == "up" and row["per"]]
    return [
        (min(row["time_ns"] for row in rows if row["time_ns"] > at) - at) / 1e9
        for at in lowered
        if any(row["time_ns"] > at for row in rows)
    ]


def main() -> None:
    """Measure the dashboard with its demo and a page live."""
    options_of = parser(__doc__, seed=None)
    options_of.add_argument("--seconds", type=float, default=30.0, help="length of the measurement (default 30)")
    options_of.add_argument("--steps", type=whole(1), default=3, help="how often the SNR goes down and up again")
    options_of.add_argument("--burn", action="store_true", help="keep one core busy by another program")
    options = options_of.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder)
        with (
            busy_core(options.burn),
            running(*FREE, "--out", runs, "--demo") as dashboard,
            shown(dashboard) as page,
        ):
            settle(page)
            watch_clicks(page)
            pid = dashboard.process.pid
            run = wait_for(dashboard.live)["name"]
            before = {one: spent_s(one) for one in (*family(pid), *family(os.getpid()))}
            start = time.monotonic()
            latencies: list[float] = []
            clicks: list[float] = []
            replies: list[float] = []
            for step in range(2 * options.steps):
                until = start + options.seconds * (step + 1) / (2 * options.steps)
                while time.monotonic() < until:
                    clicks += [click_ms(page, button) for button in _BUTTONS]
                    page.wait_for_timeout(_BETWEEN_CLICKS_MS)
                latencies += page.evaluate("window.fadelab.latency.splice(0)")
                asked = time.monotonic()
                dashboard.ask(f"/api/runs/{run}/controls", {"name": "snr_db", "value": 10 if step % 2 == 0 else 20})
                replies.append((time.monotonic() - asked) * 1000)
            elapsed = time.monotonic() - start
            shares: dict[str, float] = {}
            for one, command in {**family(os.getpid()), **family(pid)}.items():
                share = (spent_s(one) - before.get(one, 0.0)) / elapsed
                shares[part(command)] = shares.get(part(command), 0.0) + share
        reactions = reaction_s(runs / run)
    latency, clicked, replied = tails(latencies), tails(clicks), tails(replies)
    if options.json:
        figures = {
            "latency_ms": latency,
            "points": len(latencies),
            "click_ms": clicked,
            "clicks": len(clicks),
            "reply_ms": replied,
            "reaction_s": reactions,
            "core_shares": shares,
        }
        print(json.dumps({"tier": "vusrp", **figures}))
        return
    print(f"tier vusrp, the demo, {options.seconds:g} s")
    for name, values, found in (
        ("latency", latencies, latency),
        ("clicks", clicks, clicked),
        ("replies", replies, replied),
    ):
        print(
            f"{name:8}  median {found['median']:.0f} ms, 95 % {found['p95']:.0f} ms, worst {found['worst']:.0f} ms "
            f"({len(values)})"
        )
    print(f"reaction  {', '.join(f'{s:.2f} s' for s in reactions)} from SNR lowered to PER risen")
    for name, share in sorted(shares.items(), key=lambda item: -item[1]):
        print(f"{share:8.0%} of a core  {name}")


if __name__ == "__main__":
    main()
