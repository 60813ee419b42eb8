"""Profiles, workloads, headers and parsers: what needs neither root nor a network."""

import os
import socket
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.engine.content import CHUNK, Stream
from hosts.engine.probe import TcpInfo
from hosts.errors import HostError
from hosts.kernel import network
from hosts.kernel.namespaces import enter, namespace_name
from hosts.kernel.probes import _interface_lines, _snmp_pairs
from hosts.kernel.profiles import PROFILES, profile
from hosts.kernel.tap import ethernet_headers, inherited_device, is_ip
from hosts.kernel.tcp_info import parse
from hosts.loop import READ, Loop


def test_the_reference_profile_is_the_papers() -> None:
    reference = PROFILES["reference"]
    assert (reference.initcwnd, reference.congestion_control, reference.delayed_ack) == (1, "reno", True)
    for name in ("sack", "window_scaling", "timestamps", "recovery", "early_retrans", "frto"):
        assert reference.sysctls[f"tcp_{name}"] == "0"


def test_only_cbi_saves_metrics() -> None:
    assert [each.name for each in PROFILES.values() if each.sysctls["tcp_no_metrics_save"] == "0"] == ["enhanced-cbi"]
    assert PROFILES["enhanced-cbi"].sysctls["tcp_no_ssthresh_metrics_save"] == "0"


@pytest.mark.parametrize(
    ("ask", "complaint"),
    [
        (lambda: profile("vegas"), r"no TCP profile 'vegas': choose from reno, .*, enhanced-daass$"),
        *((lambda run=run: namespace_name(run, "h1"), "run name") for run in ("", "../x", "a b", "x" * 49, "-x")),
        (lambda: enter("fadelab-none-h1"), "no network namespace fadelab-none-h1: start its run first"),
        (lambda: network.Network("none", mtu=60), "mtu 60"),
    ],
)
def test_what_cannot_be_is_one_line(ask: Callable[[], object], complaint: str) -> None:
    with pytest.raises(HostError, match=complaint):
        ask()


def test_without_rights_the_network_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "_capabilities", lambda: 0)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(HostError, match=r"^network namespaces need root: run with sudo or as root$"):
        network.Network("none").up()


def test_without_tun_the_network_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "_capabilities", lambda: -1)
    monkeypatch.setattr(network, "TUN_DEVICE", Path("/nonexistent"))
    with pytest.raises(HostError, match=r"^/dev/net/tun is missing: modprobe tun, or start the container"):
        network.Network("none").up()


@pytest.mark.parametrize("number", ["nought", "-1", "9" * 30, "NULL", "CLOSED"])
def test_a_tun_descriptor_that_is_none_is_one_line(number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Path(os.devnull).open() as null:
        closed = os.dup(null.fileno())
        os.close(closed)
        number = {"NULL": str(null.fileno()), "CLOSED": str(closed)}.get(number, number)
        monkeypatch.setenv("FADELAB_TUN_FD", number)
        with pytest.raises(HostError, match=rf"^FADELAB_TUN_FD={number} is no open descriptor of /dev/net/tun: unset"):
            inherited_device()


def test_without_a_tun_descriptor_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FADELAB_TUN_FD", "")
    assert inherited_device() is None
    monkeypatch.delenv("FADELAB_TUN_FD")
    assert inherited_device() is None


def test_the_ethernet_header_follows_the_ip_version() -> None:
    headers = ethernet_headers(b"\x02\0\0\0\0\1")
    assert headers[0x45] == b"\x02\0\0\0\0\1" * 2 + b"\x08\x00"
    assert headers[0x60] == b"\x02\0\0\0\0\1" * 2 + b"\x86\xdd"
    assert headers[0x00] is None
    assert is_ip(bytes(12) + b"\x08\x00E")
    assert not is_ip(bytes(12) + b"\x08\x06A")
    assert not is_ip(bytes(12) + b"\x08\x00")
    assert not is_ip(b"")


@given(st.lists(st.integers(1, 3 * CHUNK), max_size=4))
def test_both_ends_of_a_stream_agree_however_it_is_cut(sizes: list[int]) -> None:
    sender, receiver = Stream(7, "flow/0"), Stream(7, "flow/0")
    for size in sizes:
        data = b""
        while len(data) < size:
            piece = bytes(sender.peek(size - len(data)))
            sender.take(len(piece))
            data += piece
        assert receiver.agrees(data)
    assert sender.sha256() == receiver.sha256()
    assert sender.taken == sum(sizes)
    assert not receiver.agrees(bytes(9))


def tcp_info(length: int) -> bytes:
    payload = bytearray(length)
    payload[0] = 1
    struct.pack_into("=III", payload, 8, 204_000, 40_000, 1410)
    struct.pack_into("=IIII", payload, 68, 12_500, 100, 0x7FFFFFFF, 10)
    struct.pack_into("=IxxxxxxxxxxxxxxxxQ", payload, 100, 3, 5001)
    if length >= 208:
        struct.pack_into("=Q", payload, 200, 9230)
    if length >= 242:
        struct.pack_into("=H", payload, 240, 2)
    return bytes(payload)


def test_tcp_info_is_read_by_offset() -> None:
    expected = TcpInfo(14_100, None, 12.5, 204.0, 5000, 3, 2, 9230)
    assert parse(tcp_info(248)) == expected
    assert parse(tcp_info(280)) == expected
    assert parse(tcp_info(232)) == replace(expected, timeouts=None)
    assert parse(tcp_info(200)) == replace(expected, timeouts=None, bytes_sent=0)
    half_closed = b"\x05" + tcp_info(248)[1:]
    assert parse(half_closed).bytes_acked == 4999
    with pytest.raises(ValueError, match="tcp_info of 100 octets"):
        parse(bytes(100))


def test_counters_are_read_by_name() -> None:
    text = "Ip: A B\nIp: 1 2\nTcp: RetransSegs MaxConn\nTcp: 3 -1\n"
    assert _snmp_pairs(text) == {"RetransSegs": 3, "MaxConn": -1}
    lines = "head\nhead\n  fl0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
    assert _interface_lines(lines)["fl0"]["tx_dropped"] == 12


def test_the_loop_keeps_deadline_order_and_lets_callbacks_close_others() -> None:
    loop = Loop()
    calls: list[str] = []
    now = loop.now
    loop.at(now + 2, calls.append, "later")
    loop.at(now + 1, calls.append, "first")
    loop.at(now + 1, calls.append, "second")

    def first_wins(other: socket.socket) -> None:
        calls.append("read")
        loop.forget(other)
        loop.stop()

    # both can be read: each has sent the other something
    one, other = socket.socketpair()
    with one, other:
        loop.watch(one, READ, lambda: first_wins(other))
        loop.watch(other, READ, lambda: first_wins(one))
        one.send(b"x")
        other.send(b"x")
        loop.run()
    assert calls == ["first", "second", "later", "read"]
