"""Programs of others for workload `program`, a file each, which declares a `PROGRAM` (docs/how-to/program.md).

Rule kept: a file has command lines and a parser, and no process: `hosts/kernel/programs.py` starts them, on live tiers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from common.registry import Registry
from hosts.engine.programs import Command
from hosts.engine.results import Told


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a command line may name."""

    #: IPv4 address of the server
    address: str
    #: on which the server listens
    port: int
    #: of the host that the program runs on
    host: str
    #: network namespace of that host; empty: that of the process
    namespace: str
    duration_s: float
    #: None: the duration is the limit
    bytes: int | None
    seed: int


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program as scenarios know it."""

    name: str
    #: in a line, for the table in docs/scenarios.md
    summary: str
    #: Debian package
    package: str
    #: which end sends the data
    sends: Literal["client", "server"] = "client"
    #: what ends the transfer: `duration_s`, `bytes`, which it needs then, or `bytes` where they are given
    limit: Literal["time", "size", "either"] = "time"
    #: a regular expression: a line of the server's output that says it listens
    ready: str
    #: makes the command of the server, which stays in the foreground and does not end by itself
    server: Callable[[Place], Command]
    #: makes the command of the client, which ends with the transfer and status 0
    client: Callable[[Place], Command]
    #: reads what the client tells on stdout. Raises ValueError, KeyError, TypeError or IndexError for anything else.
    parse: Callable[[str], Told]
    #: options of the client that only the workload may set, or that its result or its direction does not survive
    reserved: tuple[str, ...] = ()
    #: letters of options without a value, which may stand before another option in the same word
    flags: str = ""

    def reserves(self, word: str) -> bool:
        """Return whether a word of the client's command line is an option of `reserved`, perhaps abbreviated."""
        if word.startswith("--"):
            name = word.partition("=")[0]
            return any(option.startswith(name) for option in self.reserved)
        return word.startswith("-") and f"-{word[1:].lstrip(self.flags)[:1]}" in self.reserved


PROGRAMS: Final = Registry("hosts.workloads.programs", "PROGRAM", Program)
