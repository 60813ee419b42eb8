"""Samples the kernel's TCP connections and interfaces from outside the programs that use them.

Read first: sock_diag(7); include/uapi/linux/inet_diag.h; `hosts/kernel/tcp_info.py` for the fields.

Rules kept
- By netlink, never by parsing a program's output. One dump per sample for all flows takes well under 1 ms; DiagSocket
  of pyroute2 0.9 took 2 ms for ten sockets and 200 ms to import. The request is one fixed structure, built here.
- Counters of a flow never decrease: the counts of finished connections are kept and added.

Left out: IPv6 (off in our namespaces), UDP, receiving sides.
"""

import os
import socket
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

from typing_extensions import override

from hosts.engine.probe import Probe, TcpInfo
from hosts.errors import HostError
from hosts.kernel.tcp_info import SYN_SENT, parse
from telemetry.records import TcpRecord

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST, _NLM_F_DUMP = 0x1, 0x300
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_INET_DIAG_INFO = 2
#: all states (include/net/tcp_states.h) but TIME_WAIT, CLOSE and LISTEN
_CONNECTED = 0xFFF & ~(1 << 6 | 1 << 7 | 1 << 10)
_NLMSG_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBxI48s")  # family, protocol, extensions, states, sockid
_PORTS = struct.Struct(">HH")
_ATTRIBUTE = struct.Struct("=HH")
#: octets of struct inet_diag_msg
_DIAG_MSG_BYTES = 72


class TcpProbe(Probe):
    """Samples every TCP sender of the current namespace on a port with a flow name.

    `ports` names flows by the port they connect to.
    Of several connections under one name the last one listed is sampled. Raises HostError when the kernel
    has no socket diagnosis.
    """

    def __init__(self, host: str, ports: Mapping[int, str]) -> None:
        super().__init__(host)
        self._ports = dict(ports)
        self._retired: set[int] = set()
        try:
            self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
        except OSError as error:
            raise HostError(f"no socket diagnosis in this kernel: modprobe inet_diag ({error.strerror})") from None

    @override
    def sample(self, time_ns: int) -> list[TcpRecord]:
        records: dict[str, TcpRecord] = {}
        for local, remote, info in self._dump():
            flow = self._ports.get(remote)
            if flow is not None and info[0] != SYN_SENT and local not in self._retired:
                records[flow] = self.record(time_ns, flow, parse(info))
        return list(records.values())

    @override
    def retire(self, time_ns: int, flow: str, local_port: int, info: TcpInfo) -> TcpRecord | None:
        self._retired.add(local_port)
        return super().retire(time_ns, flow, local_port, info)

    @override
    def _timeouts(self, info: TcpInfo) -> int:
        """Before Linux 6.7 only the namespace as a whole counts them, which is exact for a single flow."""
        if info.timeouts is not None:
            return info.timeouts
        return _snmp_pairs(Path("/proc/thread-self/net/netstat").read_text())["TCPTimeouts"]

    def _dump(self) -> Iterator[tuple[int, int, bytes]]:
        body = _REQUEST.pack(socket.AF_INET, socket.IPPROTO_TCP, 1 << _INET_DIAG_INFO - 1, _CONNECTED, bytes(48))
        flags = _NLM_F_REQUEST | _NLM_F_DUMP
        header = _NLMSG_HEADER.pack(_NLMSG_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, flags, 1, 0)
        self._netlink.send(header + body)
        while True:
            answer = self._netlink.recv(1 << 17)
            offset = 0
            while offset < len(answer):
                length, kind, _, _, _ = _NLMSG_HEADER.unpack_from(answer, offset)
                message = answer[offset + _NLMSG_HEADER.size : offset + length]
                if kind == _NLMSG_DONE:
                    return
                if kind == _NLMSG_ERROR:
                    code = -int.from_bytes(message[:4], "little", signed=True)
                    raise HostError(f"socket diagnosis refused: {os.strerror(code)}")
                local, remote = _PORTS.unpack_from(message, 4)
                info = _attribute(message, _INET_DIAG_INFO)
                if info is not None:
                    yield local, remote, info
                offset += length + 3 & ~3


def _attribute(message: bytes, wanted: int) -> bytes | None:
    offset = _DIAG_MSG_BYTES
    while offset + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, offset)
        if kind == wanted:
            return message[offset + _ATTRIBUTE.size : offset + length]
        offset += length + 3 & ~3
    return None


def interface_counters_here() -> dict[str, dict[str, int]]:
    """Return rx/tx bytes, packets, errors and drops per interface of the current namespace."""
    return _interface_lines(Path("/proc/thread-self/net/dev").read_text())


def _interface_lines(text: str) -> dict[str, dict[str, int]]:
    counters: dict[str, dict[str, int]] = {}
    for line in text.splitlines()[2:]:
        name, _, rest = line.partition(":")
        values = [int(value) for value in rest.split()]
        keys = ("bytes", "packets", "errors", "dropped")
        rx = {f"rx_{key}": value for key, value in zip(keys, values[:4], strict=True)}
        tx = {f"tx_{key}": value for key, value in zip(keys, values[8:12], strict=True)}
        counters[name.strip()] = rx | tx
    return counters


def _snmp_pairs(text: str) -> dict[str, int]:
    """Parse lines that come in pairs, names then values, keeping the TCP ones."""
    lines = text.splitlines()
    counters: dict[str, int] = {}
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        if names.split(":")[0] in ("Tcp", "TcpExt"):
            counters.update(zip(names.split()[1:], map(int, values.split()[1:]), strict=True))
    return counters
