"""The folder of a campaign.

campaign.yaml   the file that began it
plan.json       all points, seeds, hypotheses (plan.py), and plan.sha256: its hash; both before the first run
sources.json    version, commit and digest of the sources of its runs; with sources that no commit has, these are in
                sources.tar.gz
files/          copies of the traces and series that scenarios name
runs/           a folder per run that is done, as `run` makes it; it appears complete, by one rename
failed/         the same of runs that failed, as far as they came
index.jsonl     a line per run that has ended, in the order of the ends: a journal
progress.json   how far it is, while its command runs (progress.py)
results.json, results.csv   all runs in the plan's order; on tier `model` the same to the byte for every execution

Rules kept
- `runs/` is the truth, and the index a quick way to it: a folder without a line is read, a line without a folder does
  not count.
- A process killed at any moment leaves nothing that the next one cannot go on with.
- A run is on the disk, all its files, before its folder gets its name, and the name before the index has its line.
- One process at a time writes.
"""

import csv
import fcntl
import hashlib
import io
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from common.closing import Closing
from common.plain_json import LONGEST, object_of
from testbed.campaigns.file import CampaignError, load_campaign
from testbed.campaigns.journal import Journal, read_journal
from testbed.campaigns.plan import FILES, CampaignPlan, Run, make_plan, plan_from
from testbed.campaigns.rows import CONDITIONS, Row, describe, renewed, row_of
from testbed.results.owned_folders import make_folder
from testbed.results.whole_files import to_disk, write_whole
from testbed.sources import sources

PLAN, PLAN_HASH, SOURCE, INDEX = "plan.json", "plan.sha256", "campaign.yaml", "index.jsonl"
RESULTS, TABLE = "results.json", "results.csv"
SOURCES, DIFFERING = "sources.json", "sources.tar.gz"
RUNS, FAILED = "runs", "failed"
#: while a command runs (progress.py)
PROGRESS = "progress.json"
_LOCK = "lock"
_INCOMING = ".incoming-"
_OURS = {PLAN, PLAN_HASH, SOURCE, INDEX, RESULTS, TABLE, RUNS, FAILED, FILES, PROGRESS, SOURCES, DIFFERING, _LOCK}


class CampaignFolder(Closing):
    """The folder, open for writing. Raises FadelabError for one that is in use, or another plan's."""

    def __init__(self, path: Path, plan: CampaignPlan, source: Path, files: Mapping[str, Path]) -> None:
        self.path = path
        self.plan = plan
        try:
            with suppress(FileExistsError):
                make_folder(path)
            self._lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise CampaignError(f"{path}: cannot be made: {error.strerror}; choose another --out") from None
        try:
            self._take()
            self._begin(source, files)
            self._journal = Journal(path / INDEX)
        except BaseException:
            os.close(self._lock)
            raise
        self._journal.append({"plan": plan.sha256, "session": datetime.now(UTC).isoformat(timespec="milliseconds")})
        self.incoming = path / f"{_INCOMING}{os.getpid()}"

    def close(self) -> None:
        """Remove the folders of unfinished runs."""
        shutil.rmtree(self.incoming, ignore_errors=True)
        self._journal.close()
        os.close(self._lock)

    def _take(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CampaignError(f"{self.path}: another process runs this campaign") from None

    def _begin(self, source: Path, files: Mapping[str, Path]) -> None:
        """Write the plan, or see that it is the same."""
        path, text = self.path, self.plan.text
        present = {entry.name for entry in path.iterdir() if not entry.name.startswith(".")}
        if (foreign := sorted(present - _OURS)) and PLAN not in present:
            raise CampaignError(f"{path}: is no campaign's folder (it has {foreign[0]}): choose another --out")
        if PLAN in present:
            if (path / PLAN).read_text() != text:
                raise CampaignError(
                    f"{path}: has another plan, which was hashed before its first run: choose another --out"
                )
            _files_of(self.plan, path)
        else:
            for name, original in files.items():
                (path / name).parent.mkdir(exist_ok=True)
                write_whole(path / name, original.read_bytes(), lasting=True)
            write_whole(path / SOURCE, source.read_bytes(), lasting=True)
            write_whole(path / PLAN_HASH, f"{self.plan.sha256}  {PLAN}\n".encode(), lasting=True)
            write_whole(path / PLAN, text.encode(), lasting=True)
        for name in (RUNS, FAILED):
            (path / name).mkdir(exist_ok=True)
        for left in path.glob(f"{_INCOMING}*"):
            shutil.rmtree(left, ignore_errors=True)

    @property
    def began(self) -> datetime:
        """When the first session began."""
        return next(
            datetime.fromisoformat(each["session"]) for each in read_journal(self.path / INDEX) if "plan" in each
        )

    def known(self, *, retry: bool) -> dict[str, Row]:
        """Return the runs that have ended, by name; with `retry` without those that failed."""
        rows = {name: row for name, row in read_rows(self.path, self.plan).items() if row.status == "done" or not retry}
        listed = _listed(self.path)
        for name, row in rows.items():
            if name not in listed:
                self._journal.append(row.as_dict())
        return rows

    def hold_sources(self, rows: Iterable[Row]) -> None:
        """Keep the sources of the runs to come. Raises CampaignError if `rows` has runs that other sources made."""
        ours = sources()
        for row in rows:
            if row.status == "done" and row.sources != ours.digest:
                theirs = f"{row.fadelab}, sources {row.sources[:12] or 'not recorded'}"
                raise CampaignError(
                    f"{self.path}: {row.run} was made by fadelab {theirs}, and this is {ours.version}, sources "
                    f"{ours.digest[:12]}: go on with those sources, or choose another --out"
                )
        about = {"fadelab": ours.version, "commit": ours.commit, "sources": ours.digest, "removed": ours.removed}
        if differing := ours.differing:
            write_whole(self.path / DIFFERING, differing, lasting=True)
        else:
            (self.path / DIFFERING).unlink(missing_ok=True)
        write_whole(self.path / SOURCES, (json.dumps(about, indent=1) + "\n").encode(), lasting=True)

    def add(self, row: Row) -> None:
        """Write the line of a run whose folder is in its place."""
        self._journal.append(row.as_dict())

    def finish(self, rows: Iterable[tuple[Run, Row]], *, complete: bool) -> None:
        """Write all results in the plan's order."""
        for name, text in results_of(self.plan, list(rows), complete=complete).items():
            write_whole(self.path / name, text.encode())


def results_of(plan: CampaignPlan, rows: list[tuple[Run, Row]], *, complete: bool) -> dict[str, str]:
    """Return `results.json` and `results.csv` by their names, of all runs in the plan's order."""
    document = {
        "campaign": plan.campaign.name,
        "plan": plan.sha256,
        "complete": complete,
        "kinds": dict(Counter(row.kind for _, row in rows)),
        "runs": [
            {"point": run.point.name, "seed": run.seed, "tier": run.point.scenario["tier"], **row.lasting()}
            for run, row in rows
        ],
    }
    return {RESULTS: json.dumps(document, indent=1) + "\n", TABLE: _table(plan, rows)}


def open_plan(path: Path) -> CampaignPlan:
    """Return the plan of a campaign's folder. Raises CampaignError for another folder, or a plan without its hash."""
    try:
        text = (path / PLAN).read_text()
        stated = (path / PLAN_HASH).read_text().split()[0]
        plan = plan_from(object_of(text, LONGEST), str(path / PLAN))
    except (OSError, ValueError, IndexError):
        raise CampaignError(f"{path}: is no campaign's folder: it has no {PLAN} that can be read") from None
    if plan.text != text or plan.sha256 != stated:
        raise CampaignError(f"{path / PLAN}: does not match {PLAN_HASH}: the plan was changed after it was hashed")
    return plan


def planned(file: Path, clock: str | None = None) -> tuple[CampaignPlan, Path, dict[str, Path]]:
    """Return the plan of a campaign's file, or of a plan.json; the file that began it; and the files to copy.

    The files are by their paths in a campaign's folder. `clock`: of all points, in place of the file's. Raises
    FadelabError.
    """
    if file.name == PLAN:
        if clock is not None:
            raise CampaignError(f"{file} is fixed, its clock, too: leave out --clock, or name the campaign's own file")
        plan = open_plan(file.parent)
        if not (source := file.with_name(SOURCE)).is_file():
            raise CampaignError(f"{source}: is missing: copy it along with {PLAN}")
        return plan, source, _files_of(plan, file.parent)
    campaign = load_campaign(file)
    if clock is not None:
        campaign = campaign.model_copy(update={"set": {**campaign.set, "clock": clock}})
    if file.name == SOURCE and (beside := file.with_name(PLAN)).exists():
        # the copy in a campaign's folder: the scenarios that it names stayed beside the original, and are in the plan
        plan = open_plan(file.parent)
        if plan.campaign.model_dump(mode="json") != campaign.model_dump(mode="json"):
            raise CampaignError(
                f"{file}: is not the campaign of {beside} beside it, which repeats the campaign of this folder: for "
                "another one copy the campaign's file to the place of the original"
            )
        return plan, file, _files_of(plan, file.parent)
    plan, files = make_plan(campaign, file)
    return plan, file, files


def _files_of(plan: CampaignPlan, path: Path) -> dict[str, Path]:
    """Return the files of a plan in a campaign's folder. Raises CampaignError unless all are those of the plan."""
    files = {name: path / name for name in plan.files}
    for name, file in files.items():
        try:
            found = hashlib.sha256(file.read_bytes()).hexdigest()
        except OSError as error:
            raise CampaignError(
                f"{file}: cannot be read: {error.strerror}; {PLAN} names it, so copy {FILES} along with it"
            ) from None
        if found != plan.files[name]:
            raise CampaignError(f"{file}: is not the file that {PLAN} names: it was changed after the plan was hashed")
    return files


def read_rows(path: Path, plan: CampaignPlan) -> dict[str, Row]:
    """Return the runs of a campaign that have ended, by name."""
    present = {entry.name for entry in os.scandir(path / RUNS)} if (path / RUNS).is_dir() else set()
    listed = _listed(path)
    rows = {name: row for name, row in listed.items() if row.status == "failed" or name in present}
    for name, row in rows.items():
        if row.kind == "unknown":
            rows[name] = renewed(row, path / RUNS / name)
    for name in sorted(present):
        if name not in rows or rows[name].status == "failed":
            with suppress(OSError, ValueError, LookupError):
                rows[name] = describe(path / RUNS / name, name, plan.campaign.all_metrics)
    return rows


def _listed(path: Path) -> dict[str, Row]:
    """Return the rows of the index, the last one of each run."""
    return {row.run: row for line in read_journal(path / INDEX) if (row := row_of(line)) is not None}


def settle(incoming: Path, target: Path) -> None:
    """Put a complete folder in its place, by one rename; one that is there already stays. Both are on the disk then."""
    to_disk(*sorted(incoming.iterdir()), incoming)
    try:
        incoming.rename(target)
    except OSError:
        if not target.is_dir():
            raise
        shutil.rmtree(incoming, ignore_errors=True)
    to_disk(target.parent)


def _table(plan: CampaignPlan, rows: list[tuple[Run, Row]]) -> str:
    """Return a row per run: settings and metrics."""
    keys = list(dict.fromkeys(key for point in plan.points for key in point.settings))
    metrics = plan.campaign.all_metrics
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["run", "tier", *keys, "seed", "status", *CONDITIONS, *metrics])
    for run, row in rows:
        settings = [run.point.settings.get(key, "") for key in keys]
        values = [*(getattr(row, name) for name in CONDITIONS), *(row.value(name) for name in metrics)]
        shown = ["" if value is None else repr(value) for value in values]
        writer.writerow([run.name, run.point.scenario["tier"], *settings, run.seed, row.status, *shown])
    return text.getvalue()
