"""Looks at the machine, their outcomes, and help to look."""

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from testbed.tiers import TIERS

#: the job that decides the exit status
MAIN_JOB = "demo"
#: the job that decides it with --radio
RADIO_JOB = "a run on these radios"
#: the jobs that need network namespaces
RUNS = ("demo", "run", "test")
#: the tiers with radios
RADIOS = tuple(name for name, tier in TIERS.items() if tier.radio)

_PROGRAM_TIMEOUT_S = 15.0
_SYSTEM_PYTHON = "/usr/bin/python3"


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of one look."""

    name: str
    ok: bool
    #: a version, a measurement, or the fault
    detail: str
    #: how to get it; empty when `ok`
    remedy: str
    #: the commands and features that need it
    needed_for: tuple[str, ...]

    @property
    def required(self) -> bool:
        """Whether the job that decides the exit status does not run without it."""
        return MAIN_JOB in self.needed_for or RADIO_JOB in self.needed_for


class Seen(NamedTuple):
    """The observation of a look; its remedy replaces that of the look."""

    ok: bool
    detail: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """A look at one thing."""

    name: str
    look: Callable[[], Seen]
    remedy: str
    needed_for: tuple[str, ...]
    #: must run before there are threads
    forks: bool = False

    def check(self) -> Check:
        """Look."""
        seen = self.look()
        remedy = self.remedy if seen.remedy is None else seen.remedy
        return Check(self.name, seen.ok, seen.detail, "" if seen.ok else remedy, self.needed_for)


def program(name: str, command: tuple[str, ...], package: str, *needed_for: str) -> Look:
    """Return a look for a program of a Debian package; its first line of output is the detail."""

    def look() -> Seen:
        return ask(command) if shutil.which(command[0]) else Seen(False, f"no {command[0]} on PATH")

    return Look(name, look, apt(package), needed_for)


def exists(path: Path) -> Seen:
    """Look for a file."""
    return Seen(True, str(path)) if path.exists() else Seen(False, f"no {path}")


def apt(*packages: str) -> str:
    """Return the remedy for packages that are missing."""
    return f"apt-get install {' '.join(packages)}"


def ask_system_python(code: str) -> Seen:
    """Run `code` in Debian's own Python, which has GNU Radio's and UHD's bindings."""
    return ask((_SYSTEM_PYTHON, "-I", "-c", code))


def ask(command: tuple[str, ...], **variables: str) -> Seen:
    """Run a program; the detail is the first line of its output, or its fault."""
    # other programs must not see our PYTHONPATH
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | variables
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROGRAM_TIMEOUT_S,
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return Seen(False, f"no answer within {_PROGRAM_TIMEOUT_S:.0f} s")
    except OSError as error:
        return Seen(False, error.strerror or str(error))
    said = done.stdout if done.returncode == 0 else done.stderr
    lines = [line.strip() for line in said.splitlines() if line.strip()] or [""]
    return Seen(True, lines[0]) if done.returncode == 0 else Seen(False, lines[-1])


def read(path: str) -> str:
    """Return the text of a file, empty where it cannot be read."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""
