"""A row of a campaign's index: one run that has ended.

Rules kept
- Numbers of a failed run, or of one whose data arrived otherwise than sent, are in no sample.
- A row says how far its numbers can be trusted. JSON has no infinity: an infinite metric is the text "Infinity" there.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model

from common.plain_json import object_of
from testbed.results.metrics import metric

#: the one file of a run that depends on time and place
MANIFEST = "manifest.json"
#: fields of a result that say how far its numbers can be trusted, as columns of a row
CONDITIONS: Final = ("finished", "intact", "on_time", "late_events", "events", "lost_s")
_NEVER: Final = "Infinity"
#: of a finite metric: sums of such have room
_MOST: Final = 1e300

#: how far the numbers of a run can be trusted; those of the last three are in no sample
Kind = Literal["whole", "cut", "late", "late and cut", "unknown", "corrupt", "refused", "failed"]


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
    #: the program, the processor, the kernel (of the machine in virtual time), the clock and the form of the cores
    fadelab: str = ""
    processor: str = ""
    kernel: str = ""
    clock: str = ""
    cores: str = ""
    #: digest of the sources (sources.py); empty: not known, of a program before it
    sources: str = ""
    #: as in the run's `summary.json`; None: there is none, or it does not tell
    finished: bool | None = None
    intact: bool | None = None
    on_time: bool | None = None
    late_events: int | None = None
    events: int | None = None
    lost_s: float | None = None

    @property
    def kind(self) -> Kind:
        """How far its numbers can be trusted."""
        if self.intact is False:
            return "corrupt"
        if self.status == "failed":
            return "refused" if self.on_time is False else "failed"
        if self.finished is None or self.on_time is None:
            return "unknown"
        if self.finished:
            return "whole" if self.on_time else "late"
        return "cut" if self.on_time else "late and cut"

    @property
    def counts(self) -> bool:
        """Whether its numbers are in samples."""
        return self.status == "done" and self.intact is not False

    def value(self, name: str) -> float | None:
        """Return a metric; None where the run does not count or does not have it."""
        return self.metrics.get(name) if self.counts else None

    def lasting(self) -> dict[str, Any]:
        """Return the fields that are the same at any time and on any machine."""
        names = ("run", "status", *CONDITIONS, "metrics", "files", *(("error",) if self.error else ()))
        values = self.as_dict()
        return {name: values[name] for name in names}

    def as_dict(self) -> dict[str, Any]:
        """Return the row in the form of the journal."""
        return asdict(self) | {"metrics": {name: _told(value) for name, value in self.metrics.items()}}


def row_of(values: Mapping[str, Any]) -> Row | None:
    """Return the row of a line of the journal; None for a line of another kind."""
    try:
        row = Row(**values)
        return _checked(replace(row, metrics=metrics_of(row.metrics)))
    except (TypeError, AttributeError, ValueError, OverflowError):
        return None


def _checked(row: Row) -> Row:
    """Return a row. Raises ValueError unless each field is of its type."""
    _form().model_validate({each.name: getattr(row, each.name) for each in fields(Row)})
    return row


@cache
def _form() -> type[BaseModel]:
    types: dict[str, Any] = {name: (hint, ...) for name, hint in get_type_hints(Row).items()}
    return create_model("Row", __config__=ConfigDict(strict=True), **types)


def metrics_of(told: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the metrics of a row in the form of a file.

    Raises ValueError for a text that is no number, and for finite ones that no figure of theirs can be drawn of.
    """
    found = {name: None if value is None else float(value) for name, value in told.items()}
    if any(value is not None and _MOST < abs(value) < math.inf for value in found.values()):
        raise ValueError(f"a metric is beyond {_MOST:g}")
    return found


def _told(value: float | None) -> float | str | None:
    return _NEVER if value == math.inf else value


def conditions(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a row that say how far the numbers of a `summary.json` can be trusted."""
    return {name: summary.get(name) for name in CONDITIONS}


def describe(folder: Path, run: str, metrics: Sequence[str], seconds: float | None = None) -> Row:
    """Return the row of a run's complete folder. Raises OSError and ValueError for one that is not."""
    summary = object_of((folder / "summary.json").read_text())
    manifest = object_of((folder / MANIFEST).read_text())
    versions = manifest.get("versions")
    if not isinstance(versions, dict) or not isinstance(versions.get("fadelab"), str):
        raise ValueError(f"{MANIFEST} names no version of fadelab")
    return _checked(
        Row(
            run=run,
            status="done",
            metrics={name: metric(summary, name) for name in metrics},
            files=checksums(folder),
            seconds=seconds,
            fadelab=versions["fadelab"],
            processor=f"{manifest.get('cpus')} x {manifest.get('processor')}",
            kernel=str(versions.get("kernel", "")),
            clock=str(manifest.get("clock", "")),
            cores=str(manifest.get("cores", "")),
            sources=str(manifest.get("sources", "")),
            **conditions(summary),
        )
    )


def renewed(row: Row, folder: Path) -> Row:
    """Return a row of an older version with its metrics and conditions as the run's `summary.json` has them.

    Such a row has the time of the cut as the duration of a transfer. It stays where the file cannot be read.
    """
    try:
        summary = object_of((folder / "summary.json").read_text())
        metrics = {name: metric(summary, name) for name in row.metrics}
        return _checked(replace(row, metrics=metrics, **conditions(summary)))
    except (OSError, ValueError):
        return row


def checksums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a run, but the manifest's."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.name != MANIFEST and path.is_file()
    }
