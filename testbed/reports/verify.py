"""Checks a campaign made elsewhere: checksums of all files, and a sample of runs made again.

Rules kept
- Every difference is named by file and place; a record by row and column.
- What cannot be checked here is said: real-time runs do not repeat to the byte.
- The bundle is data: nothing in it is executed but its scenarios, on tier `model`.
"""

import hashlib
import json
import random
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

from testbed.campaigns.executing import Parcel, Task, execute_afar, task_of
from testbed.campaigns.file import CampaignError
from testbed.campaigns.folder import PLAN, RESULTS, RUNS, open_plan
from testbed.campaigns.plan import Run
from testbed.campaigns.processes import call_all
from testbed.campaigns.rows import CONDITIONS, MANIFEST, Row, describe
from testbed.reports.bundle import SUMS
from testbed.reports.numbers import Campaigned, read_campaign


@dataclass(frozen=True)
class Verdict:
    """The result of a check."""

    campaign: str
    plan: str
    #: files whose checksum was compared
    files: int
    #: runs made again, of those that tier `model` can make again
    recomputed: int
    of: int
    #: runs that are done on real-time tiers, which do not repeat to the byte
    real_time: int
    #: versions that made the runs
    versions: tuple[str, ...]
    #: in the order of the checks; empty: all agrees
    differences: tuple[str, ...]


def verify(
    path: Path, *, sample: int | None, workers: int, done: Callable[[int, int], None] = lambda runs, of: None
) -> Verdict:
    """Check a bundle or a campaign's folder; `sample` is the number of runs to make again, None: all.

    Raises CampaignError for a path that is neither.
    """
    with _opened(path) as (folder, damaged):
        plan = open_plan(folder)
        campaign = read_campaign(folder)
        files, differing = _check_sums(campaign)
        runs = [(run, row) for each in campaign.runs.values() for run, row in each if row.status == "done"]
        model = [run for run, _ in runs if not run.point.real_time]
        chosen = _choose(model, sample, differing, plan.sha256)
        differences = list(damaged)
        count = 0

        def tell(task: Task, parcel: Parcel) -> None:
            nonlocal count
            count += 1
            done(count, len(chosen))

        tasks = [task_of(run, plan.campaign, folder) for run in chosen]
        made = call_all(execute_afar, tasks, workers=workers, done=tell)
        named: set[str] = set()
        for run, parcel in zip(chosen, made, strict=True):
            for file, difference in _compare(folder / RUNS / run.name, parcel):
                named.add(f"{RUNS}/{run.name}/{file}")
                differences.append(f"{RUNS}/{run.name}/{file}: {difference}")
        results = list(_check_results(campaign))
        if results:
            named.add(RESULTS)
        # those that nothing else explains
        differences += [f"{file}: {why}" for file, why in differing.items() if file not in named]
        differences += results
        return Verdict(
            campaign=plan.campaign.name,
            plan=plan.sha256,
            files=files,
            recomputed=len(chosen),
            of=len(model),
            real_time=len(runs) - len(model),
            versions=tuple(sorted({row.fadelab for _, row in runs})),
            differences=tuple(differences),
        )


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield the campaign's folder of a bundle, and the files that its archive has damaged."""
    if path.is_dir():
        inner = [path] if (path / PLAN).exists() else [found.parent for found in sorted(path.glob(f"*/{PLAN}"))]
        if len(inner) != 1:
            raise CampaignError(f"{path}: is neither a bundle nor a campaign's folder")
        yield inner[0], []
        return
    with TemporaryDirectory(prefix="fadelab-verify-") as scratch:
        damaged = []
        try:
            with zipfile.ZipFile(path) as archive:
                for entry in archive.infolist():
                    try:
                        archive.extract(entry, scratch)
                    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
                        damaged.append(f"{entry.filename}: is damaged in the archive: {error}")
        except FileNotFoundError:
            raise CampaignError(f"{path}: no such bundle") from None
        except (OSError, zipfile.BadZipFile) as error:
            raise CampaignError(f"{path}: is no bundle: {error}") from None
        found = sorted(Path(scratch).glob(f"*/{PLAN}"))
        if len(found) != 1:
            first = f": {damaged[0]}" if damaged else ""
            raise CampaignError(f"{path}: is no bundle of one campaign{first}")
        yield found[0].parent, damaged


def _check_sums(campaign: Campaigned) -> tuple[int, dict[str, str]]:
    """Return the number of files compared with their checksums, and those that differ with the reason."""
    folder = campaign.path
    stated = {f"{RUNS}/{row.run}/{name}": digest for row in campaign.rows for name, digest in row.files.items()}
    stated |= campaign.plan.files
    try:
        lines = (folder / SUMS).read_text().splitlines()
    except OSError:
        lines = []
    stated |= {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    differing = {}
    for name, digest in stated.items():
        try:
            content = (folder / name).read_bytes()
        except OSError:
            differing[name] = "is missing"
            continue
        if hashlib.sha256(content).hexdigest() != digest:
            differing[name] = "differs from its checksum"
    return len(stated), differing


def _check_results(campaign: Campaigned) -> Iterator[str]:
    """Yield the differences between results.json and the runs' folders."""
    folder = campaign.path
    try:
        stated = {run["run"]: run for run in json.loads((folder / RESULTS).read_text())["runs"]}
    except (OSError, ValueError, LookupError, TypeError):
        yield f"{RESULTS}: cannot be read"
        return
    metrics = campaign.plan.campaign.all_metrics
    for runs in campaign.runs.values():
        for run, row in runs:
            if run.name not in stated:
                yield f"{RESULTS}: {run.name} is missing"
            elif row.status == "done":
                yield from _check_row(folder, run, stated[run.name], metrics)


def _check_row(folder: Path, run: Run, stated: dict[str, object], metrics: tuple[str, ...]) -> Iterator[str]:
    try:
        row: Row = describe(folder / RUNS / run.name, run.name, metrics)
    except (OSError, ValueError, LookupError) as error:
        yield f"{RUNS}/{run.name}: cannot be read: {error}"
        return
    found, kept = stated.get("metrics"), row.lasting()
    claims = {name: found.get(name) if isinstance(found, dict) else None for name in row.metrics}
    # a campaign of an older version has no conditions
    claims |= {name: stated[name] for name in CONDITIONS if name in stated}
    for name, claimed in claims.items():
        value = kept["metrics"][name] if name in row.metrics else kept[name]
        if claimed != value:
            yield f"{RESULTS}: {run.name}: {name} is {claimed}, and {value} in the run's summary.json"


def _choose(runs: list[Run], sample: int | None, differing: dict[str, str], plan: str) -> list[Run]:
    """Return the runs to make again: those with files that differ, and others drawn by chance."""
    suspects = [run for run in runs if any(name.startswith(f"{RUNS}/{run.name}/") for name in differing)]
    others = [run for run in runs if run not in suspects]
    if sample is None or sample >= len(runs):
        return runs
    return [*suspects, *random.Random(plan).sample(others, max(0, min(sample - len(suspects), len(others))))]


def _compare(folder: Path, parcel: Parcel) -> Iterator[tuple[str, str]]:
    """Yield the files of a run that are not as the run made again has them, and the first difference in each."""
    if parcel.row.status == "failed":
        yield "", f"cannot be made again: {parcel.row.error}"
        return
    made = {name: content for name, content in parcel.files.items() if name != MANIFEST}
    present = {path.name for path in folder.iterdir() if path.is_file() and path.name != MANIFEST}
    for name in sorted(made.keys() | present):
        if name not in made:
            yield name, "is not made by the run"
        elif name not in present:
            yield name, "is missing"
        elif (kept := (folder / name).read_bytes()) != made[name]:
            yield name, first_difference(name, kept, made[name])


def first_difference(name: str, kept: bytes, made: bytes) -> str:
    """Return where a file of a bundle first differs from the same file made again."""
    if name.endswith(".parquet"):
        return _in_records(kept, made)
    lines = zip_longest(kept.decode(errors="replace").splitlines(), made.decode(errors="replace").splitlines())
    for number, (ours, theirs) in enumerate(lines, 1):
        if ours != theirs:
            return f"line {number} is {_shown(ours)}, made again {_shown(theirs)}"
    return f"differs at byte {_first_byte(kept, made)}"


def _in_records(kept: bytes, made: bytes) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    byte = _first_byte(kept, made)
    try:
        ours = pq.read_table(pa.BufferReader(kept), page_checksum_verification=False)
        columns = ours.to_pydict()
    except (pa.ArrowException, OSError, ValueError) as error:
        return f"differs at byte {byte}, and its records cannot be read: {str(error).splitlines()[0]}"
    again = pq.read_table(pa.BufferReader(made)).to_pydict()
    if columns.keys() != again.keys():
        return f"has columns {', '.join(columns)}, made again {', '.join(again)}"
    places = [
        (row, column, mine, yours)
        for column in columns
        for row, (mine, yours) in enumerate(zip_longest(columns[column], again[column]))
        if mine != yours
    ]
    if not places:
        return f"differs at byte {byte}, in no record"
    row, column, mine, yours = min(places, key=lambda place: place[0])
    return f"row {row}, {column} is {mine}, made again {yours}"


def _first_byte(kept: bytes, made: bytes) -> int:
    pairs = enumerate(zip_longest(kept, made))
    return next(index for index, (mine, yours) in pairs if mine != yours)


def _shown(line: str | None) -> str:
    return "missing" if line is None else repr(line.strip()[:80])
