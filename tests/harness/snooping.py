"""A base station whose filter is one of Snoop's family."""

import re
from typing import Any

import pytest

from common.units import MS
from linklayer.filters.snoop import Snoop
from linklayer.filters.snoop_cache import Limits
from tcpip.access import Access
from tests.harness.base_station import BaseStation, make_filter

by_aware = pytest.mark.parametrize("scheme", ["snoop", "snoop-smart"])
by_selective = pytest.mark.parametrize("scheme", ["ll-smart", "snoop-smart"])


class SnoopStation(BaseStation):
    """A station that has seen nothing. The schemes that are not aware of TCP let pass what the others hold back."""

    filter: Snoop

    def __init__(self, access: Access, scheme: str = "snoop", limits: Limits | None = None, **options: Any) -> None:
        self.aware = scheme.startswith("snoop")

        def make(access: Access) -> Snoop:
            if limits is None:
                made = make_filter(scheme, access)
                assert isinstance(made, Snoop)
                return made
            return Snoop(access, suppresses=self.aware, selective=scheme.endswith("smart"), limits=limits)

        super().__init__(access, make, **options)

    def play(self, script: str) -> None:
        """As there, but `1-` passes with a scheme that holds nothing back. A filter at rest has nothing cached."""
        super().play(script if self.aware else re.sub(r"-(?=[x\s]|$)", "", script))
        assert self.filter.counters.retransmissions == len(self.repaired)
        assert not script.endswith("rest") or self.filter._cache.nbytes == 0


def flowing(access: Access, scheme: str = "snoop", limits: Limits | None = None, **options: Any) -> SnoopStation:
    """A station whose segment 0 was acknowledged after 20 ms."""
    station = SnoopStation(access, scheme, limits, **options)
    station.send(0)
    station.wait(20 * MS)
    assert station.ack(1) == [True]
    return station
