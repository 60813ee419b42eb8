"""A base station whose filter is one of Snoop's family."""

from typing import Any

import pytest

from linklayer.filters.snoop import Snoop
from linklayer.filters.snoop_cache import Limits
from tcpip.access import Access
from tests.harness.base_station import MS, BaseStation, make_filter

by_scheme = pytest.mark.parametrize("scheme", ["ll", "ll-smart", "snoop", "snoop-smart"])
by_aware = pytest.mark.parametrize("scheme", ["snoop", "snoop-smart"])
by_selective = pytest.mark.parametrize("scheme", ["ll-smart", "snoop-smart"])


def fresh(access: Access, scheme: str = "snoop", limits: Limits | None = None, **options: Any) -> BaseStation:
    """A station that has seen nothing."""
    suppresses, selective = scheme.startswith("snoop"), scheme.endswith("smart")

    def make(access: Access) -> Snoop:
        if limits is None:
            made = make_filter(scheme, access)
            assert isinstance(made, Snoop)
            return made
        return Snoop(access, suppresses=suppresses, selective=selective, limits=limits)

    return BaseStation(access, make, **options)


def flowing(access: Access, scheme: str = "snoop", limits: Limits | None = None, **options: Any) -> BaseStation:
    """A station whose segment 0 was acknowledged after 20 ms."""
    station = fresh(access, scheme, limits, **options)
    measure(station, 20 * MS)
    return station


def measure(station: BaseStation, rtt_ns: int) -> None:
    station.send(0)
    station.wait(rtt_ns)
    assert station.ack(1) == [True]


def snoop(station: BaseStation) -> Snoop:
    assert isinstance(station.filter, Snoop)
    return station.filter


def is_aware(scheme: str) -> bool:
    return scheme.startswith("snoop")
