"""One run of a campaign, in any process.

Rules kept
- A run is made in a folder of its own, which gets its place when it is complete.
- An error of the run is its result: a row with the error in one line. Other exceptions pass, such as Ctrl-C, and
  sources that are not those of the campaign's command.
- The scenario in a run's folder names the campaign's files by paths relative to it.
"""

import shutil
import tempfile
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any

import yaml

from common.compiled import state
from testbed.campaigns.file import Campaign
from testbed.campaigns.folder import FAILED, RUNS, settle
from testbed.campaigns.plan import FILES, Run
from testbed.campaigns.rows import Row, conditions, describe
from testbed.errors import is_of_disk
from testbed.results.store import RunFolder, processor
from testbed.run_hooks import Show
from testbed.scenario.file import read_mapping, validate
from testbed.sources import SourcesError, require_unchanged, sources

#: where a run's folder is, seen from itself
_TO_CAMPAIGN = "../.."


@dataclass(frozen=True, slots=True)
class Task:
    """A run to make; it goes to other processes, and to other machines, by pickle."""

    run: str
    #: values of the scenario; its paths start at `campaign`
    scenario: dict[str, Any]
    #: the campaign's folder, and a folder in it for unfinished runs
    campaign: Path
    incoming: Path
    metrics: tuple[str, ...]
    #: whether to keep records, or the result alone
    records: bool
    allow_late: bool
    #: digest of the sources that shall make it
    sources: str


def task_of(
    run: Run, campaign: Campaign, folder: Path, incoming: Path | None = None, *, allow_late: bool = False
) -> Task:
    """Return the task of a run of the campaign in `folder`."""
    return Task(
        run=run.name,
        scenario=run.scenario,
        campaign=folder.resolve(),
        incoming=(incoming or folder).resolve(),
        metrics=campaign.all_metrics,
        records=campaign.keep == "records",
        allow_late=allow_late,
        sources=sources().digest,
    )


@dataclass(frozen=True, slots=True)
class Parcel:
    """A run made on another machine: its row and its files."""

    row: Row
    files: dict[str, bytes]


def execute(task: Task, show: Show = lambda progress: None) -> Row:
    """Make a run on this machine and put its folder in its place; return its row."""
    made = task.incoming / task.run
    return _put(made, task, _make(task, made, show))


def execute_afar(task: Task) -> Parcel:
    """Make a run on a machine that may have no access to the campaign's folder."""
    with tempfile.TemporaryDirectory(prefix="fadelab-") as scratch:
        made = Path(scratch) / task.run
        row = _make(task, made, lambda progress: None)
        files = {path.name: path.read_bytes() for path in made.iterdir()} if made.is_dir() else {}
    return Parcel(row, files)


def unpack(parcel: Parcel, task: Task) -> Row:
    """Put the folder of a run made elsewhere in its place; return its row."""
    made = task.incoming / task.run
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    for name, content in parcel.files.items():
        (made / Path(name).name).write_bytes(content)
    return _put(made, task, parcel.row)


def _put(made: Path, task: Task, row: Row) -> Row:
    """Put a run's folder in its place, that of a failed run instead of that of an earlier attempt; return its row."""
    if row.status == "done":
        settle(made, task.campaign / RUNS / task.run)
    elif made.is_dir():
        target = task.campaign / FAILED / task.run
        shutil.rmtree(target, ignore_errors=True)
        made.rename(target)
    return row


def failed(run: str, error: BaseException, seconds: float | None = None) -> Row:
    """Return the row of a run that failed."""
    return Row(
        run=run,
        status="failed",
        error=" ".join(str(error).split()) or type(error).__name__,
        traceback="".join(traceback.format_exception(error)),
        seconds=seconds,
        fadelab=sources().version,
        processor=processor(),
        cores=state(),
        sources=sources().digest,
    )


def _make(task: Task, made: Path, show: Show) -> Row:
    # a process that makes runs of tier model needs little of this
    from testbed.results.validity import require_valid
    from testbed.running import check_tier, run_in

    began, summary = monotonic(), None
    _require_sources(task)
    try:
        scenario = validate(task.scenario, task.run, base=task.campaign)
        check_tier(scenario)
        shutil.rmtree(made, ignore_errors=True)
        flags = ["--allow-late"] if task.allow_late else []
        folder = RunFolder.at(made, scenario, ("fadelab", "run", f"{RUNS}/{task.run}/scenario.yaml", *flags))
        if (values := _relative(task.scenario)) != task.scenario:
            (made / "scenario.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
        summary = run_in(folder, scenario, show)
        require_valid([summary], task.allow_late)
        if not task.records:
            for path in made.glob("*.parquet"):
                path.unlink()
        _require_sources(task)
        return replace(describe(made, task.run, task.metrics), seconds=monotonic() - began)
    except SourcesError:
        raise
    except Exception as error:
        if is_of_disk(error):
            # the campaign's fault, not the run's
            raise
        row = failed(task.run, error, monotonic() - began)
        return row if summary is None else replace(row, **conditions(summary.plain()))


def tells_scenario(folder: Path, run: Run) -> bool:
    """Return whether the scenario in a run's folder is that of the plan. Raises FadelabError if it cannot be read."""
    planned: dict[str, Any] = _relative(run.scenario)
    return read_mapping(folder / "scenario.yaml", "scenario") == planned


def _require_sources(task: Task) -> None:
    """Raise SourcesError where the sources are not those of the campaign's command, or have changed."""
    if (ours := require_unchanged()).digest != task.sources:
        raise SourcesError(f"{task.run}: a worker has other sources ({ours.version}) than this command: start it again")


def _relative(value: Any) -> Any:
    """Return a scenario's value with paths that start at the run's folder."""
    if isinstance(value, dict):
        return {key: _relative(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_relative(inner) for inner in value]
    return f"{_TO_CAMPAIGN}/{value}" if isinstance(value, str) and value.startswith(f"{FILES}/") else value
