"""The run store: one folder per run, sufficient to repeat the run and to draw all its plots.

scenario.yaml   the scenario, with all defaults
manifest.json   command, tier, seed, versions, digest of the sources, kernel, start; once it runs, its epoch and radios
station-*.log   what the libraries of a station wrote to stderr, if anything
*.parquet       records by measurement (telemetry/records.py), trace-up/-down: the channel traces; second-*: records of
                the second link's stations
summary.json    the result
"""

import json
import os
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from common.compiled import state
from testbed.errors import FadelabError
from testbed.paths import command_line
from testbed.results.owned_folders import make_folder
from testbed.results.summary import Summary
from testbed.results.whole_files import write_whole
from testbed.scenario.schema import Scenario
from testbed.sources import sources
from testbed.tiers import TIERS

#: a warning or an error in UHD's form: its module and its first line
_UHD_WARNING = re.compile(r"^\[(?:WARNING|ERROR)\] \[([^]]+)\] (.+)$", re.MULTILINE)
_PACKAGES = ("zfec", "pydantic", "pyarrow", "pyroute2")


class RunFolder:
    """The folder of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._manifest: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """The run's id."""
        return self.path.name

    @classmethod
    def create(cls, runs: Path, scenario: Scenario) -> "RunFolder":
        """Make a new folder below `runs`, with the scenario and the manifest in it."""
        stem = f"{start_stamp()}-{scenario.stem}"
        for suffix in ("", *(f"-{n}" for n in range(2, 1000))):
            path = runs / (stem + suffix)
            try:
                make_folder(path)
            except FileExistsError:
                continue
            except OSError as error:
                raise FadelabError(f"{path}: cannot be made: {error.strerror}; choose another --out") from None
            folder = cls(path)
            folder._begin(scenario)
            return folder
        raise FadelabError(f"{runs / stem}: a thousand runs in one second")

    @classmethod
    def at(cls, path: Path, scenario: Scenario, command: Sequence[str]) -> "RunFolder":
        """Make the folder `path`, which must not exist, for a run that this command repeats."""
        path.mkdir(parents=True)
        folder = cls(path)
        folder._begin(scenario, command)
        return folder

    @classmethod
    def opened(cls, path: Path) -> "RunFolder":
        """Return the folder of a run that another process has begun."""
        folder = cls(path)
        folder._manifest = json.loads((path / "manifest.json").read_text())
        return folder

    def _begin(self, scenario: Scenario, command: Sequence[str] | None = None) -> None:
        values = scenario.model_dump(mode="json", exclude_none=True)
        (self.path / "scenario.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
        self._manifest = manifest(scenario)
        if command is not None:
            self._manifest["command"] = list(command)
        self._write("manifest.json", self._manifest)

    def note_radio(self, station: str, about: Mapping[str, Any]) -> None:
        """Write what a station's radio says of itself."""
        self._manifest.setdefault("radios", {})[station] = about
        self._write("manifest.json", self._manifest)

    def note_machine(self, about: Mapping[str, Any]) -> None:
        """Write which machine makes the run, where it is not this one."""
        self._manifest["machine"] = about
        self._write("manifest.json", self._manifest)

    def note_inside(self) -> None:
        """Write the kernel and the form of the cores, of a process in the machine that makes the run."""
        self._manifest["versions"]["kernel"] = platform.release()
        self._manifest["cores"] = state()
        self._write("manifest.json", self._manifest)

    def began(self, epoch: datetime) -> None:
        """Write the wall-clock time of the run's time 0."""
        self._write("manifest.json", {**self._manifest, "epoch": epoch.isoformat(timespec="milliseconds")})

    def finish(self, summary: Summary) -> None:
        """Write the result."""
        self._write("summary.json", summary.plain())

    def _write(self, name: str, values: dict[str, Any]) -> None:
        write_whole(self.path / name, (json.dumps(values, indent=2) + "\n").encode())


def start_stamp() -> str:
    """Return the time in UTC with which the names of runs begin, as in 261128-141302; names sort by it."""
    return datetime.now(UTC).strftime("%y%m%d-%H%M%S")


def station_log(folder: Path, station: str) -> Path:
    """Return the file in a run's folder for the stderr of a station."""
    return folder / f"station-{station}.log"


def radio_warnings(folder: Path) -> list[str]:
    """Return UHD's warnings to the stations of a run, a line each, once each."""
    found = (
        f"{log.stem.replace('-', ' ')}: {module}: {text}"
        for log in sorted(folder.glob(station_log(Path(), "*").name))
        for module, text in _UHD_WARNING.findall(log.read_text(errors="replace"))
    )
    return list(dict.fromkeys(found))


@contextmanager
def noting_warnings(folder: Path) -> Iterator[None]:
    """Add UHD's warnings to an error of a run, as notes."""
    try:
        yield
    except FadelabError as error:
        for line in radio_warnings(folder):
            error.add_note(line)
        raise


@cache
def processor() -> str:
    """Return the model of this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def manifest(scenario: Scenario) -> dict[str, Any]:
    """Return the details of a run: command, seed, queue, versions, sources, machine, form of the cores."""
    return {
        "command": command_line(),
        "scenario": scenario.name,
        "tier": scenario.tier,
        "clock": scenario.clock or TIERS[scenario.tier].clocks[0],
        "seed": scenario.seed,
        # the scheme's own where the scenario's file has none
        "queue": scenario.link.queue.model_dump(mode="json", exclude_none=True),
        "started": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "versions": {
            "fadelab": sources().version,
            "python": platform.python_version(),
            "kernel": platform.release(),
            **{name: version(name) for name in _PACKAGES},
        },
        "sources": sources().digest,
        "cores": state(),
        "cpus": os.cpu_count(),
        "processor": processor(),
    }
