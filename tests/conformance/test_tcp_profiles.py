"""What every TCP profile keeps to, of the userspace and of the kernel; a new one is covered when its file is there."""

import re
from dataclasses import replace

import pytest

from hosts.kernel.profiles import LINUX, PROFILES
from hosts.tcp.connection import State
from hosts.tcp.profiles import USER_PROFILES
from hosts.tcp.recovery import RECOVERIES
from tests.conformance.tcp_documents import DOCUMENT, rows
from tests.harness.scenarios import scenario
from tests.hosts.tcp.pair import Pair, Path, lose


@pytest.mark.parametrize("losses", [(), (3,), (5, 6, 7), (1,), tuple(range(10, 20)), (400,)])
@pytest.mark.parametrize("name", USER_PROFILES)
def test_a_transfer_is_delivered_whatever_is_lost(name: str, losses: tuple[int, ...]) -> None:
    config = replace(USER_PROFILES[name].config, mss=1000)
    up = Path(rate_bps=2_000_000, buffer_bytes=50_000, drop=lose(*losses))
    pair = Pair(config, up=up, octets=True)
    data = bytes(range(256)) * 1600
    pair.send(0, data)
    pair.run()
    assert pair.octets[1] == data
    assert pair.client.bytes_acked == pair.server.bytes_received == len(data)
    assert pair.client.error is pair.server.error is None
    assert pair.client.state is State.TIME_WAIT
    assert pair.server.state is State.CLOSED


@pytest.mark.parametrize("other", USER_PROFILES)
@pytest.mark.parametrize("name", USER_PROFILES)
def test_two_profiles_understand_each_other(name: str, other: str) -> None:
    configs = [replace(USER_PROFILES[each].config, mss=1000) for each in (name, other)]
    pair = Pair(configs[0], server_config=configs[1], up=Path(rate_bps=2_000_000, drop=lose(8, 9)))
    pair.send(0, 30_000)
    pair.send(1, 5_000)
    pair.run()
    assert pair.received == [5_000, 30_000]
    asked = {RECOVERIES[config.recovery].asks_for for config in configs}
    assert pair.client.sack_agreed is pair.server.sack_agreed is (asked == {"sack"})
    assert pair.client.timestamps_agreed is (configs[0].timestamps and configs[1].timestamps)
    assert pair.client.ecn_agreed is (configs[0].ecn and configs[1].ecn)


@pytest.mark.parametrize("name", PROFILES)
def test_scenarios_and_documents_have_the_kernels(name: str) -> None:
    assert scenario(tcp=name).tcp == name
    assert PROFILES[name].sysctls.keys() == LINUX.keys()
    for document in ("hosts.md", "scenarios.md"):
        assert re.search(rf"\b{name}\b", (DOCUMENT.parent / document).read_text())


@pytest.mark.parametrize("name", USER_PROFILES)
def test_scenarios_have_it(name: str) -> None:
    assert scenario(tcp=f"user:{name}").tcp == f"user:{name}"
    assert scenario(tier="model", tcp=name).tcp == name


@pytest.mark.parametrize("name", USER_PROFILES)
def test_the_document_has_it(name: str) -> None:
    # one that is a recovery or a growth of its own name stands in their tables as well, with its summary there
    assert rows("profile")[name] in (USER_PROFILES[name].summary, "the RFCs' options with that recovery (below)")
