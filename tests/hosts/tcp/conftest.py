"""Scripted tests run twice: with sequence numbers in the middle of their range, and with ones about to wrap."""

from functools import partial

import pytest

from tests.hosts.tcp.script import MakeScript, Script


@pytest.fixture(params=[(1000, 5000), (2**32 - 2999, 2**32 - 1999)], ids=["plain", "wrapping"])
def script(request: pytest.FixtureRequest) -> MakeScript:
    """Make scripts of these initial sequence numbers."""
    iss, irs = request.param
    return partial(Script, iss=iss, irs=irs)
