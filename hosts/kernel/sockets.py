"""Kernel sockets for the ends of workloads."""

import errno
import socket

from hosts.errors import HostError


def listen(host: str, port: int, kind: socket.SocketKind, protocol: int = 0) -> socket.socket:
    """Return a non-blocking socket bound to the port, by default of the kind's usual protocol; a stream socket listens.

    Raises HostError when the port is taken.
    """
    listener = socket.socket(socket.AF_INET, kind, protocol)
    try:
        if kind == socket.SOCK_STREAM:
            # connections of an earlier run in TIME_WAIT must not block the port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("0.0.0.0", port))
        if kind == socket.SOCK_STREAM:
            listener.listen(1024)
    except OSError as error:
        listener.close()
        reason = "is already in use" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
        raise HostError(f"port {port} {reason} on host {host}") from None
    listener.setblocking(False)
    return listener


def delay_acks(sock: socket.socket) -> None:
    """Ask the kernel for delayed ACKs. It falls back by itself, so call this at every read."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
