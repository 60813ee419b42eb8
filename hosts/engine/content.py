"""The content of a transfer: pseudo-random octets that both ends can check, or only their number.

Rule kept: the octets of a stream depend on the run's seed and the stream's name alone. Both ends hash the octets, and
the receiver compares them with the expected ones, so that even an incomplete transfer can be proved intact. In virtual
time there are only numbers: the receiver must not have read more octets than were written.
"""

import hashlib
import random
from abc import ABC, abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr
from typing_extensions import override

from hosts.tcp.connection import Connection

#: octets generated, offered or read at a time
CHUNK: Final = 65536


@mypyc_attr(allow_interpreted_subclasses=True)
class Outgoing(ABC):
    """The content that a sender writes. `taken` counts the octets so far."""

    def __init__(self) -> None:
        self.taken = 0

    @abstractmethod
    def write(self, connection: Connection, most: int) -> int:
        """Write some of the next octets to a connection of ours, at most `most`; return their number."""

    @abstractmethod
    def sha256(self) -> str | None:
        """Return the hex digest of the octets taken; None where they are only counted."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Incoming(ABC):
    """The content that a receiver reads."""

    @abstractmethod
    def read(self, connection: Connection) -> int:
        """Read all available octets of a connection of ours; return their number."""

    @abstractmethod
    def sha256(self) -> str | None:
        """Return the hex digest of the octets read; None where they are only counted."""

    @abstractmethod
    def intact(self) -> bool:
        """Whether the octets read are those written."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Contents(ABC):
    """The contents of all streams of a run, by their names."""

    @abstractmethod
    def outgoing(self, name: str) -> Outgoing:
        """Return the content that the sender of a stream writes."""

    @abstractmethod
    def incoming(self, name: str) -> Incoming:
        """Return the content that its receiver reads."""


class Stream(Outgoing):
    """The endless pseudo-random octets of one stream, with the hash of those taken."""

    def __init__(self, seed: int, name: str) -> None:
        super().__init__()
        self._random = random.Random(f"{seed}/{name}")
        self._waiting = memoryview(b"")
        self._hash = hashlib.sha256()

    @override
    def write(self, connection: Connection, most: int) -> int:
        written = connection.write(bytes(self.peek(most)))
        self.take(written)
        return written

    def peek(self, most: int) -> memoryview:
        """Return some of the next octets: at least one, at most `most`."""
        if not self._waiting:
            self._waiting = memoryview(self._random.randbytes(CHUNK))
        return self._waiting[:most]

    def take(self, count: int) -> None:
        """Advance by `count` of the octets that `peek` returned."""
        self._hash.update(self._waiting[:count])
        self._waiting = self._waiting[count:]
        self.taken += count

    def agrees(self, data: bytes) -> bool:
        """Take as many octets as `data` has; return whether they are equal."""
        view = memoryview(data)
        same = True
        while view:
            expected = self.peek(len(view))
            same = same and view[: len(expected)] == expected
            view = view[len(expected) :]
            self.take(len(expected))
        return same

    @override
    def sha256(self) -> str:
        return self._hash.hexdigest()


class Received(Incoming):
    """The received octets of one stream, compared with the expected ones."""

    def __init__(self, expected: Stream) -> None:
        self._expected = expected
        self._hash = hashlib.sha256()
        self._intact = True

    @override
    def read(self, connection: Connection) -> int:
        nbytes = 0
        while connection.readable:
            data = connection.read(CHUNK)
            self.add(data)
            nbytes += len(data)
        return nbytes

    def add(self, data: bytes) -> None:
        """Take the next octets."""
        self._hash.update(data)
        self._intact = self._expected.agrees(data) and self._intact

    @override
    def sha256(self) -> str:
        return self._hash.hexdigest()

    @override
    def intact(self) -> bool:
        return self._intact


class Octets(Contents):
    """Octets, generated from the run's seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    @override
    def outgoing(self, name: str) -> Stream:
        return Stream(self._seed, name)

    @override
    def incoming(self, name: str) -> Received:
        return Received(Stream(self._seed, name))


class _Written(Outgoing):
    def write(self, connection: Connection, most: int) -> int:
        written = connection.write(most)
        self.taken += written
        return written

    def sha256(self) -> None:
        return None


class _Counted(Incoming):
    def __init__(self, written: dict[str, _Written], name: str) -> None:
        self._written, self._name = written, name
        self._nbytes = 0

    def read(self, connection: Connection) -> int:
        nbytes = connection.discard()
        self._nbytes += nbytes
        return nbytes

    def sha256(self) -> None:
        return None

    def intact(self) -> bool:
        written = self._written.get(self._name)
        return self._nbytes <= (0 if written is None else written.taken)


class Numbers(Contents):
    """Numbers of octets, for virtual time; both hosts share one object."""

    def __init__(self) -> None:
        self._written: dict[str, _Written] = {}

    @override
    def outgoing(self, name: str) -> _Written:
        written = self._written[name] = _Written()
        return written

    @override
    def incoming(self, name: str) -> _Counted:
        return _Counted(self._written, name)
