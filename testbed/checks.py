"""Every check and test of this repository in one go: the work of `./fadelab test`.

Rules kept: a failing step never hides a later one; output streams as it comes; pytest runs last, so that its
closing line stands at the end, followed only by the summary.
"""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from testbed.paths import root

_SCRIPTS = ("fadelab", ".ci/run", *(f"docker/{name}" for name in ("air", "healthy", "influxdb", "secrets", "service")))


class Step(NamedTuple):
    """One tool to run; `command` is None when the tool is not installed."""

    name: str
    command: tuple[str, ...] | None


def steps(pytest_args: Sequence[str]) -> list[Step]:
    """The steps in their order; `pytest_args` go to pytest as they are."""
    python = sys.executable
    return [
        Step("ruff check", (python, "-m", "ruff", "check", ".")),
        Step("ruff format", (python, "-m", "ruff", "format", "--check", ".")),
        Step("mypy", (python, "-m", "mypy")),
        Step("shellcheck", ("shellcheck", *_SCRIPTS) if shutil.which("shellcheck") else None),
        Step("pytest", (python, "-m", "pytest", *pytest_args)),
    ]


def run(pytest_args: Sequence[str]) -> int:
    """Run all steps, show them and a summary; returns 0 when none failed, else 1."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell without job control starts what it puts into the background so, and tests of Ctrl-C would inherit it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    began = time.monotonic()
    failed = []
    for step in steps(pytest_args):
        if step.command is None:
            _say(f"{step.name}: skipped, {step.name} is not installed (apt-get install {step.name})")
            continue
        _say(step.name)
        step_began = time.monotonic()
        status = _stream(step.command)
        verdict = "ok" if status == 0 else f"FAILED (status {status})"
        _say(f"{step.name}: {verdict} in {time.monotonic() - step_began:.1f} s")
        if status != 0:
            failed.append(step.name)
    outcome = f"failed: {', '.join(failed)}" if failed else "all steps passed"
    _say(f"{outcome} ({time.monotonic() - began:.1f} s)")
    return 1 if failed else 0


def _stream(command: Sequence[str]) -> int:
    """Run one tool on our own terminal; when we are stopped, it gets the time to tidy up after itself."""
    with subprocess.Popen(command, cwd=root()) as child:
        try:
            return child.wait()
        except KeyboardInterrupt:
            # The terminal's Ctrl-C has reached the child as well.
            child.wait()
            raise
        except BaseException:
            child.send_signal(signal.SIGINT)
            child.wait()
            raise


def _say(text: str) -> None:
    print(f"== {text}", flush=True)
