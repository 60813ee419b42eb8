"""The proxy of a base station that splits TCP connections: `python -m hosts.split_proxy`, in the station's namespace.

    wired host == connection == proxy == connection ~~ radio ~~ mobile host

Read first: docs/split.md; `hosts/engine/split_pairs.py`, the machine that this drives; `hosts/kernel/split_routes.py`
for the path of packets to the proxy, `hosts/kernel/split_ends.py` for the two kinds of connections.

On stdin: `SplitConfig`, `Go`, and `Stop` or its end. On stdout: `Ready`, at the end `SplitCounters`, or `Error` and
exit status 2 (`messages.py`).

Rules kept
- In each direction of a connection the proxy holds the buffers of its two sockets and `CHUNK` octets between them. It
  stops reading while the other side accepts no more.
- One thread, one loop; connections end with the loop, and unsent octets are lost.
"""

import resource
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from ipaddress import IPv4Address
from typing import Final

from hosts.engine.split_pairs import MOST_CONNECTIONS, Pairs, SplitCounters, relay_config
from hosts.engine.stack import Application, Socket
from hosts.errors import HostError
from hosts.jsonlines import MessageReader, run_child, unexpected, write_message
from hosts.kernel.namespaces import enter
from hosts.kernel.network import TAP_NAME, VETH_NAME
from hosts.kernel.privileges import CAP_DAC_OVERRIDE, CAP_NET_ADMIN, CAP_NET_BIND_SERVICE, keep
from hosts.kernel.profiles import apply_settings, profile
from hosts.kernel.split_ends import KernelEnd, OctetsEnd, Options, OwnEnd, prepare
from hosts.kernel.split_routes import SplitRoutes
from hosts.kernel.tun import TransitTun
from hosts.kernel.tun_stack import TunStack
from hosts.loop import READ, Loop
from hosts.messages import Go, Ready, SplitConfig, Stop, ToProcess
from hosts.tcp.config import TcpConfig
from hosts.tcp.profiles import USER_PROFILES
from tcpip.segment import HEADER_BYTES, Flow

_SPARE_DESCRIPTORS: Final = 64
#: Linux's values, for our own TCP too, so that only the recovery of losses differs from the kernel's
_MIN_RTO_NS: Final = 200_000_000
_INITIAL_WINDOW: Final = 10
#: interval between checks of connections that wait for no event
_LOOK_NS: Final = 100_000_000
#: the base station's kernel TCP: Reno without SACK, as in the paper
_KERNEL_PROFILE: Final = "reno-nosack"


class Proxy:
    """Splits connections until its loop stops. Raises HostError where rights or parts of the kernel are missing."""

    def __init__(self, config: SplitConfig, stack: ExitStack) -> None:
        self.loop = Loop()
        self._mobile = config.mobile
        kernels = profile(_KERNEL_PROFILE)
        half = max(config.buffer_bytes // 2, 1)
        self._options = Options(half, half, kernels.congestion_control)
        # two descriptors each
        most = min(MOST_CONNECTIONS, _raise_descriptor_limit() // 2)
        self._pairs = Pairs(most)
        self._looking = False
        apply_settings(kernels)
        self._listener = stack.enter_context(_listener(self._options))
        port = self._listener.getsockname()[1]
        interfaces = [VETH_NAME]
        self._user: _UserSide | None = None
        if config.wireless is None:
            interfaces.append(TAP_NAME)
        else:
            tun = stack.enter_context(TransitTun(TAP_NAME))
            profile_config = USER_PROFILES[config.wireless].config
            self._user = _UserSide(self.loop, tun, profile_config, self._options)
            self._user.driver.stack.listen_to_all(self._user.config, self._came_by_air, most)
        stack.enter_context(SplitRoutes(interfaces, port))
        self.loop.watch(self._listener, READ, self._accept)

    def counters(self) -> SplitCounters:
        """Return the counters so far."""
        counters = self._pairs.counters()
        if self._user is not None:
            counters.refusals += self._user.driver.stack.refusals
        return counters

    def check(self) -> None:
        """Raise HostError when packets were lost between the kernel and the proxy: they would count as the link's."""
        if self._user is not None:
            self._user.driver.check()

    def close(self) -> None:
        """Reset the unfinished connections."""
        for pair in self._pairs.all():
            pair.reset()

    # -- new connections -------------------------------------------------------------------------------------

    def _accept(self) -> None:
        try:
            sock, source = self._listener.accept()
        except OSError:
            # the peer has reset it
            return
        destination = sock.getsockname()
        from_mobile = source[0] == self._mobile
        near = KernelEnd.accepted(self.loop, sock)
        onwards = None if from_mobile else self._user
        connect = self._connect if onwards is None else onwards.connect
        self._join(near, from_mobile, partial(connect, source, destination))

    def _came_by_air(self, sock: Socket) -> Application | None:
        assert self._user is not None
        # in the direction of its peer's segments
        flow = sock.connection.flow.reversed()
        source = (str(IPv4Address(flow.source)), flow.source_port)
        destination = (str(IPv4Address(flow.destination)), flow.destination_port)
        near = self._user.end(sock)
        self._join(near, True, partial(self._connect, source, destination))
        return sock.application

    def _join(self, near: OctetsEnd, from_mobile: bool, connect: Callable[[], OctetsEnd]) -> None:
        def connected() -> OctetsEnd | None:
            try:
                return connect()
            except OSError:
                # an older connection with the same addresses and ports is unfinished there, or there is no route
                return None

        pair = self._pairs.join(near, connected, near_is_wireless=from_mobile)
        if pair is not None:
            pair.moved(near)
            if not self._looking:
                self._looking = True
                self.loop.at(self.loop.now + _LOOK_NS, self._look)

    def _connect(self, source: tuple[str, int], destination: tuple[str, int]) -> OctetsEnd:
        return KernelEnd.connecting(self.loop, source, destination, self._options)

    def _look(self, _: object) -> None:
        """Check for changes without an event: failures of idle ends, octets held, and the last acknowledgement."""
        for pair in self._pairs.all():
            for end in (pair.near, pair.far):
                if isinstance(end, KernelEnd):
                    end.look()
            pair.moved(pair.near)
        self._looking = bool(self._pairs)
        if self._looking:
            self.loop.at(self.loop.now + _LOOK_NS, self._look)


class _UserSide:
    """Our own TCP on the wireless side."""

    def __init__(self, loop: Loop, tun: TransitTun, config: TcpConfig, options: Options) -> None:
        mss = tun.mtu - HEADER_BYTES
        self._send_buffer = max(options.send_buffer, mss)
        self.config = relay_config(
            config,
            mss=mss,
            window=options.receive_buffer,
            send_buffer=self._send_buffer,
            min_rto_ns=_MIN_RTO_NS,
            initial_window=_INITIAL_WINDOW,
        )
        self.driver = TunStack(loop, tun)

    def end(self, sock: Socket) -> OwnEnd:
        """Return the end of a connection."""
        return OwnEnd(sock, self._send_buffer)

    def connect(self, source: tuple[str, int], destination: tuple[str, int]) -> OctetsEnd:
        """Begin a connection from `source`, an address of another host. Raises OSError when one exists already."""
        flow = Flow(int(IPv4Address(source[0])), source[1], int(IPv4Address(destination[0])), destination[1])
        if self.driver.stack.has(flow):
            raise OSError(f"there is a connection from {source} to {destination}")
        return self.end(self.driver.stack.open(self.config, flow))


def _listener(options: Options) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        # before the first connection: the handshake agrees on the window scale
        prepare(sock, options)
        sock.bind(("0.0.0.0", 0))
        sock.listen(socket.SOMAXCONN)
    except OSError as error:
        sock.close()
        raise HostError(f"cannot listen for others' connections: {error.strerror}; run with sudo or as root") from None
    return sock


def _raise_descriptor_limit() -> int:
    """Raise the limit of descriptors as far as allowed; return the number left for connections."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * MOST_CONNECTIONS + _SPARE_DESCRIPTORS
    if most == resource.RLIM_INFINITY or most > wanted:
        most = wanted
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most - _SPARE_DESCRIPTORS


def serve(reader: MessageReader, config: SplitConfig, waiting: list[ToProcess]) -> None:
    """Run the proxy from configuration to stop; raises HostError or ValueError."""
    enter(config.namespace)
    with ExitStack() as stack:
        proxy = Proxy(config, stack)
        stack.callback(proxy.close)
        # for the connections to come, whose addresses are others', and to remove the routes
        keep({CAP_DAC_OVERRIDE, CAP_NET_BIND_SERVICE, CAP_NET_ADMIN})
        write_message(Ready())

        def handle_messages(messages: list[ToProcess] | None) -> None:
            for message in (Stop(),) if messages is None else messages:
                match message:
                    case Stop():
                        proxy.loop.stop()
                    case Go():
                        # the proxy counts from its own start
                        pass
                    case _:
                        raise unexpected(message)

        proxy.loop.watch(reader, READ, lambda: handle_messages(reader.read()))
        handle_messages(waiting)
        proxy.loop.run()
        proxy.check()
        write_message(proxy.counters())


if __name__ == "__main__":
    sys.exit(run_child(SplitConfig, serve))
