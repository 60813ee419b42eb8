"""Computing the cells of a paper.

Rules kept
- Replication n of every cell has the seed base + n, so that cells compare under the same conditions (paired).
- The same question gives the same answer, to the last digit, on however many processes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import process_time

from testbed.campaigns.processes import call_all
from testbed.papers.question import Question
from testbed.papers.results import CellResult, Job, Results, Sample
from testbed.papers.samples import SampleStore

#: replications that go to a process at a time
_BATCH = 4


def reproduce(
    question: Question,
    *,
    workers: int = 1,
    done: Callable[[int, int], None] = lambda runs, of: None,
    store: SampleStore | None = None,
) -> Results:
    """Compute cells of a paper.

    Cells with equal jobs are computed once. `done` is called with the number of runs done and that of all. Samples that
    `store` has are not computed again, and it gets the others as they come. Raises FadelabError for settings that are
    refused, before anything runs.
    """
    cells, settings, first_seed = question.cells, question.settings, question.first_seed
    jobs: list[tuple[Job, int]] = []
    #: by cell, the index of its job
    owners = []
    for cell in cells:
        job = (question.paper.job(cell.case, settings), question.runs(cell))
        if job not in jobs:
            jobs.append(job)
        owners.append(jobs.index(job))
    samples: dict[tuple[int, int], Sample] = {}
    batches = []
    for index, (each, count) in enumerate(jobs):
        seeds = range(first_seed, first_seed + count)
        missing = []
        for seed in seeds:
            if store is not None and (known := store.get(index, seed)) is not None:
                samples[index, seed] = known
            else:
                missing.append(seed)
        batches += [_Batch(index, each, tuple(missing[at : at + _BATCH])) for at in range(0, len(missing), _BATCH)]
    total = sum(count for _, count in jobs)

    def take(batch: _Batch, answer: list[_Timed]) -> None:
        for seed, (sample, processor_s) in zip(batch.seeds, answer, strict=True):
            samples[batch.job_index, seed] = sample
            if store is not None:
                store.add(batch.job_index, seed, sample, processor_s)
        done(len(samples), total)

    call_all(_run, batches, workers=workers, done=take)
    results = (
        CellResult(cell, first_seed, tuple(cell.sample(samples[owner, first_seed + n]) for n in range(jobs[owner][1])))
        for cell, owner in zip(cells, owners, strict=True)
    )
    return Results(question.paper.name, tuple(results), tuple(settings))


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some replications of one job."""

    job_index: int
    job: Job
    seeds: tuple[int, ...]


#: a sample, and the processor time that it took (s)
_Timed = tuple[Sample, float]


def _run(batch: _Batch) -> list[_Timed]:
    timed = []
    for seed in batch.seeds:
        began = process_time()
        timed.append((batch.job(seed), process_time() - began))
    return timed
