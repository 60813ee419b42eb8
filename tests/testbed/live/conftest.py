"""What every real run is held to."""

import os
from collections.abc import Iterator

import pytest

from flowgraphs.air import Air
from tests.harness.live_runs import left_behind


@pytest.fixture(autouse=True)
def _nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if request.node.get_closest_marker("net"):
        assert left_behind(os.getpid()) == []
        assert [name for name in Air.names() if name.startswith(f"run-{os.getpid()}-")] == []
