"""A row of a campaign's index: one run that has ended."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from testbed.results.metrics import metric

#: the one file of a run that depends on time and place
MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Row:
    """One run that has ended, well or with an error."""

    run: str
    status: Literal["done", "failed"]
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    #: SHA-256 by file, but for the manifest's
    files: Mapping[str, str] = field(default_factory=dict)
    #: in one line
    error: str = ""
    traceback: str = ""
    #: wall clock that the run took; None: not known
    seconds: float | None = None
    #: the program, the processor and the form of the cores that made it
    fadelab: str = ""
    processor: str = ""
    cores: str = ""
    #: digest of the sources (sources.py); empty: not known, of a program before it
    sources: str = ""

    def value(self, name: str) -> float | None:
        """Return a metric; None where the run failed or does not have it."""
        return self.metrics.get(name) if self.status == "done" else None

    def lasting(self) -> dict[str, Any]:
        """Return the fields that are the same at any time and on any machine."""
        kept = {"run": self.run, "status": self.status, "metrics": dict(self.metrics), "files": dict(self.files)}
        return kept | {"error": self.error} if self.error else kept

    def as_dict(self) -> dict[str, Any]:
        """Return the row in the form of the journal."""
        return asdict(self)


def row_of(values: Mapping[str, Any]) -> Row | None:
    """Return the row of a line of the journal; None for a line of another kind."""
    try:
        return Row(**values)
    except TypeError:
        return None


def describe(folder: Path, run: str, metrics: Sequence[str], seconds: float | None = None) -> Row:
    """Return the row of a run's complete folder. Raises OSError and ValueError for one that is not."""
    summary = json.loads((folder / "summary.json").read_text())
    manifest = json.loads((folder / MANIFEST).read_text())
    return Row(
        run=run,
        status="done",
        metrics={name: metric(summary, name) for name in metrics},
        files=checksums(folder),
        seconds=seconds,
        fadelab=manifest["versions"]["fadelab"],
        processor=f"{manifest.get('cpus')} x {manifest.get('processor')}",
        cores=str(manifest.get("cores", "")),
        sources=str(manifest.get("sources", "")),
    )


def checksums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a run, but the manifest's."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.name != MANIFEST and path.is_file()
    }
