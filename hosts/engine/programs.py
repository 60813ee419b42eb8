"""Programs of others as the two ends of a flow: a server on one host, and a client on the other.

Rules kept

- A client that has ended well tells its figures once. A program that fails, hangs or ends before its time raises
  HostError in one line: a run with it has no result.
- A stop ends the client; it reports that it was stopped.

Left out: how processes are started (`hosts/kernel/programs.py`) and the command lines (`hosts/workloads/programs/`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from mypy_extensions import mypyc_attr

from hosts.engine.results import Told


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command line, and the files that it needs beside it."""

    words: tuple[str, ...]
    #: contents by name, in a folder that is the working directory of the process and goes with it
    files: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The part of one host in a flow of a program."""

    flow: str
    command: Command
    #: Debian package of the program
    package: str


@mypyc_attr(allow_interpreted_subclasses=True)
class Client(ABC):
    """A client that runs."""

    @abstractmethod
    def kill(self) -> None:
        """End it; its output is not told."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Programs(ABC):
    """A host's programs, as an agent uses them."""

    @abstractmethod
    def require(self, task: Task) -> None:
        """Raise HostError when the program is missing."""

    @abstractmethod
    def serve(self, task: Task, ready: str) -> None:
        """Start a server, which lasts until `close`; return once a line of its output has the pattern `ready`.

        Raises HostError when it ends or is not ready in time.
        """

    @abstractmethod
    def start(self, task: Task, until: int, done: Callable[[str], None]) -> Client:
        """Start a client, which must end until a time on the clock; `done` gets its output."""

    @abstractmethod
    def close(self) -> None:
        """End all of them; idempotent."""


class ProgramEnd:
    """The client of a flow; `done` gets what it tells, or why it has ended before, once."""

    def __init__(
        self,
        programs: Programs,
        task: Task,
        until: int,
        parse: Callable[[str], Told],
        done: Callable[[Told | None, str | None], None],
    ) -> None:
        self._parse, self._done = parse, done
        #: whether `done` has been called
        self.ended = False
        self._client = programs.start(task, until, self._handle_output)

    def pause(self, paused: bool) -> None:
        """Do nothing: a program does not know of pauses."""

    def abort(self, reason: str) -> None:
        """End now; ignored when it has ended."""
        if not self.ended:
            self.ended = True
            self._client.kill()
            self._done(None, reason)

    def _handle_output(self, output: str) -> None:
        if not self.ended:
            told = self._parse(output)
            self.ended = True
            self._done(told, None)
