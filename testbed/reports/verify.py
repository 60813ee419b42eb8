"""Checks a campaign made elsewhere: checksums, results and report, and a sample of runs made again.

Rules kept
- Every difference is named by file and place; a record by row and column.
- The verifier draws the sample, by a number or by chance: who made the bundle cannot know it.
- All that a campaign states twice is compared: index and results with the runs' own files, report and figures with
  those that the rows give here, the program with the digest of its sources.
- What cannot be checked here is said: real-time runs do not repeat to the byte.
- The bundle is data within limits (received.py): nothing in it is executed but its scenarios, on tier `model`.
"""

import hashlib
import json
import random
import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

from testbed.campaigns.executing import Parcel, Task, execute_afar, task_of
from testbed.campaigns.folder import RESULTS, RUNS, open_plan, results_of
from testbed.campaigns.plan import Run
from testbed.campaigns.processes import call_all
from testbed.campaigns.rows import CONDITIONS, MANIFEST, Row, describe
from testbed.reports.bundle import PROGRAM, SUMS
from testbed.reports.numbers import Campaigned, read_campaign
from testbed.reports.received import LARGEST_FILE, check_names, check_plan, opened
from testbed.reports.report import FIGURES, write_report
from testbed.sources import SourcesError, digest_of_archive, sources

#: numbers that `--draw` may have
DRAWS = 2**32
#: what differs between two descriptions of one run: checksums are compared by themselves
_NOT_OF_THE_RUN = {"seconds", "files"}


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
    #: the number that drew them
    draw: int
    #: runs that are done on real-time tiers, which do not repeat to the byte
    real_time: int
    #: versions and digests of sources that made the runs
    versions: tuple[str, ...]
    sources: tuple[str, ...]
    #: whether the program's source in the bundle was compared with the latter
    has_program: bool
    #: whether there is a report that was compared
    has_report: bool
    #: in the order of the checks; empty: all agrees
    differences: tuple[str, ...]


def verify(
    path: Path,
    *,
    sample: int | None,
    draw: int | None = None,
    workers: int,
    done: Callable[[int, int], None] = lambda runs, of: None,
) -> Verdict:
    """Check a bundle or a campaign's folder; `sample` is the number of runs to make again, None: all.

    `draw` decides which; None: chance. Raises CampaignError for a path that is neither, or is refused.
    """
    draw = secrets.randbelow(DRAWS) if draw is None else draw
    with opened(path) as received:
        folder = received.folder
        plan = open_plan(folder)
        check_plan(plan, folder)
        campaign = read_campaign(folder)
        files, differing = _check_sums(campaign)
        runs = [(run, row) for each in campaign.runs.values() for run, row in each]
        model = [(run, row) for run, row in runs if not run.point.real_time]
        chosen = _choose(model, sample, differing, draw)
        differences = list(received.damaged)
        count = 0

        def tell(task: Task, parcel: Parcel) -> None:
            nonlocal count
            count += 1
            done(count, len(chosen))

        tasks = [task_of(run, plan.campaign, folder) for run, _ in chosen]
        made = call_all(execute_afar, tasks, workers=workers, done=tell)
        named: set[str] = set()
        for (run, row), parcel in zip(chosen, made, strict=True):
            if row.status == "failed":
                if parcel.row.status == "done":
                    differences.append(f"{RUNS}/{run.name}: is said to have failed ({row.error}), and can be made")
                continue
            for file, difference in _compare(folder / RUNS / run.name, parcel):
                named.add(f"{RUNS}/{run.name}/{file}")
                differences.append(f"{RUNS}/{run.name}/{file}: {difference}")
        results = [*_check_rows(campaign), *_check_results(campaign)]
        named |= {line.partition(":")[0] for line in results}
        report = list(_check_report(campaign))
        named |= {line.partition(":")[0] for line in report}
        # those that nothing else explains
        differences += [f"{file}: {why}" for file, why in differing.items() if file not in named]
        differences += results + report
        stated = sorted({row.sources for _, row in runs if row.status == "done"})
        program = None if received.bundle is None else received.bundle / PROGRAM
        has_program = program is not None and program.exists()
        if program is not None and has_program:
            differences += _check_program(program, stated)
        return Verdict(
            campaign=plan.campaign.name,
            plan=plan.sha256,
            files=files,
            recomputed=len(chosen),
            of=len(model),
            draw=draw,
            real_time=len([run for run, row in runs if run.point.real_time and row.status == "done"]),
            versions=tuple(sorted({row.fadelab for _, row in runs})),
            sources=tuple(stated),
            has_program=has_program,
            has_report=(folder / "report.html").exists() or (folder / "report.md").exists(),
            differences=tuple(differences),
        )


def _check_sums(campaign: Campaigned) -> tuple[int, dict[str, str]]:
    """Return the number of files compared with their checksums, and those that differ with the reason.

    Raises CampaignError for a name that leads outside.
    """
    folder = campaign.path
    stated = {f"{RUNS}/{row.run}/{name}": digest for row in campaign.rows for name, digest in row.files.items()}
    stated |= campaign.plan.files
    try:
        lines = (folder / SUMS).read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    stated |= {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    check_names(stated, f"{folder / SUMS if lines else folder}")
    differing = {}
    for name, digest in stated.items():
        try:
            with (folder / name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            differing[name] = "is missing"
            continue
        if found != digest:
            differing[name] = "differs from its checksum"
    return len(stated), differing


def _check_rows(campaign: Campaigned) -> Iterator[str]:
    """Yield the differences between the index, from which the report is made, and the runs' folders."""
    folder, metrics = campaign.path, campaign.plan.campaign.all_metrics
    if (folder / SUMS).exists() and not campaign.complete:
        yield f"index.jsonl: {campaign.planned - len(campaign.rows)} runs of the plan are missing"
    for row in campaign.rows:
        if row.status != "done":
            continue
        try:
            found = describe(folder / RUNS / row.run, row.run, metrics)
        except (OSError, ValueError, LookupError) as error:
            yield f"{RUNS}/{row.run}: cannot be read: {error}"
            continue
        for each in fields(Row):
            stated, own = getattr(row, each.name), getattr(found, each.name)
            if each.name not in _NOT_OF_THE_RUN and stated != own:
                yield f"index.jsonl: {row.run}: {each.name} is {_brief(stated)}, and {_brief(own)} in the run's folder"
        if more := sorted(found.files.keys() - row.files.keys()):
            yield f"index.jsonl: {row.run}: {more[0]} is in the run's folder, and not in the index"


def _brief(value: object) -> str:
    text = str(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _check_results(campaign: Campaigned) -> Iterator[str]:
    """Yield the differences between results.json, results.csv and the rows."""
    folder = campaign.path
    rows = [each for runs in campaign.runs.values() for each in runs]
    try:
        stated = {run["run"]: run for run in json.loads((folder / RESULTS).read_text())["runs"]}
        for run, row in rows:
            if run.name not in stated:
                yield f"{RESULTS}: {run.name} is missing"
            elif row.status == "done":
                yield from _check_metrics(row, stated[run.name])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        yield f"{RESULTS}: cannot be read"
        return
    for name, text in results_of(campaign.plan, rows, complete=campaign.complete).items():
        yield from _check_file(folder, name, text.encode())


def _check_metrics(row: Row, stated: dict[str, object]) -> Iterator[str]:
    found, kept = stated.get("metrics"), row.lasting()
    claims = {name: found.get(name) if isinstance(found, dict) else None for name in row.metrics}
    # a campaign of an older version has no conditions
    claims |= {name: stated[name] for name in CONDITIONS if name in stated}
    for name, claimed in claims.items():
        value = kept["metrics"][name] if name in row.metrics else kept[name]
        if claimed != value:
            yield f"{RESULTS}: {row.run}: {name} is {claimed}, and {value} in the run's row"


def _check_file(folder: Path, name: str, made: bytes) -> Iterator[str]:
    try:
        kept = (folder / name).read_bytes()
    except OSError:
        yield f"{name}: is missing"
        return
    if kept != made:
        yield f"{name}: {first_difference(name, kept, made)}"


def _check_report(campaign: Campaigned) -> Iterator[str]:
    """Yield the differences between the report and the one that the rows give; nothing where there is no report."""
    folder = campaign.path
    if not any((folder / name).exists() for name in ("report.html", "report.md")):
        return
    why = ""
    if made_by := {row.sources for row in campaign.rows if row.status == "done"} - {sources().digest}:
        others = ", ".join(sorted(each[:12] or "not recorded" for each in made_by))
        why = f" (the runs' sources, {others}, may word it otherwise)"
    with TemporaryDirectory(prefix="fadelab-report-") as made:
        scratch = Path(made)
        try:
            write_report(campaign, scratch)
        except (OSError, ValueError, LookupError, ArithmeticError) as error:
            yield f"report.html: cannot be made from the rows: {error}"
            return
        for path in sorted(scratch.rglob("*")):
            if path.is_file():
                name = path.relative_to(scratch).as_posix()
                yield from (line + why for line in _check_file(folder, name, path.read_bytes()))
        for more in sorted(_names(folder / FIGURES) - _names(scratch / FIGURES)):
            yield f"{FIGURES}/{more}: is no figure of the report"


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def _check_program(program: Path, stated: list[str]) -> Iterator[str]:
    """Yield whether the program in the bundle has other sources than those that made the runs."""
    try:
        found = digest_of_archive(program.read_bytes(), most=LARGEST_FILE)
    except SourcesError as error:
        yield f"{PROGRAM}: {error}"
        return
    if stated != [found]:
        theirs = ", ".join(each[:12] or "none recorded" for each in stated)
        yield f"{PROGRAM}: has sources {found[:12]}, and the runs were made by {theirs}"


def _choose(
    runs: list[tuple[Run, Row]], sample: int | None, differing: dict[str, str], draw: int
) -> list[tuple[Run, Row]]:
    """Return the runs to make again: those with files that differ, and others drawn by a number."""
    if sample is None or sample >= len(runs):
        return runs
    named = {name.split("/")[1] for name in differing if name.startswith(f"{RUNS}/") and name.count("/") > 1}
    suspects = [each for each in runs if each[0].name in named]
    others = [each for each in runs if each[0].name not in named]
    return [*suspects, *random.Random(draw).sample(others, max(0, min(sample - len(suspects), len(others))))]


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
    if name.endswith((".svg", ".html")) and (drawn := _in_drawing(kept, made)):
        return drawn
    lines = zip_longest(kept.decode(errors="replace").splitlines(), made.decode(errors="replace").splitlines())
    for number, (ours, theirs) in enumerate(lines, 1):
        if ours != theirs:
            return f"line {number} is {_shown(ours)}, made again {_shown(theirs)}"
    return f"differs at byte {_first_byte(kept, made)}"


#: in SVG: an attribute with numbers, and a number in it
_DRAWN = re.compile(r'\s(?:d|x|y|width|height|transform|points)="([^"]*)"')
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def _in_drawing(kept: bytes, made: bytes) -> str:
    """Return the first number in which the drawings of two files differ; empty: they draw the same."""
    ours, theirs = (
        [float(number) for drawn in _DRAWN.findall(each.decode(errors="replace")) for number in _NUMBER.findall(drawn)]
        for each in (kept, made)
    )
    if len(ours) != len(theirs):
        return f"draws {len(ours)} numbers, made again {len(theirs)}"
    pairs = enumerate(zip(ours, theirs, strict=True), 1)
    return next((f"number {at} that it draws is {a:g}, made again {b:g}" for at, (a, b) in pairs if a != b), "")


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
