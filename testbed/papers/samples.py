"""The samples of an unfinished computation, so that it can go on: `samples.jsonl` in the folder of the results.

Rules kept
- Samples count for the same question only: paper, cells, replications, seeds, settings, and sources of the program.
- A sample counts if the sources have not changed since the command began.
- A command that ends removes them, so that nothing old gets into new results. Only `--resume` uses them.
"""

from dataclasses import asdict
from pathlib import Path

from typing_extensions import override

from common.closing import Closing
from testbed.campaigns.journal import Journal, JournalError, read_journal
from testbed.papers.question import Question
from testbed.papers.results import PaperError, Sample
from testbed.sources import require_unchanged

_FILE = "samples.jsonl"


class SampleStore(Closing):
    """The samples so far, by the index of their job and their seed.

    Raises PaperError where there are samples that `resume` cannot use, that would be lost without it, or that another
    command adds to.
    """

    def __init__(self, folder: Path, question: Question, *, resume: bool) -> None:
        asked = question.digest()
        self._path = folder / _FILE
        rows = read_journal(self._path)
        if rows and not resume:
            raise PaperError(f"{self._path}: is of an interrupted command: go on with --resume, or remove it")
        if resume and rows and rows[0] != asked:
            other = next(key for key in asked if rows[0].get(key) != asked[key])
            what = "other sources of fadelab" if other in ("fadelab", "sources") else f"another {other}"
            raise PaperError(f"{self._path}: is of a command with {what}: remove it to begin anew")
        known = [row for row in rows[1:] if "seed" in row]
        self._known = {(row["job"], row["seed"]): Sample(row["value"], row["counts"]) for row in known}
        #: processor time that all samples have taken, s
        self.processor_s: float = sum(row["processor_s"] for row in known)
        try:
            self._journal = Journal(self._path)
        except JournalError:
            raise PaperError(f"{self._path}: another command computes there: wait for its end") from None
        if not rows:
            self._journal.append(asked)

    def get(self, job: int, seed: int) -> Sample | None:
        """Return a sample that there is."""
        return self._known.get((job, seed))

    def add(self, job: int, seed: int, sample: Sample, processor_s: float) -> None:
        """Keep a sample, and the processor time that it took."""
        require_unchanged()
        self.processor_s += processor_s
        self._journal.append({"job": job, "seed": seed, **asdict(sample), "processor_s": round(processor_s, 4)})

    def remove(self) -> None:
        """Remove the samples: the computation is complete."""
        self._path.unlink()

    @override
    def close(self) -> None:
        self._journal.close()
