"""Ethernet devices (N210, X310, N310): the way to them, and the room for their samples.

Read first: UHD's manual, "Transport Application Notes"; `usrp2_impl.cpp`, `x300_eth_mgr.cpp` and
`mpmd_link_if_ctrl_udp.cpp`, which ask for socket buffers; X3x0's "Host PC Configuration" on MTU.
"""

import re
import socket
import struct
from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Address, IPv4Network
from subprocess import SubprocessError
from typing import NamedTuple

from testbed.cli.doctor.look import RADIO_JOB, Check, apt
from testbed.cli.doctor.usrp.case import ON_TIME, Case, Radio, made

#: Mbit/s of an interface whose driver does not tell
_GIGABIT = 1000
_TEN_GIGABIT = 10000
_MTU = {_GIGABIT: 1500, _TEN_GIGABIT: 9000}
#: usrp2_impl.cpp: half a second at the highest rate; the device's memory
_N210_BUFFERS = {"rmem_max": 50_000_000, "wmem_max": 1 << 20}
#: x300_eth_mgr.cpp and mpmd_link_if_ctrl_udp.cpp: 20 ms at the rate of the link
_BUFFER_S = 20e-3


class Route(NamedTuple):
    """A route of the kernel."""

    interface: str
    network: IPv4Network
    #: the next machine; 0.0.0.0: the device is on the interface's own network
    gateway: IPv4Address


def route(case: Case, radio: Radio) -> Check | None:
    """Whether an interface leads to the device without a router, and is up."""
    if not radio.ethernet or radio.address is None:
        return None
    found = _route_to(case, radio.address)
    if found is None or int(found.gateway):
        how = "no route" if found is None else f"only by the router at {found.gateway}"
        subnet = radio.address.rpartition(".")[0]
        remedy = f"give the device's interface an address beside it: ip address add {subnet}.1/24 dev INTERFACE"
        return radio.check("route", True, f"{how} to {radio.address}", remedy)
    down = case.read(f"/sys/class/net/{found.interface}/carrier") != "1"
    seen = f"{found.interface} leads to {radio.address}" + (" but has no carrier" if down else "")
    return radio.check("route", down, seen, f"check cable and power, then: ip link set {found.interface} up")


def mtu(case: Case, radio: Radio) -> Check | None:
    """Whether packets have the length that UHD's frames want."""
    interface = _interface(case, radio)
    if interface is None:
        return None
    fast = _mbps(case, interface) >= _TEN_GIGABIT
    have, need = _number(case, f"/sys/class/net/{interface}/mtu"), _MTU[_TEN_GIGABIT if fast else _GIGABIT]
    seen = f"{have} on {interface}" + (f", {need} needed" if have < need else "")
    # at 10 Gbit/s short packets are a matter of load only
    needed_for = (ON_TIME,) if fast and have >= _MTU[_GIGABIT] else (RADIO_JOB,)
    return radio.check("MTU", have < need, seen, f"ip link set {interface} mtu {need}", needed_for)


def rings(case: Case, radio: Radio) -> Check | None:
    """Whether the interface's rings of descriptors are as long as they can be."""
    interface = _interface(case, radio)
    if interface is None:
        return None
    try:
        said = case.rings(interface)
    except (OSError, SubprocessError):
        return radio.check("ring buffers", True, "cannot tell without ethtool", apt("ethtool"), (ON_TIME,))
    most, _, now = (part.lower() for part in said.partition("Current hardware settings"))
    have, can = ({name: _ring(part, name) for name in ("rx", "tx")} for part in (now, most))
    short = [name for name in have if have[name] < can[name]]
    seen = ", ".join(f"{name} {have[name]} of {can[name]}" for name in short or have)
    longest = " ".join(f"{name} {can[name]}" for name in short)
    return radio.check(
        "ring buffers", bool(short), f"{interface}: {seen}", f"ethtool -G {interface} {longest}", (ON_TIME,)
    )


def receive_buffer(case: Case) -> Check | None:
    """Whether the kernel allows the receive buffer that UHD asks for."""
    return _buffer(case, "receive buffers", "rmem_max")


def send_buffer(case: Case) -> Check | None:
    """Whether the kernel allows the send buffer that UHD asks for."""
    return _buffer(case, "send buffers", "wmem_max")


def _buffer(case: Case, name: str, key: str) -> Check | None:
    needs = [_buffer_bytes(case, radio, key) for radio in case.radios if radio.ethernet]
    if not needs:
        return None
    have, need = _number(case, f"/proc/sys/net/core/{key}"), max(needs)
    seen = f"net.core.{key} is {have}, UHD asks for {need}"
    return made(name, have < need, seen, f"sysctl -w net.core.{key}={need}", (ON_TIME,))


def _buffer_bytes(case: Case, radio: Radio, key: str) -> int:
    if (own := radio.argument("recv_buff_size" if key == "rmem_max" else "send_buff_size")) is not None:
        return int(float(own))
    if radio.kind == "usrp2":
        return _N210_BUFFERS[key]
    interface = _interface(case, radio)
    mbps = _GIGABIT if interface is None else _mbps(case, interface)
    return round(min(mbps, _TEN_GIGABIT) * 1e6 / 8 * _BUFFER_S)


def link_octets(case: Case, radio: Radio) -> float | None:
    """Return the octets per second of the interface that leads to a radio, or None."""
    interface = _interface(case, radio)
    return None if interface is None else _mbps(case, interface) * 1e6 / 8


def _interface(case: Case, radio: Radio) -> str | None:
    found = _route_to(case, radio.address) if radio.ethernet and radio.address is not None else None
    return None if found is None or int(found.gateway) else found.interface


def _route_to(case: Case, address: str) -> Route | None:
    try:
        to = IPv4Address(address)
    except AddressValueError:
        return None
    fitting = [route for route in _routes(case) if to in route.network]
    return max(fitting, key=lambda route: route.network.prefixlen, default=None)


def _routes(case: Case) -> Iterator[Route]:
    for line in case.read("/proc/net/route").splitlines()[1:]:
        interface, to, gateway, *_ = fields = line.split()
        # each number in the machine's order of bytes
        to, gateway, mask = (socket.inet_ntoa(struct.pack("=I", int(word, 16))) for word in (to, gateway, fields[7]))
        yield Route(interface, IPv4Network(f"{to}/{mask}"), IPv4Address(gateway))


def _mbps(case: Case, interface: str) -> int:
    """Return the speed of an interface; drivers that do not know it say -1 or nothing."""
    return max(_number(case, f"/sys/class/net/{interface}/speed"), 0) or _GIGABIT


def _number(case: Case, path: str) -> int:
    text = case.read(path)
    return int(text) if text.lstrip("-").isdigit() else 0


def _ring(text: str, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+)", text, re.MULTILINE)
    return 0 if found is None else int(found[1])
