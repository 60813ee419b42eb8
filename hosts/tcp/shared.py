"""State that the connections of one host share.

Read first: RFC 9040 (control block sharing; CBI in the papers); SLOWLINK, the paper's shared advertised window.
"""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Shared:
    """One host's memory.

    `window_bytes`: a limited advertised window that all open connections of the host divide among themselves
    (SLOWLINK); None: each offers its own receive buffer.
    """

    window_bytes: int | None = None
    #: connections that are open now
    open_connections: int = 0
    #: ssthresh of the latest connection to an address, octets (CBI)
    ssthresh: dict[int, int] = field(default_factory=dict)

    def offered(self, receive_buffer: int) -> int:
        """Return the largest window one connection may advertise."""
        if self.window_bytes is None:
            return receive_buffer
        return min(receive_buffer, self.window_bytes // max(1, self.open_connections))
