"""What is asked on the command line is done or refused."""

import os
import subprocess
import sys

import pytest

from tests.testbed.live_runs import ROOT

pytestmark = pytest.mark.slow


def collect(*args: str) -> tuple[int, str]:
    """Status and complaints of a pytest that only collects."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *args],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "args", [(), ("--radio", "vusrp"), ("--radio", "serial=1", "--radio", "serial=2", "--freq", "915e6")]
)
def test_radios_are_taken(args: tuple[str, ...]) -> None:
    assert collect("hil_tests", *args) == (0, "")


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("--radio", "serial=1"), "--radio serial=1: give vusrp alone, or two"),
        (("--radio", "serial=1", "--radio", "serial=1"), "two different radios"),
        (("--radio", "vusrp", "--radio", "serial=1"), "give vusrp alone"),
        (("--freq", "20e6"), "--freq: "),
    ],
)
def test_what_is_no_pair_of_radios_is_refused_in_one_line(args: tuple[str, ...], complaint: str) -> None:
    status, said = collect("hil_tests", *args)
    assert status == pytest.ExitCode.USAGE_ERROR
    assert complaint in said
    assert said.strip().count("\n") == 0
