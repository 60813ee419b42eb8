"""What holds for several workloads of a run together."""

import pytest

from hosts.errors import HostError
from hosts.workloads import check_ports
from hosts.workloads.bulk import Bulk
from hosts.workloads.onoff_udp import OnOffUdp
from hosts.workloads.short import Short


def test_two_flows_of_one_port_are_refused_with_both_names() -> None:
    parallel, other = Bulk(bytes=1, flows=3), Short(port=5003)
    with pytest.raises(HostError, match=r"^flows bulk-3 and short both use port 5003: give one another port$"):
        check_ports([parallel, other])


def test_two_flows_of_one_name_are_refused() -> None:
    with pytest.raises(HostError, match=r"^two flows are called bulk-2: give one another name$"):
        check_ports([Bulk(bytes=1, flows=2), Bulk(bytes=1, flow="bulk-2", port=6000)])


def test_flows_with_names_and_ports_of_their_own_are_taken() -> None:
    check_ports([Bulk(bytes=1, flows=2), Bulk(bytes=1, flow="bulk", port=5003), Short(), OnOffUdp()])
