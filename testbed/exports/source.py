"""The timeline of a stored run, from the files of its folder."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common.sides import SIDES
from testbed.errors import FadelabError
from testbed.exports import kept
from testbed.exports.timeline import Timeline
from testbed.results.plain_folders import require_plain

#: records that stories and other programs use
_KINDS = ("tcp", "link", "phy")


def timeline_of(folder: Path) -> Timeline:
    """Return the timeline of the run in a folder: that which it keeps, or a new one, which it keeps from now on.

    Raises FadelabError in one line.
    """
    require_plain(folder)
    digest = kept.digest_of(folder)
    timeline = kept.read(folder, digest)
    if timeline is None:
        timeline = make_timeline(folder)
        # a run that goes on, or changes meanwhile, has another digest by now
        if kept.digest_of(folder) == digest:
            kept.write(folder, digest, timeline)
    return timeline


def make_timeline(folder: Path) -> Timeline:
    """Return the timeline of the run in a folder: simulated again on tier model, else read from its captures.

    Raises FadelabError in one line.
    """
    from telemetry.parquet import RecordsError, read_records
    from testbed.exports.capture_source import from_captures
    from testbed.exports.model_source import from_model
    from testbed.scenario.file import load
    from testbed.scenario.resolver import resolve

    plan = resolve(load(folder / "scenario.yaml"))
    try:
        records = {kind: read_records(folder, kind) for kind in _KINDS}
    except RecordsError as error:
        raise FadelabError(str(error)) from None
    for rows in records.values():
        _require_plain_values(folder, rows)
    if plan.tier.simulated:
        return from_model(folder, plan, records)
    return from_captures(folder, plan, records, _epoch_ns(folder))


def _require_plain_values(folder: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise FadelabError for links that are none of ours, and for numbers that JSON does not have."""
    for row in rows:
        if row.get("link", SIDES[0]) not in SIDES:
            raise FadelabError(f"{folder}: its records are of a link {row['link']!r}, and there are {', '.join(SIDES)}")
        if any(isinstance(value, float) and not math.isfinite(value) for value in row.values()):
            raise FadelabError(f"{folder}: its records have numbers that are infinite, or none")


def _epoch_ns(folder: Path) -> int:
    """Return the Unix time (ns) of a real-time run's time 0."""
    from telemetry.parquet import open_records

    try:
        with open_records(folder / "link.parquet") as file:
            epoch_ns = int((file.schema_arrow.metadata or {})[b"epoch_ns"])
        if not 0 <= epoch_ns < 1 << 63:
            raise ValueError(epoch_ns)
        return epoch_ns
    except (KeyError, ValueError):
        raise FadelabError(f"{folder}: has no link records with the run's time 0: the run failed early") from None
