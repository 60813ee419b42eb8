"""`test`: every check and test of this repository in one go.

Rules kept: a failing step never hides a later one; output streams as it comes; the tests run last, those that need the
machine for themselves after the others; at the end stand the slowest tests and the totals.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

import click

from common.units import number_of
from testbed.cli.machine import sanitizers
from testbed.paths import root


@click.command(context_settings={"ignore_unknown_options": True}, epilog="docs/testing.md")
@click.option("--quick", is_flag=True, help="Only what needs no root, no radio and no browser: some minutes.")
@click.option("--compiled", is_flag=True, help="Compile the cores for all tests, as other commands use them.")
@click.option("--sanitize", is_flag=True, help="The parts in C++ under sanitizers and clang-tidy, and nothing else.")
@click.option("--coverage", is_flag=True, help="The quick tests of the cores with their coverage, and nothing else.")
@click.argument("pytest_args", nargs=-1, type=click.UNPROCESSED)
def test(pytest_args: tuple[str, ...], quick: bool, compiled: bool, sanitize: bool, coverage: bool) -> int:
    """Run every check and test: ruff, mypy, shellcheck, pytest.

    PYTEST_ARGS go to pytest: `fadelab test -- -k slacp`.
    """
    if quick + sanitize + coverage > 1:
        raise click.UsageError("--quick, --sanitize and --coverage: one of them")
    if compiled and sanitize + coverage:
        raise click.UsageError("--compiled is of the tests: leave out --sanitize and --coverage")
    if not sanitize:
        return run(pytest_args, quick=quick, compiled=compiled, coverage=coverage)
    if pytest_args:
        raise click.UsageError("--sanitize runs no pytest: leave out pytest's arguments")
    from testbed.campaigns.processes import cores

    return run_steps([Step(name, command) for name, command in sanitizers.commands(cores())])


COMMAND = test

_DOCKER = ("air", "healthy", "influxdb", "secrets", "service")
_SCRIPTS = ("fadelab", ".ci/run", "tests/fresh.sh", *(f"docker/{name}" for name in _DOCKER))
#: pytest's status when all tests were deselected
_NO_TESTS = 5
_SLOWEST = 20
#: reasons of skipped tests on a complete machine, and the most tests with each: other reasons fail in CI
_EXPECTED_SKIPS = {
    # no package of Debian's: its blocks stand beside ours where somebody has built them
    r"\bgr-ieee802-11\b": 60,
    # a packet as octets has no fields to change
    r"^octets cannot be changed$": 1,
    # their packages start services when they are installed
    r"^needs (irtt|nginx): apt-get install ": 1,
    # a shallow clone
    r"^this checkout has no whole history$": 1,
}


@dataclass(frozen=True, slots=True)
class Step:
    """One tool to run; `command` is None when the tool is not installed. `report`: where pytest writes its results.

    The cores are interpreted, unless they are to be `compiled`.
    """

    name: str
    command: tuple[str, ...] | None
    report: Path | None = None
    compiled: bool = False


def steps(pytest_args: Sequence[str], reports: Path, *, quick: bool = False, compiled: bool = False) -> list[Step]:
    """The steps in their order; `pytest_args` go to pytest as they are, results into the folder `reports`.

    `compiled`: all tests with compiled cores, not those of one part alone.
    """
    from testbed.campaigns.processes import cores

    def tests(part: str, *options: str) -> Step:
        step = _tests(part, (python, "-m", "pytest"), (*options, *pytest_args), reports)
        return replace(step, compiled=compiled or part == "compiled")

    def workers(count: int) -> tuple[str, ...]:
        # in the order of tests/harness/busy.py
        return f"--numprocesses={count}", "--dist=loadfile", "--no-loadscope-reorder"

    # one more than there are cores, for some tests wait for processes and for time
    many = workers(cores() + 1)
    python = sys.executable
    ours = (python, "-P", "-m", "testbed")
    parts = {"quick": many} if quick else {"parallel": many, "compiled": many, "light": many, "realtime": ()}
    return [
        Step("ruff check", (python, "-m", "ruff", "check", ".")),
        Step("ruff format", (python, "-m", "ruff", "format", "--check", ".")),
        Step("mypy", (python, "-m", "mypy")),
        Step("shellcheck", ("shellcheck", *_SCRIPTS) if shutil.which("shellcheck") else None),
        *([] if quick and not compiled else [Step("compile", (*ours, "compile"))]),
        *([] if quick else [Step("virtual", (*ours, "virtual", "--", "true"))]),
        *([] if quick else [Step("stock kernel", (python, "-P", "-m", "testbed.virtual.stock_kernel"))]),
        *(tests(part, *options) for part, options in parts.items()),
    ]


def coverage_steps(pytest_args: Sequence[str], reports: Path) -> list[Step]:
    """The steps of `--coverage`; as `steps`. What is measured, and how much must be covered, is in `pyproject.toml`."""
    coverage = (sys.executable, "-m", "coverage")
    return [
        _tests("cores", (*coverage, "run", "-m", "pytest"), pytest_args, reports),
        Step("coverage", (*coverage, "report")),
    ]


def _tests(part: str, pytest: Sequence[str], options: Sequence[str], reports: Path) -> Step:
    """The step of one part of the tests."""
    report = reports / f"{part}.xml"
    command = (*pytest, f"--part={part}", f"--junitxml={report}", *options)
    return Step(f"pytest, {part}", command, report)


def run(pytest_args: Sequence[str], *, quick: bool = False, compiled: bool = False, coverage: bool = False) -> int:
    """Run all steps, show them and a summary; returns 0 when none failed, else 1."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # a shell without job control starts background jobs so, and tests of Ctrl-C would inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with TemporaryDirectory(prefix="fadelab-test-") as folder:
        reports = Path(folder)
        if coverage:
            return run_steps(coverage_steps(pytest_args, reports))
        return run_steps(steps(pytest_args, reports, quick=quick, compiled=compiled))


def run_steps(chosen: Sequence[Step]) -> int:
    """Run steps, show them and a summary; returns 0 when none failed, else 1."""
    began = time.monotonic()
    failed, unchosen, results = [], 0, Results()
    for step in chosen:
        if step.command is None:
            tool = step.name.split()[0]
            _say(f"{step.name}: skipped, {tool} is not installed (apt-get install {tool})")
            if _in_ci():
                failed.append(f"{step.name}: {tool} is not installed")
            continue
        _say(step.name)
        step_began = time.monotonic()
        status = _stream(step.command, environment() | {"FADELAB_PURE": "0" if step.compiled else "1"})
        unchosen += step.report is not None and status == _NO_TESTS
        fine = status == 0 or (step.report is not None and status == _NO_TESTS)
        verdict = "ok" if fine else f"FAILED (status {status})"
        _say(f"{step.name}: {verdict} in {time.monotonic() - step_began:.1f} s")
        if not fine:
            failed.append(step.name)
        if step.report is not None and step.report.exists():
            results.add(step.report)
    reports = sum(step.report is not None for step in chosen)
    if reports and unchosen == reports:
        failed.append("pytest: no test was chosen")
    for line in results.unexpected_skips():
        _say(line)
        if _in_ci():
            failed.append(line)
    outcome = f"failed: {', '.join(failed)}" if failed else "all steps passed"
    if reports:
        print(results.slowest(_SLOWEST))
    _say(f"{outcome} ({time.monotonic() - began:.1f} s)")
    if reports:
        print(results.totals(), flush=True)
    return 1 if failed else 0


def _in_ci() -> bool:
    """Whether this is continuous integration, whose machine has everything: what is skipped there hides a failure."""
    return os.environ.get("CI") == "true"


class Results:
    """The outcomes of tests, as pytest's JUnit files give them."""

    def __init__(self) -> None:
        self._seconds: list[tuple[float, str]] = []
        self._outcomes = Counter[str]()
        self._skips = Counter[str]()

    def add(self, report: Path) -> None:
        """Take the tests of one file."""
        for case in ElementTree.parse(report).iter("testcase"):
            self._seconds.append((float(case.get("time", 0)), f"{case.get('classname')}::{case.get('name')}"))
            kinds = {child.tag for child in case}
            self._skips.update(str(child.get("message")) for child in case if child.tag == "skipped")
            if kinds & {"failure", "error"}:
                self._outcomes["failed"] += 1
            else:
                self._outcomes["skipped" if "skipped" in kinds else "passed"] += 1

    def slowest(self, count: int) -> str:
        """The slowest tests with their fixtures, a line each."""
        slowest = sorted(self._seconds, reverse=True)[:count]
        lines = [f"{seconds:7.2f} s  {_printable(name)}" for seconds, name in slowest]
        return "\n".join([f"== the slowest {len(lines)} of {len(self._seconds)} tests", *lines])

    def unexpected_skips(self) -> list[str]:
        """Return the reasons of skips that a complete machine does not have, with their numbers, a line each."""
        found = sorted(self._skips.items())
        return [
            f"{number_of(count, 'test')} skipped: {_printable(reason)}"
            for reason, count in found
            if not any(re.search(pattern, reason) and count <= most for pattern, most in _EXPECTED_SKIPS.items())
        ]

    def totals(self) -> str:
        """Return the numbers of tests that passed, failed and were skipped, in one line."""
        return ", ".join(f"{self._outcomes[kind]} {kind}" for kind in ("passed", "failed", "skipped"))


def _printable(name: str) -> str:
    return re.sub(r"[^\x20-\x7e]", "?", name)


def environment() -> dict[str, str]:
    """Return our environment with a place for bytecode: without it, every process of a test compiles all its imports.

    The place is not beside the sources: tests that run as root would leave root's files there.
    """
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {"PYTHONPYCACHEPREFIX": str(root() / ".build" / "pycache")} | ours


def _stream(command: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run one tool on our own terminal; when we are stopped, it gets the time to tidy up after itself."""
    with subprocess.Popen(command, cwd=root(), env=variables) as child:
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
