"""A browser and a database for the tests of the dashboard."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.harness.browser import chromium
from tests.telemetry.conftest import influx, server

__all__ = ["influx", "server"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened
