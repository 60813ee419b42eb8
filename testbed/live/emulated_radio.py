"""The radio of the `emulated` tier: a channel model in real time, and a socket to the other station."""

import socket
from collections.abc import Callable

from channel.hop import Arrival, Hop
from testbed.live.hop_radio import HopRadio

#: pause before the next attempt when the other station's socket is full
_RETRY_NS = 1_000_000


class EmulatedRadio(HopRadio):
    """Carries frames to the peer at the other end of `peer`, a SEQPACKET socket."""

    def __init__(
        self,
        hop: Hop[bytes],
        peer: socket.socket,
        *,
        max_frame_bytes: int,
        late_bound_ns: int,
        on_arrival: Callable[[Arrival[bytes]], None] | None = None,
    ) -> None:
        super().__init__(hop, max_frame_bytes=max_frame_bytes, late_bound_ns=late_bound_ns, on_arrival=on_arrival)
        self._peer = peer
        self._peer.setblocking(False)
        self._retry_at: int | None = None

    def fileno(self) -> int:
        return self._peer.fileno()

    def receive(self) -> bytes | None:
        try:
            # empty: the other station has ended, which the run notices
            return self._peer.recv(65536) or None
        except (BlockingIOError, ConnectionResetError):
            return None

    def next_deadline(self) -> int | None:
        """When a frame is due, or the transmitter becomes free."""
        return self._hop_deadline() if self._retry_at is None else self._retry_at

    def _carry(self, now: int) -> None:
        waiting = self._waiting
        if self._retry_at is not None and now < self._retry_at:
            return
        self._retry_at = None
        try:
            while waiting:
                self._peer.send(waiting[0])
                waiting.popleft()
        except BlockingIOError:
            # the other station does not keep up: its frames wait and count as late
            self._note(self._late_bound_ns + 1)
            self._retry_at = now + _RETRY_NS
        except (BrokenPipeError, ConnectionResetError):
            waiting.clear()
