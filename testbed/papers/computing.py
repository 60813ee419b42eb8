"""Computing the cells of a paper.

Rules kept
- Replication n of every cell has the seed base + n, so that cells compare under the same conditions (paired).
- The same question gives the same answer, to the last digit, on however many processes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from testbed.campaigns.processes import call_all
from testbed.papers.paper import Paper
from testbed.papers.results import Cell, CellResult, Job, Results, Sample

#: replications that go to a process at a time
_BATCH = 4


def reproduce(
    paper: Paper,
    cells: Sequence[Cell],
    *,
    replications: int | None = None,
    first_seed: int = 1,
    settings: Sequence[str] = (),
    workers: int = 1,
    done: Callable[[int, int], None] = lambda runs, of: None,
) -> Results:
    """Compute cells of a paper, as often as the paper did or `replications` times.

    Cells with equal jobs are computed once. `done` is called with the number of runs done and that of all. Raises
    FadelabError for settings that are refused, before anything runs.
    """
    counts = [replications or cell.replications for cell in cells]
    jobs: list[tuple[Job, int]] = []
    #: by cell, the index of its job
    owners = []
    for cell, count in zip(cells, counts, strict=True):
        job = (paper.job(cell.case, settings), count)
        if job not in jobs:
            jobs.append(job)
        owners.append(jobs.index(job))
    batches = [
        _Batch(index, job, range(start, min(start + _BATCH, first_seed + count)))
        for index, (job, count) in enumerate(jobs)
        for start in range(first_seed, first_seed + count, _BATCH)
    ]
    total = sum(count for _, count in jobs)
    finished = 0

    def count_runs(batch: _Batch) -> None:
        nonlocal finished
        finished += len(batch.seeds)
        done(finished, total)

    samples: list[list[Sample]] = [[] for _ in jobs]
    for batch, answer in zip(batches, call_all(_run, batches, workers=workers, done=count_runs), strict=True):
        samples[batch.job_index] += answer
    results = (
        CellResult(cell, first_seed, tuple(cell.sample(run) for run in samples[owner]))
        for cell, owner in zip(cells, owners, strict=True)
    )
    return Results(paper.name, tuple(results), tuple(settings))


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some replications of one job."""

    job_index: int
    job: Job
    seeds: range


def _run(batch: _Batch) -> list[Sample]:
    return [batch.job(seed) for seed in batch.seeds]
