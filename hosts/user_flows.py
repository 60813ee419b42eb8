"""Transfers over our own TCP.

Read first: `hosts/stream_ends.py`, whose two ends these are; `hosts/user_stack.py` for what drives the connections.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from hosts.errors import HostError
from hosts.flows import CHUNK, Context, Counter
from hosts.probes import Probe
from hosts.stream_ends import Done, Receive, ReceivingEnd, SendingEnd, Transfer
from hosts.tcp.config import TcpConfig
from hosts.tcp.connection import Connection, State
from hosts.tcp_info import ESTABLISHED, TcpInfo
from hosts.tun import Tun
from hosts.user_stack import UserSocket, UserStack, nothing
from tcpip.segment import HEADER_BYTES
from telemetry.records import TcpRecord

#: what is written ahead of the acknowledgements while two congestion windows are less: as Linux's own send buffer grows
_AHEAD_BYTES = 65_536


class UserTcp:
    """Our TCP towards `peer`, of the namespace we are in. Raises HostError when there can be no TUN.

    `tun_fd` is an open /dev/net/tun of that namespace; None: it is opened here.
    """

    def __init__(
        self, context: Context, probe: "UserProbe", peer: str, config: TcpConfig, tun_fd: int | None = None
    ) -> None:
        self._context, self._probe = context, probe
        self._tun = Tun(peer, descriptor=tun_fd)
        self._stack = UserStack(context.loop, self._tun, replace(config, mss=self._tun.mtu - HEADER_BYTES))
        #: connections by port that were there before anybody accepted
        self._waiting: dict[int, list[UserSocket]] = {}

    def bind(self, port: int) -> None:
        """Take a port; connections wait until they are accepted."""
        waiting = self._waiting[port] = []
        self._stack.listen(port, waiting.append)

    def accept(self, port: int, came: Callable[[Receive], None]) -> None:
        """From now on call `came` with every connection to the port."""

        def receive(socket: UserSocket) -> None:
            came(partial(UserReceiver, self._context, socket))

        self._stack.listen(port, receive)
        for socket in self._waiting.pop(port, []):
            receive(socket)

    def send(self, transfer: Transfer, paused: bool, done: Done) -> SendingEnd:
        """Connect and send."""
        return UserSender(self._context, self._probe, self._stack, transfer, paused, done)

    def check(self) -> None:
        """Raise HostError when packets were lost between the kernel and us, which nobody must take for the link's."""
        if lost := self._tun.lost:
            raise HostError(
                f"{lost} packets were lost at {self._tun.name}: this machine is too slow for our TCP at such rates"
            )

    def close(self) -> None:
        """Remove the TUN; idempotent."""
        self._tun.close()


class UserSender(SendingEnd):
    """The sending end of a connection of ours."""

    def __init__(
        self,
        context: Context,
        probe: "UserProbe",
        stack: UserStack,
        transfer: Transfer,
        paused: bool,
        done: Done,
    ) -> None:
        super().__init__(context, transfer, paused, done)
        self._may_write = False
        self._socket = stack.connect(*transfer.address)
        self._socket.changed = self._changed
        probe.watch(transfer.flow, self._socket.connection)

    def _changed(self) -> None:
        connection = self._socket.connection
        if self._connected_ns is None and connection.connected:
            self._has_connected()
        elif self._may_write:
            self._write()
        if connection.at_end and not self._writing:
            self._finish(None)
        elif connection.state is State.CLOSED:
            self._finish(connection.error or "closed")

    def _let_write(self, may: bool) -> None:
        self._may_write = may
        if may:
            self._write()

    def _write(self) -> None:
        connection = self._socket.connection
        if connection.state is State.CLOSED:
            return
        ahead = max(2 * connection.cwnd, _AHEAD_BYTES) + connection.bytes_acked
        while (room := min(connection.write_room, ahead - self._stream.taken)) > 0:
            data = self._more()[:room]
            if not data:
                self._stop_writing()
                break
            self._stream.take(connection.write(bytes(data)))
        self._socket.settle()

    def _shut_down(self) -> None:
        self._may_write = False
        self._socket.close()

    def _reset(self) -> None:
        self._socket.abort()

    def _let_go(self) -> tuple[int, TcpInfo]:
        self._socket.changed = nothing
        return self._socket.connection.flow.source_port, info_of(self._socket.connection)


class UserReceiver(ReceivingEnd):
    """The receiving end of a connection of ours."""

    def __init__(
        self, context: Context, socket: UserSocket, flow: str, index: int, counter: Counter, done: Done
    ) -> None:
        super().__init__(context, flow, index, counter, done)
        self._socket = socket
        socket.changed = self._changed
        self._changed()

    def _changed(self) -> None:
        connection = self._socket.connection
        while connection.readable:
            self._take(connection.read(CHUNK))
        self._socket.settle()
        if connection.at_end:
            self._finish(None)
        elif connection.state is State.CLOSED:
            self._finish(connection.error or "closed")

    def _reset(self) -> None:
        self._socket.abort()

    def _let_go(self) -> None:
        self._socket.changed = nothing
        self._socket.close()


class UserProbe(Probe):
    """Samples the senders that it was told to watch."""

    def __init__(self, host: str) -> None:
        super().__init__(host)
        self._watched: dict[str, Connection] = {}

    def watch(self, flow: str, connection: Connection) -> None:
        """Sample this connection under a flow's name from now on, in place of the one before."""
        self._watched[flow] = connection

    def sample(self, time_ns: int) -> list[TcpRecord]:
        """One record per flow that is connected now; `time_ns` is put into the records as it is."""
        return [
            self.record(time_ns, flow, info_of(connection))
            for flow, connection in self._watched.items()
            if connection.connected
        ]

    def retire(self, time_ns: int, flow: str, local_port: int, info: TcpInfo) -> TcpRecord:
        """The last record of a connection; the next one under the same name counts on from it."""
        self._watched.pop(flow, None)
        return super().retire(time_ns, flow, local_port, info)


def info_of(connection: Connection) -> TcpInfo:
    """What the kernel's tcp_info would say of an established connection of ours."""
    srtt_ns = connection.srtt_ns
    return TcpInfo(
        state=ESTABLISHED,
        cwnd_bytes=connection.cwnd,
        ssthresh_bytes=connection.ssthresh,
        srtt_ms=None if srtt_ns is None else srtt_ns / 1e6,
        rto_ms=connection.rto_ns / 1e6,
        bytes_acked=connection.bytes_acked,
        retransmits=connection.counters.retransmits,
        timeouts=connection.counters.timeouts,
        bytes_sent=connection.counters.bytes_sent,
    )
