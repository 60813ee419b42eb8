"""A paper nobody wrote, whose cells cost nothing."""

import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from testbed.errors import FadelabError
from testbed.papers.paper import Paper, Quick
from testbed.papers.results import Cell, Job, Quartiles, Sample


@dataclass(frozen=True)
class Draw:
    """A number around `centre`, infinite from `limit` on."""

    centre: float
    limit: float = math.inf

    def __call__(self, seed: int) -> Sample:
        value = self.centre + Random(seed).uniform(-1, 1)
        return Sample(value if value < self.limit else math.inf, {"seed": seed})


@dataclass(frozen=True)
class Die:
    """A process that is killed."""

    def __call__(self, seed: int) -> Sample:
        os._exit(9)


@dataclass(frozen=True)
class Wait:
    """Work without end, which says that it has begun."""

    folder: Path

    def __call__(self, seed: int) -> Sample:
        (self.folder / f"{os.getpid()}").touch()
        time.sleep(3600)
        raise AssertionError("nobody has ended it")


JOBS = {
    "table1/a": Draw(10),
    "table1/b": Draw(20),
    "table1/again": Draw(10),
    "table2/half": Draw(40, 40),
    "table2/never": Draw(50, 0),
}


def cell(name: str, paper: Quartiles, replications: int) -> Cell:
    return Cell(name, paper, replications, case=name)


def job(case: str, settings: Sequence[str]) -> Job:
    if settings:
        raise FadelabError(f"--set {settings[0]}: not here")
    return JOBS[case]


#: five cells, two of which ask the same
PAPER = Paper(
    name="made-up",
    title='Nobody, "Numbers", 2000',
    unit="s",
    heading="Made up",
    parameters={},
    read=lambda: (
        cell("table1/a", Quartiles(9.0, 10.0, 11.0), 6),
        cell("table1/b", Quartiles(None, 30.0, None), 6),
        cell("table1/again", Quartiles(9.0, 20.0, 11.0), 6),
        cell("table2/half", Quartiles(None, 40.0, None), 5),
        cell("table2/never", Quartiles(None, math.inf, None), 5),
    ),
    job=job,
    quick=Quick(replications=16),
)
