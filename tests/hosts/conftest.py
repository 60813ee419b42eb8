"""The network of a file's tests."""

from collections.abc import Iterator

import pytest

from hosts.kernel.network import Network
from tests.hosts.harness import run_name


@pytest.fixture(scope="module")
def net() -> Iterator[Network]:
    with Network(run_name(), mtu=1450) as network:
        yield network
