"""The content of a QUIC connection: the octets of its streams, each with a name of its own."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import override

from hosts.engine.content import Contents, Incoming, Outgoing, Received, Stream
from hosts.workloads.quic import Quic

_NO_CONNECTION: Final = "QUIC's octets are written to streams, not to a connection of our TCP"


class OutgoingStreams(Outgoing):
    """The octets that a sender writes to its streams; `taken` counts all of them."""

    def __init__(self, streams: list[Stream]) -> None:
        super().__init__()
        self.streams = streams

    def take(self, stream: int, most: int) -> bytes:
        """Return some of a stream's next octets, and advance by them: at least one, at most `most`."""
        data = bytes(self.streams[stream].peek(most))
        self.streams[stream].take(len(data))
        self.taken += len(data)
        return data

    @override
    def write(self, connection: Any, most: int) -> int:
        raise TypeError(_NO_CONNECTION)

    @override
    def sha256(self) -> str:
        return _joined([stream.sha256() for stream in self.streams])


class IncomingStreams(Incoming):
    """The octets that a receiver reads from its streams."""

    def __init__(self, streams: list[Received]) -> None:
        self.streams = streams

    @override
    def read(self, connection: Any) -> int:
        raise TypeError(_NO_CONNECTION)

    @override
    def sha256(self) -> str:
        return _joined([stream.sha256() for stream in self.streams])

    @override
    def intact(self) -> bool:
        return all(stream.intact() for stream in self.streams)


class QuicContents(Contents):
    """The contents of all connections of a run, by the flows of the workloads: octets, also in virtual time."""

    def __init__(self, seed: int, flows: Mapping[str, Quic]) -> None:
        self._seed, self._flows = seed, flows

    @override
    def outgoing(self, name: str) -> OutgoingStreams:
        return OutgoingStreams(self._streams(name))

    @override
    def incoming(self, name: str) -> IncomingStreams:
        return IncomingStreams([Received(stream) for stream in self._streams(name)])

    def _streams(self, name: str) -> list[Stream]:
        flow, _, _ = name.rpartition("/")
        return [Stream(self._seed, f"{name}/{number}") for number in range(self._flows[flow].streams)]


def _joined(digests: list[str]) -> str:
    """Return the digest of a single stream, or that of the digests of several."""
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
