"""The timeline of a stored run, from the files of its folder."""

from pathlib import Path

from testbed.errors import FadelabError
from testbed.exports import kept
from testbed.exports.timeline import Timeline

#: records that stories and other programs use
_KINDS = ("tcp", "link", "phy")


def timeline_of(folder: Path) -> Timeline:
    """Return the timeline of the run in a folder: that which it keeps, or a new one, which it keeps from now on.

    Raises FadelabError in one line.
    """
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
    from telemetry.parquet import read_records
    from testbed.exports.capture_source import from_captures
    from testbed.exports.model_source import from_model
    from testbed.scenario.file import load
    from testbed.scenario.resolver import resolve

    plan = resolve(load(folder / "scenario.yaml"))
    try:
        records = {kind: read_records(folder, kind) for kind in _KINDS}
    except (OSError, ValueError) as error:
        # pyarrow's errors are ValueErrors
        raise FadelabError(f"{folder}: its records cannot be read: {str(error).splitlines()[0]}") from None
    if plan.tier.simulated:
        return from_model(folder, plan, records)
    return from_captures(folder, plan, records, _epoch_ns(folder))


def _epoch_ns(folder: Path) -> int:
    """Return the Unix time (ns) of a real-time run's time 0."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_schema(folder / "link.parquet").metadata or {}
        return int(metadata[b"epoch_ns"])
    except (OSError, KeyError, ValueError, pa.ArrowException):
        raise FadelabError(f"{folder}: has no link records with the run's time 0: the run failed early") from None
