"""Checks a campaign made elsewhere: checksums, results and report, and a sample of runs made again.

Rules kept
- Every difference is named by file and place; a record by row and column.
- The verifier draws the sample, by a number or by chance: who made the bundle cannot know it.
- All that a campaign states twice is compared: index and results with the runs' own files, scenarios with the plan,
  report and figures with those that the rows give here, what is around them with what gave it (bundle_check.py).
- What cannot be checked here is said: real-time runs do not repeat to the byte, for one.
- The bundle is data within limits (received.py): nothing in it is executed but its scenarios, on tier `model`.
"""

import hashlib
import random
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory

from common.plain_json import LONGEST, object_of
from testbed.campaigns.executing import Parcel, Task, execute_afar, task_of, tells_scenario
from testbed.campaigns.file import CampaignError
from testbed.campaigns.folder import PLAN, PLAN_HASH, RESULTS, RUNS, SOURCE, open_plan, results_of
from testbed.campaigns.plan import Run, check_names
from testbed.campaigns.processes import call_all
from testbed.campaigns.rows import CONDITIONS, MANIFEST, Row, describe
from testbed.errors import FadelabError
from testbed.reports.bundle import PROGRAM, REPORTS, SUMS
from testbed.reports.bundle_check import (
    check_campaign_file,
    check_documents,
    check_program,
    foreign,
    refuse_unnamed,
    uncheckable,
)
from testbed.reports.differing import check_file, first_difference
from testbed.reports.numbers import Campaigned, read_campaign
from testbed.reports.received import Received, opened
from testbed.reports.report import FIGURES, write_report
from testbed.sources import sources

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
    #: what could not be checked, with the reason
    unchecked: tuple[str, ...]
    #: in the order of the checks; empty: all that was checked agrees
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
    try:
        with opened(path) as received:
            return _verify(received, sample, draw, workers, done)
    except RecursionError:
        raise CampaignError(f"{path}: is refused: a file in it is nested too deeply") from None


def _verify(
    received: Received, sample: int | None, draw: int, workers: int, done: Callable[[int, int], None]
) -> Verdict:
    folder = received.folder
    plan = open_plan(folder)
    campaign = read_campaign(folder)
    sums = _read_sums(folder)
    if sums is not None or received.bundle is not None:
        refuse_unnamed(received, sums or ())
    found, differing = _check_sums(campaign, sums or ())
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
    unchecked: list[str] = []
    differences += check_program(received, campaign, stated, unchecked)
    if sums is not None or (folder / SOURCE).exists():
        differences += check_campaign_file(campaign)
    if sums is not None:
        differences += [f"{name}: belongs to no campaign" for name in foreign(campaign)]
        differences += check_file(folder, PLAN_HASH, f"{plan.sha256}  {PLAN}\n".encode())
        differences += check_documents(received, campaign, _why(campaign))
    unchecked += uncheckable(received, campaign)
    return Verdict(
        campaign=plan.campaign.name,
        plan=plan.sha256,
        files=len(found),
        recomputed=len(chosen),
        of=len(model),
        draw=draw,
        real_time=len([run for run, row in runs if run.point.real_time and row.status == "done"]),
        versions=tuple(sorted({row.fadelab for _, row in runs})),
        sources=tuple(stated),
        has_program=received.bundle is not None and (received.bundle / PROGRAM).exists(),
        has_report=any((folder / name).exists() for name in REPORTS),
        unchecked=tuple(unchecked),
        differences=tuple(differences),
    )


def _read_sums(folder: Path) -> list[tuple[str, str]] | None:
    """Return name and checksum of each line of SHA256SUMS; None without that file."""
    try:
        lines = (folder / SUMS).read_text(errors="replace").splitlines()
    except OSError:
        return None
    sums = [(name, digest) for digest, _, name in (line.partition("  ") for line in lines)]
    check_names(dict(sums), f"{folder / SUMS}")
    if twice := [name for name, several in Counter(name for name, _ in sums).items() if several > 1]:
        raise CampaignError(f"{folder / SUMS}: is refused: it names {twice[0]!r} twice")
    return sums


def _check_sums(campaign: Campaigned, sums: Iterable[tuple[str, str]]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the checksums found of all files that have one, and those that differ with the reason.

    Index, plan and `sums` may each state one of the same file. Raises CampaignError for a name that leads outside.
    """
    folder = campaign.path
    rows = [(f"{RUNS}/{row.run}/{name}", digest) for row in campaign.rows for name, digest in row.files.items()]
    check_names(dict(rows), str(folder))
    found: dict[str, str] = {}
    differing: dict[str, str] = {}
    for name, digest in (*rows, *campaign.plan.files.items(), *sums):
        if name not in found:
            try:
                with (folder / name).open("rb") as file:
                    found[name] = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError:
                found[name], differing[name] = "", "is missing"
        if found[name] and found[name] != digest:
            differing[name] = "differs from its checksum"
    return found, differing


def _check_rows(campaign: Campaigned) -> Iterator[str]:
    """Yield the differences between the index, from which the report is made, and the runs' folders."""
    folder, metrics = campaign.path, campaign.plan.campaign.all_metrics
    if (folder / SUMS).exists() and not campaign.complete:
        yield f"index.jsonl: {campaign.planned - len(campaign.rows)} runs of the plan are missing"
    for run, row in (each for runs in campaign.runs.values() for each in runs):
        if row.status != "done":
            continue
        try:
            if not tells_scenario(folder / RUNS / row.run, run):
                yield f"{RUNS}/{row.run}/scenario.yaml: is not the scenario of the plan"
            found = describe(folder / RUNS / row.run, row.run, metrics)
        except (OSError, ValueError, LookupError, FadelabError) as error:
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
        stated = {run["run"]: run for run in object_of((folder / RESULTS).read_text(), LONGEST)["runs"]}
        for run, row in rows:
            if run.name not in stated:
                yield f"{RESULTS}: {run.name} is missing"
            elif row.status == "done":
                yield from _check_metrics(row, stated[run.name])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        yield f"{RESULTS}: cannot be read"
        return
    for name, text in results_of(campaign.plan, rows, complete=campaign.complete).items():
        yield from check_file(folder, name, text.encode())


def _check_metrics(row: Row, stated: dict[str, object]) -> Iterator[str]:
    found, kept = stated.get("metrics"), row.lasting()
    claims = {name: found.get(name) if isinstance(found, dict) else None for name in row.metrics}
    # a campaign of an older version has no conditions
    claims |= {name: stated[name] for name in CONDITIONS if name in stated}
    for name, claimed in claims.items():
        value = kept["metrics"][name] if name in row.metrics else kept[name]
        if claimed != value:
            yield f"{RESULTS}: {row.run}: {name} is {claimed}, and {value} in the run's row"


def _check_report(campaign: Campaigned) -> Iterator[str]:
    """Yield the differences between the report and the one that the rows give; nothing where there is no report."""
    folder = campaign.path
    if not any((folder / name).exists() for name in (*REPORTS, SUMS)):
        return
    why = _why(campaign)
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
                yield from (line + why for line in check_file(folder, name, path.read_bytes()))
        for more in sorted(_names(folder / FIGURES) - _names(scratch / FIGURES)):
            yield f"{FIGURES}/{more}: is no figure of the report"


def _why(campaign: Campaigned) -> str:
    """Return what other sources that made the runs explain; empty: these have made them."""
    made_by = {row.sources for row in campaign.rows if row.status == "done"} - {sources().digest}
    others = ", ".join(sorted(each[:12] or "not recorded" for each in made_by))
    return f" (the runs' sources, {others}, may word it otherwise)" if made_by else ""


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


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
    if not folder.is_dir():
        yield "", "is no folder"
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
