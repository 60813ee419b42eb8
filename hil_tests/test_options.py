"""What is asked on the command line is done or refused."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hil_tests.conftest import Figures, pytest_addoption, pytest_configure
from hil_tests.report import Report


def configured(*args: str) -> None:
    """Let the tests' own options be read from a command line, and looked at."""
    parser = pytest.Parser(_ispytest=True)
    pytest_addoption(parser)
    given = parser.parse(args)
    config: Any = SimpleNamespace(
        getoption=lambda name, default: getattr(given, name[2:], default),
        stash=pytest.Stash(),
        invocation_params=SimpleNamespace(args=args),
    )
    pytest_configure(config)


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("--radio", "vusrp"),
        ("--radio", "serial=1", "--radio", "serial=2", "--freq", "915e6", "--cabled"),
        ("--radio", "serial=1", "--radio", "serial=2", "--region", "europe"),
        ("--radio", "type=vusrp,profile=b210,serial=1", "--radio", "type=vusrp,profile=b210,serial=2"),
    ],
)
def test_radios_are_taken(args: tuple[str, ...]) -> None:
    configured(*args)


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("--radio", "serial=1"), "--radio serial=1: give vusrp alone, or two"),
        (("--radio", "serial=1", "--radio", "serial=1"), "two different radios"),
        (("--radio", "vusrp", "--radio", "serial=1"), "give vusrp alone"),
        (("--radio", "serial=1", "--radio", "serial=2"), "would radiate: add --cabled when .* else --region europe or"),
        (("--freq", "20e6"), "--freq: "),
    ],
)
def test_what_is_no_pair_of_radios_is_refused_in_one_line(args: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(pytest.UsageError, match=complaint) as caught:
        configured(*args)
    assert "\n" not in str(caught.value)


def test_a_report_has_each_figure_beside_its_bound(tmp_path: Path) -> None:
    report = Report("pytest hil_tests")
    report.radios["ST"] = {"mboard_serial": "31<A1"}
    figures = Figures(report, "test_levels.py::test_level")
    figures.check("error of the level", 0.25, "dB", most=1.5)
    with pytest.raises(AssertionError, match=r"PER is 0\.2 , not ≤ 0\.1"):
        figures.check("PER", 0.2, most=0.1)
    report.outcomes["test_levels.py::test_level"] = ("failed", 1.25, "PER is 0.2 , not ≤ 0.1")
    report.drawings.append(tmp_path / "none.png")
    report.write(tmp_path / "report.html")
    written = (tmp_path / "report.html").read_text()
    assert "<h1>Radio tests: 1 failed</h1>" in written
    assert "<td>error of the level</td><td>0.25 dB</td><td>≤ 1.5</td>" in written
    assert '<tr class="failed"><td>test_levels.py::test_level</td><td>PER</td>' in written
    assert "31&lt;A1" in written
    assert '<tr class=""><td>UHD</td><td>' in written
