"""Faults of the dashboard, whose own runs go on meanwhile."""

import signal
import time
from functools import partial

from hosts.errors import HostError
from tests.harness.dashboards import FREE, Dashboard
from tests.harness.live_runs import children_once_up, crossed_bytes, running
from tests.harness.process_faults.stage import (
    SCHEMES,
    BusyError,
    Case,
    Stage,
    require,
    require_records,
    stopped,
    wait_for,
)


def _dashboard(fault: str, stage: Stage) -> None:
    command = stage.command("dashboard", *FREE, "--out", stage.runs)
    page = Dashboard(command.process)
    scheme, seed = stage.rng.choice(SCHEMES), stage.rng.randrange(1000)
    wanted = {"scenario": "lossy-link", "tier": "emulated", "schemes": [scheme], "seconds": 6, "seed": seed}
    page.ask("/api/start", wanted)
    children = stage.note(children_once_up(command.process, 4))
    octets = stage.rng.randrange(20_000, 300_000)
    try:
        wait_for(lambda: crossed_bytes(command.process) > octets, f"{octets} octets crossed")
    except HostError as error:
        raise BusyError(f"the run ended early: {error}") from None
    if fault == "paused":
        with stopped(command.pid):
            time.sleep(stage.rng.uniform(0.5, 3.0))
        wait_for((stage.only / "summary.json").exists, "the run's end")
        command.process.send_signal(signal.SIGTERM)
        command.end()
        require_records(stage.only)
        return
    command.process.kill()
    command.process.communicate()
    wait_for(lambda: not running(children), "the run's processes have ended")
    stage.clean(command.pid)
    again = stage.command("dashboard", *FREE, "--out", stage.runs)
    page = Dashboard(again.process)
    [row] = page.ask("/api/runs")["runs"]
    require(row["problem"], row)
    again.process.send_signal(signal.SIGTERM)
    again.end()


CASES = (
    Case("dashboard paused", "0.5 to 3 s: its run goes on, with records of both sides", partial(_dashboard, "paused")),
    Case(
        "dashboard killed",
        "its run's processes end; `clean` removes the rest; the next dashboard says that the run has no result",
        partial(_dashboard, "killed"),
    ),
)
