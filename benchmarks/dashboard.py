"""From probe to chart, and what the page costs: `sudo .venv/bin/python -m benchmarks.dashboard`.

Starts the dashboard with its demo (virtual radios, SLACP) and a headless browser on its page. Latency is the time from
a record's own time to the moment its point has been drawn, by the clock that all share. Steps of the SNR control say
how soon PER reacts, by the records' own times. Processor shares are those of one core.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import click
from playwright.sync_api import Page, sync_playwright

from telemetry.parquet import read_records

_CHROMIUM = "/usr/bin/chromium"
_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")


@contextmanager
def dashboard(runs: Path, *args: str) -> Iterator[tuple[str, int]]:
    """The dashboard as a process of its own; its page with the token, and its process id."""
    command = [sys.executable, "-m", "testbed", "dashboard", "--port", "0", "--influx-port", "0", "--out", str(runs)]
    with subprocess.Popen([*command, *args], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process.pid
        finally:
            process.terminate()
            process.wait(60)


@contextmanager
def browser(url: str) -> Iterator[Page]:
    """A page of a headless browser."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=_CHROMIUM, args=list(_FLAGS))
        page = chromium.new_page(viewport={"width": 1920, "height": 1080})
        page.goto(url)
        yield page
        chromium.close()


def family(pid: int) -> dict[int, str]:
    """A process and all below it: command lines by process id."""
    parents, commands = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int(re.sub(r".*\) . ", "", (entry / "stat").read_text()).split()[0])
                commands[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return {one: commands[one] for one in found if one in commands}


def spent_s(pid: int) -> float:
    """Processor time of a process's threads so far; 0 when it is gone.

    From the scheduler: what /proc/PID/stat says is sampled, and too high for threads that wake with the clock.
    """
    spent_ns = 0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError):
            spent_ns += int(task.read_text().split()[0])
    return spent_ns / 1e9


def part(command: str) -> str:
    """Which part of the whole a process is."""
    for name in ("testbed.live.station_process", "hosts.agent", "testbed dashboard", "influxd", "chromium"):
        if name in command:
            return name.removeprefix("testbed ").removeprefix("testbed.")
    return "other"


def reaction_s(runs: Path) -> list[float]:
    """From each lowering of the SNR to the first record in which the link up lost frames, by the records."""
    [folder] = [path.parent for path in runs.glob("*/control.parquet")]
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


@click.command()
@click.option("--seconds", default=30.0, show_default=True, help="Length of the measurement.")
@click.option("--steps", default=3, show_default=True, help="How often the SNR goes down and up again.")
@click.option("--json", "json_", is_flag=True)
def main(seconds: float, steps: int, json_: bool) -> None:
    """Measure the dashboard with its demo and a page live."""
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder)
        with dashboard(runs, "--demo") as (url, pid), browser(url) as page:
            wait_for(page, "(window.fadelab?.latency?.length ?? 0) > 50")
            page.evaluate("window.fadelab.latency.length = 0")
            run = next(run["name"] for run in ask(page, "/api/state")["live"] if run["live"])
            before = {one: spent_s(one) for one in (*family(pid), *family(os.getpid()))}
            start = time.monotonic()
            latencies: list[float] = []
            for step in range(2 * steps):
                page.wait_for_timeout(seconds * 1000 / (2 * steps))
                latencies += page.evaluate("window.fadelab.latency.splice(0)")
                ask(page, f"/api/runs/{run}/controls", {"name": "snr_db", "value": 10 if step % 2 == 0 else 20})
            elapsed = time.monotonic() - start
            commands = {**family(os.getpid()), **family(pid)}
            shares: dict[str, float] = {}
            for one, command in commands.items():
                share = (spent_s(one) - before.get(one, 0.0)) / elapsed
                shares[part(command)] = shares.get(part(command), 0.0) + share
        reactions = reaction_s(runs)
    figures: dict[str, Any] = {
        "points": len(latencies),
        "latency_ms": {"median": median(latencies), "p95": quantiles(latencies, n=20)[-1], "worst": max(latencies)},
        "reaction_s": reactions,
        "core_shares": shares,
    }
    if json_:
        print(json.dumps(figures))
        return
    latency = figures["latency_ms"]
    print(f"latency   median {latency['median']:.0f} ms, 95 % {latency['p95']:.0f} ms ({len(latencies)} points)")
    print(f"reaction  {', '.join(f'{s:.2f} s' for s in reactions)} from SNR lowered to PER risen")
    for name, share in sorted(shares.items(), key=lambda item: -item[1]):
        print(f"{share:8.0%} of a core  {name}")


def wait_for(page: Page, expression: str) -> None:
    """Wait until something holds on the page, whose policy forbids Playwright's own way."""
    give_up_at = time.monotonic() + 60
    while not page.evaluate(expression):
        if time.monotonic() > give_up_at:
            raise click.ClickException(f"nothing came of {expression}")
        page.wait_for_timeout(100)


def ask(page: Page, path: str, body: dict[str, Any] | None = None) -> Any:
    """Ask the dashboard as its page does; with a body, to change something."""
    return page.evaluate(
        """async ([path, body]) => {
            const headers = {'Content-Type': 'application/json'};
            const asked = body ? {method: 'POST', headers, body: JSON.stringify(body)} : {};
            const answer = await fetch(path, asked);
            if (!answer.ok) throw new Error(await answer.text());
            return answer.json();
        }""",
        [path, body],
    )


if __name__ == "__main__":
    main()
