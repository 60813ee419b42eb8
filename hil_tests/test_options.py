"""What is asked on the command line is done or refused."""

from types import SimpleNamespace
from typing import Any

import pytest

from hil_tests.conftest import pytest_addoption, pytest_configure


def configured(*args: str) -> None:
    """Let the tests' own options be read from a command line, and looked at."""
    parser = pytest.Parser(_ispytest=True)
    pytest_addoption(parser)
    given = parser.parse(args)
    config: Any = SimpleNamespace(getoption=lambda name, default: getattr(given, name[2:], default))
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
