"""What every TCP profile keeps to, of the userspace and of the kernel; a new one is covered when its file is there."""

from collections.abc import Hashable

import pytest

from hosts.kernel.profiles import LINUX, PROFILES
from hosts.tcp.config import TcpConfig
from hosts.tcp.connection import Connection, State
from hosts.tcp.profiles import USER_PROFILES
from hosts.tcp.recovery import RECOVERIES
from tests.harness.endpoints import agreed
from tests.harness.scenarios import scenario
from tests.hosts.tcp.pair import FLOW, Pair, Path, lose


def handshake(config: TcpConfig) -> Hashable:
    """The options that the SYN of this TCP asks for: all that a handshake makes of a profile."""
    end = Connection(config, FLOW, 1000)
    end.connect(0)
    syn = end.poll_segment(0)
    assert syn is not None
    assert syn.syn is not None
    return (
        *(syn.flags, syn.timestamps is not None, syn.syn.window_scale is not None, syn.syn.sack_permitted),
        frozenset(syn.extra),
    )


def has_ecn(config: TcpConfig) -> bool:
    """Whether a TCP understands ECN, accurate or not."""
    return config.handshake.ecn or config.handshake.accecn


CONFIGS = {name: USER_PROFILES[name].config.but(mss=1000) for name in USER_PROFILES}
#: one profile of each handshake
HANDSHAKES = {handshake(config): name for name, config in CONFIGS.items()}


# the first segment, a few, many, and one in the last window
@pytest.mark.parametrize("losses", [(1,), (3, 25, 26, 27, *range(60, 70), 150)])
@pytest.mark.parametrize("name", USER_PROFILES)
def test_a_transfer_is_delivered_whatever_is_lost(name: str, losses: tuple[int, ...]) -> None:
    up = Path(rate_bps=2_000_000, buffer_bytes=50_000, drop=lose(*losses))
    pair = Pair(CONFIGS[name], up=up, octets=True)
    data = bytes(range(256)) * 600
    pair.send(0, data)
    pair.run()
    assert pair.octets[1] == data
    assert pair.client.bytes_acked == pair.server.bytes_received == len(data)
    assert pair.client.error is pair.server.error is None
    assert pair.client.state is State.TIME_WAIT
    assert pair.server.state is State.CLOSED


@pytest.mark.parametrize("name", USER_PROFILES)
def test_a_profile_understands_each_handshake(name: str) -> None:
    client = CONFIGS[name]
    for other in HANDSHAKES.values():
        server = CONFIGS[other]
        pair = Pair(client, server_config=server, up=Path(rate_bps=2_000_000, drop=lose(8, 9)))
        pair.send(0, 30_000)
        pair.send(1, 5_000)
        pair.run()
        assert pair.received == [5_000, 30_000], other
        asked = {RECOVERIES[config.recovery.name].asks_for for config in (client, server)}
        assert ("sack" in agreed(pair.client)) is ("sack" in agreed(pair.server)) is (asked == {"sack"}), other
        assert ("timestamps" in agreed(pair.client)) is (client.handshake.timestamps and server.handshake.timestamps), (
            other
        )
        assert ("ecn" in agreed(pair.client)) is (has_ecn(client) and has_ecn(server)), other


@pytest.mark.parametrize("name", PROFILES)
def test_scenarios_have_the_kernels(name: str) -> None:
    assert scenario(tcp=name).tcp == name
    assert PROFILES[name].sysctls.keys() == LINUX.keys()


@pytest.mark.parametrize("name", USER_PROFILES)
def test_scenarios_have_it(name: str) -> None:
    assert scenario(tcp=f"user:{name}").tcp == f"user:{name}"
    assert scenario(tier="model", tcp=name).tcp == name
