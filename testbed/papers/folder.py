"""The folder of a paper that was computed: results, report and plots, and how they came about.

| file | content |
|---|---|
| `results.json`, `cells.csv`, `replications.csv` | the same for every execution (`outputs.py`) |
| `report.md`, plots | likewise (`report.py`) |
| `manifest.json` | question, command, version, machine, times; written last, so that a folder with it is complete |
| `samples.jsonl` | of an unfinished computation (`samples.py`) |
"""

import csv
import json
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from common.compiled import state
from testbed.papers import outputs, report
from testbed.papers.computing import reproduce
from testbed.papers.paper import Paper
from testbed.papers.question import Question
from testbed.papers.results import CellResult, PaperError, Results, Sample
from testbed.papers.samples import SampleStore
from testbed.paths import command_line
from testbed.results.store import processor

_MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """How the results of a paper came about."""

    #: `Question.digest`: paper, cells, seeds, settings, version
    question: dict[str, Any]
    command: list[str]
    #: UTC, ISO 8601
    ended: str
    #: processor time of all runs, s; that of plots is not in it
    processor_s: float
    #: compiled or interpreted
    cores: str
    processor: str
    cpus: int
    python: str


def compute_into(
    folder: Path,
    question: Question,
    *,
    workers: int = 1,
    done: Callable[[int, int], None] = lambda runs, of: None,
    resume: bool = False,
) -> tuple[Results, list[Path]]:
    """Compute cells (see `reproduce`) and write the folder; return the results and the files written.

    Raises PaperError for a folder that cannot be made, or that has samples of another computation.
    """
    try:
        # before hours of work need it
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PaperError(f"--out {folder}: cannot be made: {error.strerror}") from None
    with SampleStore(folder, question, resume=resume) as store:
        (folder / _MANIFEST).unlink(missing_ok=True)
        results = reproduce(question, workers=workers, done=done, store=store)
        files = [*outputs.write(results, question.paper, folder), *report.write(question.paper, results, folder)]
        store.remove()
    made = Manifest(
        question=question.digest(),
        command=command_line(),
        ended=datetime.now(UTC).isoformat(timespec="seconds"),
        processor_s=round(store.processor_s, 1),
        cores=state(),
        processor=processor(),
        cpus=os.cpu_count() or 0,
        python=platform.python_version(),
    )
    files.append(folder / _MANIFEST)
    files[-1].write_text(json.dumps({name: getattr(made, name) for name in Manifest.__slots__}, indent=1) + "\n")
    return results, files


def editions(paper: Paper) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the name of the folder below `papers --all` and the settings, of a paper and of each of its variants."""
    yield paper.name, ()
    for variant, settings in paper.variants.items():
        yield f"{paper.name}-{variant}", settings


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a complete folder; None of another one. Raises PaperError for one that is broken."""
    try:
        return Manifest(**json.loads((folder / _MANIFEST).read_text()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise PaperError(f"{folder / _MANIFEST}: cannot be read: {error}") from None


def read_results(folder: Path, paper: Paper) -> Results:
    """Return the results that `replications.csv` has. Raises PaperError for a file that is not of this paper."""
    path = folder / "replications.csv"
    cells = {cell.name: cell for cell in paper.cells}
    try:
        with path.open(newline="") as file:
            headings, *rows = csv.reader(file)
        document = json.loads((folder / "results.json").read_text())
        # cell, unit where each has its own, seed, value, counters
        seed = headings.index("seed")
        names = headings[seed + 2 :]
        found = [
            CellResult(
                cells[name], int(own[0][seed]), tuple(_sample(row[seed + 1], names, row[seed + 2 :]) for row in own)
            )
            for name, own in ((name, list(group)) for name, group in groupby(rows, lambda row: row[0]))
        ]
        return Results(paper.name, tuple(found), tuple(document["settings"]))
    except (OSError, ValueError, KeyError) as error:
        raise PaperError(f"{path}: is not of the present cells of {paper.name}: {error}") from None


def _sample(value: str, names: Sequence[str], counts: Sequence[str]) -> Sample:
    return Sample(float(value), {name: float(text) for name, text in zip(names, counts, strict=True) if text})
