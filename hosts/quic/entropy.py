"""The randomness of aioquic, from a seeded generator.

aioquic 1.7 takes randomness from `os.urandom` alone, by the name `os` in three of its modules: connection IDs,
stateless reset tokens and path challenges (`quic.connection`), the randoms of TLS and session tickets (`tls`), unused
bits of version negotiation (`quic.packet`). None of them takes a generator. So the name `os` of these three modules
stands for a seeded source while aioquic is called, and only then. `os` itself is never touched, nor is any generator of
the process seeded. Whatever else aioquic might ask of `os` raises AttributeError.

OpenSSL makes the keys of the key exchange. They have a fixed length and differ from run to run: the octets of datagrams
differ, their sizes and times do not.
"""

from random import Random
from typing import Any, Final

from aioquic import tls
from aioquic.quic import connection, packet

#: the names of the modules
_CONNECTION: Final[dict[str, Any]] = vars(connection)
_TLS: Final[dict[str, Any]] = vars(tls)
_PACKET: Final[dict[str, Any]] = vars(packet)
#: the module `os`, as aioquic has it outside of our calls
_OS: Final = _CONNECTION["os"]


class Entropy:
    """Stands for the module `os` in aioquic within a block `with entropy:`; blocks do not nest."""

    __slots__ = ("_rng",)

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def urandom(self, count: int, /) -> bytes:
        """Return the generator's next octets."""
        return self._rng.randbytes(count)

    def __enter__(self) -> None:
        _CONNECTION["os"] = _TLS["os"] = _PACKET["os"] = self

    def __exit__(self, *error: object) -> None:
        _CONNECTION["os"] = _TLS["os"] = _PACKET["os"] = _OS
