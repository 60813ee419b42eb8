"""Transfers over the kernel's MPTCP, and the state of their subflows.

Read first: RFC 8684; include/uapi/linux/mptcp.h of the kernel for the structures; `tcp_flows.py`, whose ends these are.

Rules kept
- The scheduler and the path manager are the kernel's; which subflows there may be is the namespaces' (`network.py`).
- A connection that the kernel has let fall back to plain TCP says so in its result.
- The octets of a path are those of all its subflows. Of one that has ended they are those of the last look at it, at
  most a probe's interval before.

Left out: subflows of the receiving end, whose octets are the sender's.
"""

import ctypes
import errno
import os
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from typing_extensions import override

from hosts.engine.context import Context
from hosts.engine.probe import Probe, TcpInfo
from hosts.engine.results import Subflow
from hosts.engine.streams import HasSent, SendingEnd, Transfer
from hosts.errors import HostError
from hosts.kernel.tcp_flows import KernelSender, KernelTcp
from hosts.kernel.tcp_info import of_socket, parse
from hosts.loop import Loop
from telemetry.records import TcpRecord, path_name

# linux/socket.h and linux/mptcp.h
_SOL_MPTCP = 284
_MPTCP_TCPINFO, _MPTCP_SUBFLOW_ADDRS = 2, 3
#: struct mptcp_subflow_data: its own size, subflows, size of an entry for the kernel and for us
_SUBFLOW_DATA = struct.Struct("=IIII")
#: struct mptcp_subflow_addrs: local and remote, a struct sockaddr_storage each
_ADDRESSES_BYTES, _STORAGE_BYTES = 256, 128
#: of a struct sockaddr_in: family in the order of the machine, port and address in that of the network
_FAMILY, _PORT_ADDRESS = struct.Struct("=H"), struct.Struct(">H4s")
#: more than any kernel's tcp_info
_TCP_INFO_BYTES = 512
#: the kernel has eight at most (MPTCP_SUBFLOWS_MAX)
_MOST_SUBFLOWS = 8

FALLBACK: Final = "plain TCP in place of MPTCP: the kernel let the connection fall back"

_libc = ctypes.CDLL(None, use_errno=True)


class Ends(NamedTuple):
    """Addresses and ports of one subflow."""

    local: tuple[str, int]
    remote: tuple[str, int]


class KernelMptcp(KernelTcp):
    """The MPTCP of the current namespace.

    `peers`: the other host's address on each path, the first path first. `control`: the congestion control of all
    subflows, whose routes do not decide it: those that join get the connection's. None: the namespace's.
    Raises HostError where the kernel has no MPTCP.
    """

    def __init__(self, context: Context, loop: Loop, peers: Sequence[str], control: str | None) -> None:
        super().__init__(context, loop)
        self._paths = {address: 1 + index for index, address in enumerate(peers)}
        self._control = control
        self._probe = _SubflowProbe(context.host)
        self._senders: list[MptcpSender] = []
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP) as fresh:
                told = subflows_of(fresh)
        except OSError as error:
            raise HostError(
                f"this kernel has no MPTCP on host {context.host}: {error.strerror} (CONFIG_MPTCP, net.mptcp.enabled)"
            ) from None
        if told is None:
            raise HostError("this kernel does not tell of MPTCP's subflows: Linux 5.16 is needed")

    @property
    @override
    def _protocol(self) -> int:
        return socket.IPPROTO_MPTCP

    @override
    def send(self, transfer: Transfer, paused: bool, done: HasSent) -> SendingEnd:
        control = transfer.congestion_control or self._control
        sender = MptcpSender(
            self._context,
            self._loop,
            replace(transfer, congestion_control=control),
            paused,
            done,
            paths=self._paths,
            probe=self._probe,
        )
        self._senders.append(sender)
        return sender

    @override
    def sample(self, time_ns: int) -> list[TcpRecord]:
        self._senders = [sender for sender in self._senders if not sender.ended]
        return [record for sender in self._senders if sender.connected for record in sender.sample(time_ns)]


class MptcpSender(KernelSender):
    """The sending end of an MPTCP socket; its records are those of its paths, named `FLOW/1`, `FLOW/2`."""

    def __init__(
        self,
        context: Context,
        loop: Loop,
        transfer: Transfer,
        paused: bool,
        done: HasSent,
        *,
        paths: Mapping[str, int],
        probe: "_SubflowProbe",
    ) -> None:
        self._paths = paths
        self._records_of = probe
        #: the newest state of every subflow so far; of a connection that has fallen back, of its only one
        self._states: dict[Ends, TcpInfo] = {}
        self._fell_back = False
        super().__init__(context, loop, transfer, paused, done, protocol=socket.IPPROTO_MPTCP, probe=probe)

    def sample(self, time_ns: int) -> list[TcpRecord]:
        """Return a record of each path that has had a subflow."""
        self._look()
        return [
            self._records_of.record(time_ns, self._name(path), info) for path, info in sorted(self._by_path().items())
        ]

    @override
    def _shut_down(self) -> None:
        super()._shut_down()
        self._look()

    @override
    def _let_go(self) -> tuple[int, TcpInfo]:
        self._look()
        local_port, info = super()._let_go()
        paths = self._by_path()
        if self.connected:
            for path, state in sorted(paths.items()):
                record = self._records_of.retire(self._context.time_ns, self._name(path), local_port, state)
                if record is not None:
                    self._context.emit(record)
        return local_port, replace(
            _together(info, list(paths.values())),
            fallback=FALLBACK if self.connected and self._fell_back else None,
            subflows=tuple(
                Subflow(
                    path=path,
                    bytes_acked=state.bytes_acked,
                    bytes_sent=state.bytes_sent,
                    retransmits=state.retransmits,
                    timeouts=state.timeouts or 0,
                )
                for path, state in sorted(paths.items())
            ),
        )

    def _name(self, path: int) -> str:
        return path_name(self._transfer.flow, path)

    def _look(self) -> None:
        found = subflows_of(self._socket)
        self._fell_back |= found is None
        if found is None:
            found = {Ends(self._socket.getsockname(), self._transfer.address): of_socket(self._socket)}
        self._states.update(found)

    def _by_path(self) -> dict[int, TcpInfo]:
        """Return the state of each path: that of its newest subflow, with the counts of all."""
        grouped: dict[int, list[TcpInfo]] = {}
        for ends, info in self._states.items():
            grouped.setdefault(self._paths[ends.remote[0]], []).append(info)
        return {path: _together(infos[-1], infos) for path, infos in grouped.items()}


class _SubflowProbe(Probe):
    """Records of subflows, under the names of their paths. A connection as a whole has none."""

    @override
    def sample(self, time_ns: int) -> list[TcpRecord]:
        return []

    @override
    def retire(self, time_ns: int, flow: str, local_port: int, info: TcpInfo) -> TcpRecord | None:
        return None if info.subflows else super().retire(time_ns, flow, local_port, info)

    @override
    def _timeouts(self, info: TcpInfo) -> int:
        return info.timeouts or 0


def _together(newest: TcpInfo, infos: Sequence[TcpInfo]) -> TcpInfo:
    """Return the newest state with the counts of all these."""
    if not infos:
        return newest
    return replace(
        newest,
        bytes_acked=sum(info.bytes_acked for info in infos),
        bytes_sent=sum(info.bytes_sent for info in infos),
        retransmits=sum(info.retransmits for info in infos),
        timeouts=sum(info.timeouts or 0 for info in infos),
    )


def subflows_of(sock: socket.socket) -> dict[Ends, TcpInfo] | None:
    """Return the subflows that an MPTCP socket has now; None of one that has fallen back to plain TCP."""
    while True:
        addresses = _entries(sock, _MPTCP_SUBFLOW_ADDRS, _ADDRESSES_BYTES)
        infos = _entries(sock, _MPTCP_TCPINFO, _TCP_INFO_BYTES)
        if addresses is None or infos is None:
            return None
        if len(addresses) == len(infos):
            # both in the kernel's order
            return {_ends(where): parse(info) for where, info in zip(addresses, infos, strict=True)}


def _entries(sock: socket.socket, option: int, nbytes: int) -> list[bytes] | None:
    """Return an option of each subflow, `nbytes` at most of each; None of a socket that is plain TCP."""
    # Python's own getsockopt passes no values in
    buffer = ctypes.create_string_buffer(_SUBFLOW_DATA.size + _MOST_SUBFLOWS * nbytes)
    _SUBFLOW_DATA.pack_into(buffer, 0, _SUBFLOW_DATA.size, 0, 0, nbytes)
    length = ctypes.c_uint32(len(buffer))
    if _libc.getsockopt(sock.fileno(), _SOL_MPTCP, option, buffer, ctypes.byref(length)) != 0:
        if ctypes.get_errno() in (errno.EOPNOTSUPP, errno.ENOPROTOOPT):
            # the kernel asks the TCP socket that has taken its place
            return None
        raise HostError(f"cannot read MPTCP's subflows: {os.strerror(ctypes.get_errno())}")
    # entries are as long as the kernel's, if that is shorter
    _, count, _, size = _SUBFLOW_DATA.unpack_from(buffer)
    starts = range(_SUBFLOW_DATA.size, _SUBFLOW_DATA.size + min(count, _MOST_SUBFLOWS) * size, size)
    return [buffer.raw[start : start + size] for start in starts]


def _ends(entry: bytes) -> Ends:
    return Ends(_address(entry), _address(entry[_STORAGE_BYTES:]))


def _address(storage: bytes) -> tuple[str, int]:
    port, address = _PORT_ADDRESS.unpack_from(storage, _FAMILY.size)
    return socket.inet_ntop(socket.AF_INET, address), port
