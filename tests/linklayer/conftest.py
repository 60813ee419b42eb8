"""What the tests of packet filters run with, unless a test says otherwise."""

import pytest

from tcpip.access import Access
from tests.harness.base_station import ACCESSES


@pytest.fixture(params=ACCESSES, ids=lambda access: type(access).__name__)
def access(request: pytest.FixtureRequest) -> Access:
    """Packets are objects, and octets."""
    made: Access = request.param
    return made


@pytest.fixture(params=["ll", "ll-smart", "snoop", "snoop-smart"])
def scheme(request: pytest.FixtureRequest) -> str:
    """The schemes of Snoop's family."""
    return str(request.param)
