"""Counters of all kinds begin at 0."""

from dataclasses import astuple
from typing import Any

import pytest

from hosts.tcp.counters import Counters
from linklayer.slacp.stats import SlacpCounters


@pytest.mark.parametrize("kind", [Counters, SlacpCounters])
def test_counters_begin_at_zero(kind: Any) -> None:
    assert set(astuple(kind())) == {0}
