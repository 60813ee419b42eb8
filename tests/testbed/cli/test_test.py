"""What `fadelab test` runs, and what it says at the end."""

import shutil
import tomllib
from pathlib import Path

import pytest

from testbed.cli import app
from testbed.cli.machine import sanitizers
from testbed.cli.test import Results, Step, coverage_steps, environment, run_steps, steps
from testbed.paths import root
from tests.harness.live_runs import Capture, refused

REPORT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest">
<testcase classname="tests.a" name="test_fast" time="0.010"/>
<testcase classname="tests.a" name="test_slow[\u20ac]" time="2.500"/>
<testcase classname="tests.a" name="test_broken" time="1.000"><failure message="no"/></testcase>
<testcase classname="tests.b" name="test_absent" time="0.000"><skipped message="no radio"/></testcase>
<testcase classname="tests.b" name="test_unready" time="0.000"><error message="no"/></testcase>
</testsuite></testsuites>
"""


def test_totals_and_the_slowest_come_from_all_reports(tmp_path: Path) -> None:
    results = Results()
    for name in ("one.xml", "two.xml"):
        (tmp_path / name).write_text(REPORT, encoding="utf-8")
        results.add(tmp_path / name)
    assert results.totals() == "4 passed, 4 failed, 2 skipped"
    assert results.slowest(3).splitlines() == [
        "== the slowest 3 of 10 tests",
        "   2.50 s  tests.a::test_slow[?]",
        "   2.50 s  tests.a::test_slow[?]",
        "   1.00 s  tests.a::test_broken",
    ]


def test_quick_runs_one_part_of_pytest_and_the_whole_four(tmp_path: Path) -> None:
    def parts(*, quick: bool) -> list[str]:
        commands = [step.command for step in steps(("-k", "slacp"), tmp_path, quick=quick) if step.report is not None]
        assert all(command is not None and command[-2:] == ("-k", "slacp") for command in commands)
        return [word.removeprefix("--part=") for command in commands for word in command or () if "--part" in word]

    assert parts(quick=True) == ["quick"]
    assert parts(quick=False) == ["parallel", "compiled", "light", "realtime"]
    # only real-time tests that need the machine run without others
    alone = [
        step.name
        for step in steps((), tmp_path)
        if step.report is not None and not any("numprocesses" in word for word in step.command or ())
    ]
    assert alone == ["pytest, realtime"]


def test_cores_are_compiled_for_one_part_or_for_all(tmp_path: Path) -> None:
    def compiled(**options: bool) -> list[bool]:
        return [step.compiled for step in steps((), tmp_path, **options) if step.report is not None]

    assert compiled() == [False, True, False, False]
    assert compiled(compiled=True) == [True] * 4
    assert "compile" in [step.name for step in steps((), tmp_path, quick=True, compiled=True)]


def test_coverage_is_that_of_the_interpreted_cores_under_their_own_tests(tmp_path: Path) -> None:
    tests, report = coverage_steps(("-k", "slacp"), tmp_path)
    assert tests.command is not None
    assert tests.command[1:6] == ("-m", "coverage", "run", "-m", "pytest")
    assert "--part=cores" in tests.command
    assert tests.command[-2:] == ("-k", "slacp")
    assert not tests.compiled
    assert report.command == (*tests.command[:3], "report")
    measured = tomllib.loads((root() / "pyproject.toml").read_text())["tool"]["coverage"]["run"]
    assert measured["branch"]
    assert all((root() / folder).is_dir() for folder in measured["source"])


@pytest.mark.parametrize(
    "options", [("--quick", "--coverage"), ("--sanitize", "--coverage"), ("--quick", "--sanitize")]
)
def test_options_that_choose_the_tests_exclude_each_other(options: tuple[str, ...], capfd: Capture) -> None:
    assert "one of them" in refused(capfd, "test", *options)


def test_compiled_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Step] = []

    def run_steps(chosen: list[Step]) -> int:
        made.extend(chosen)
        return 0

    monkeypatch.setattr("testbed.cli.test.run_steps", run_steps)
    assert app.main(["test", "--quick", "--compiled"]) == 0
    assert [step.compiled for step in made if step.report is not None] == [True]


@pytest.mark.parametrize("other", ["--sanitize", "--coverage"])
def test_compiled_is_of_the_tests(other: str, capfd: Capture) -> None:
    assert "--compiled is of the tests" in refused(capfd, "test", "--compiled", other)


def test_bytecode_is_kept_apart_from_the_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    given = environment()
    assert "PYTHONDONTWRITEBYTECODE" not in given
    assert given["PYTHONPYCACHEPREFIX"] == str(root() / ".build" / "pycache")
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", "/elsewhere")
    assert environment()["PYTHONPYCACHEPREFIX"] == "/elsewhere"


def test_both_parts_in_cpp_run_under_both_sanitizers_and_clang_tidy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda tool: f"/usr/bin/{tool}")
    found = dict(sanitizers.commands(2))
    for part in ("native", "vusrp"):
        for build, flag in (("address", "-DSANITIZE=address,undefined"), ("thread", "-DSANITIZE=thread")):
            configure, test = found[f"configure {part}, {build}"], found[f"ctest {part}, {build}"]
            assert configure is not None
            assert test is not None
            assert flag in configure
            assert configure[configure.index("-B") + 1] == test[test.index("--test-dir") + 1]
        tidy = found[f"clang-tidy {part}"]
        assert tidy is not None
        assert tidy[-1] == f"flowgraphs/{part}/"
    monkeypatch.setattr(shutil, "which", lambda tool: None)
    assert dict(sanitizers.commands(2))["clang-tidy native"] is None


def skipping(folder: Path, reason: str, count: int = 1) -> Step:
    """A step whose report has skipped tests."""
    case = f'<testcase classname="t" name="t" time="0"><skipped message="{reason}"/></testcase>'
    report = folder / "report.xml"
    report.write_text(f"<testsuites><testsuite>{case * count}</testsuite></testsuites>")
    return Step("pytest", ("true",), report)


@pytest.mark.parametrize(
    ("reason", "count", "status"),
    [
        ("needs root and /dev/net/tun", 3, 1),
        ("gr-ieee802-11 is not installed, and is in no package archive: docs/install.md", 33, 0),
        # more than there are
        ("gr-ieee802-11 is not installed, and is in no package archive: docs/install.md", 100, 1),
        ("octets cannot be changed", 1, 0),
        # services that a test does not start; the other programs are installed for the tests
        ("needs nginx: apt-get install nginx", 1, 0),
        ("needs irtt: apt-get install irtt", 1, 0),
        ("needs nginx: apt-get install nginx", 2, 1),
        ("needs curl: apt-get install curl", 1, 1),
    ],
)
def test_unexpected_skip_fails_in_ci(
    reason: str, count: int, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    step = skipping(tmp_path, reason, count)
    monkeypatch.setenv("CI", "true")
    assert run_steps([step]) == status
    line = f"{count} test{'s' if count > 1 else ''} skipped: {reason}"
    assert (line in capfd.readouterr().out) == bool(status)
    monkeypatch.delenv("CI")
    assert run_steps([step]) == 0
    assert (line in capfd.readouterr().out) == bool(status)


def test_tool_that_is_missing_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    assert run_steps([Step("lint x", None)]) == 1


def test_a_step_that_fails_fails_the_run_and_hides_no_later_one(
    monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    monkeypatch.delenv("CI", raising=False)
    chosen = [Step("good", ("true",)), Step("bad", ("false",)), Step("late", ("echo", "reached")), Step("lint x", None)]
    assert run_steps(chosen) == 1
    said = capfd.readouterr().out
    assert "reached" in said
    assert "lint x: skipped, lint is not installed (apt-get install lint)" in said
    assert "== failed: bad (" in said
    assert run_steps(chosen[:1]) == 0
