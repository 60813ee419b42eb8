"""Draw mutants at random, and see which of them the tests kill.

    .venv/bin/python -m tests.mutants.drawn record        # which tests run which lines: the quick part, once
    .venv/bin/python -m tests.mutants.drawn run SEED COUNT [--workers N]

A mutant meets the tests that run its line, the fastest first, and then the others that may notice it (README.md).
"""

import argparse
import ast
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.making import FOLDERS, ROOT
from tests.mutants.running import ERROR, KILLED, SURVIVED, Bench, Job, Outcome

#: an environment with cosmic-ray and coverage.py
_TOOLS = ROOT / ".build" / "mutation"
_RECORD = _TOOLS / "record"
#: recorded time of the tests that a mutant meets in each round: s
_FORKS_S, _FIRST_S, _SECOND_S = 15.0, 2.0, 20.0
#: tests of what all modules declare, whichever lines they run
_OF_DECLARATIONS = {
    "tests/test_values.py::test_dataclasses_are_frozen_but_for_counters_states_and_frames",
    "tests/testbed/cli/test_docs.py::test_documents_and_boards_have_plugins_as_they_are_declared",
}
#: processor time and wall clock of a round beyond which a mutant hangs: times the recorded time, and s
_PATIENCE, _GRACE_S, _WALL_S = 3, 8, 1500.0


@dataclass(frozen=True)
class Drawn:
    """A mutant."""

    number: int
    file: str
    operator: str
    line: int
    column: int
    text: str

    def difference(self) -> str:
        """Return the lines before and after, as one."""
        old, new = ((ROOT / self.file).read_text(encoding="utf-8").splitlines(), self.text.splitlines())
        changed = [(a.strip(), b.strip()) for a, b in zip(old, new, strict=False) if a != b]
        return " | ".join(f"{a} => {b}" for a, b in changed[:1])


class _Recording:
    """The lines that test functions have run, of one recording."""

    def __init__(self, folder: Path) -> None:
        self._sources = folder / "sources"
        #: by file and line
        self.tests: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        #: lines that run when the tests are collected, by file
        self.imported: dict[str, set[int]] = defaultdict(set)
        for path in folder.glob("coverage.*"):
            with sqlite3.connect(path) as data:
                rows = data.execute(
                    "select distinct file.path, abs(arc.tono), context.context from arc join file on file.id = file_id "
                    "join context on context.id = context_id"
                )
                for file, line, test in rows:
                    if test:
                        self.tests[_relative(file)][line].add(test)
                    else:
                        self.imported[_relative(file)].add(line)

    def find(self, mutant: Drawn, now: str) -> set[str]:
        """Return the tests that ran the mutant's line, or its function where the file is another by now; those that
        ran anything of its file, or at least of its folder, for what runs at its import.
        """
        lines = self.tests[mutant.file]
        recorded = self._sources / mutant.file
        then = recorded.read_text(encoding="utf-8") if recorded.is_file() else ""
        name, statement = _function(now, mutant.line)
        if name:
            wanted = statement if now == then else _lines_of(then, name)
            return {test for line in wanted for test in lines.get(line, ())}
        found = {test for each in lines.values() for test in each}
        folder = mutant.file.rpartition("/")[0]
        beside = [] if found else [file for file in self.tests if file.rpartition("/")[0] == folder]
        return found | {test for file in beside for each in self.tests[file].values() for test in each}


class Record:
    """Which test functions run which lines, and how much processor time they take, of all recordings."""

    def __init__(self, folder: Path) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        #: tests that start processes, in which lines are not recorded
        self.starters: set[str] = set()
        # in the order that they were made: a later one knows better how long a test takes
        recordings = sorted(path for path in folder.iterdir() if path.is_dir())
        for recording in recordings:
            seconds: dict[str, float] = defaultdict(float)
            for path in recording.glob("times.*.jsonl"):
                for line in path.read_text().splitlines():
                    row = json.loads(line)
                    seconds[row["test"]] += row["seconds"]
                    if row["starts"]:
                        self.starters.add(row["test"])
            self.seconds |= seconds
        self._recordings = [_Recording(path) for path in recordings]

    def tests(self, mutant: Drawn) -> list[str]:
        """Return the tests that may notice a mutant, the fastest first."""
        now = (ROOT / mutant.file).read_text(encoding="utf-8")
        found = set[str]().union(*(recording.find(mutant, now) for recording in self._recordings))
        if not _function(now, mutant.line)[0]:
            found |= _OF_DECLARATIONS
        known = {test for test in found & self.seconds.keys() if _is_there(test)}
        return sorted(known, key=lambda test: self.seconds[test])

    def is_run_at_import(self, mutant: Drawn) -> bool:
        """Whether a mutant's function is called while tests are collected."""
        wanted = _function((ROOT / mutant.file).read_text(encoding="utf-8"), mutant.line)[1]
        return any(wanted & recording.imported[mutant.file] for recording in self._recordings)


def _relative(path: str) -> str:
    return min((path[path.index(f"/{folder}/") + 1 :] for folder in FOLDERS if f"/{folder}/" in path), key=len)


def _functions(text: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield all functions of a file with their dotted names, outer ones first."""
    waiting: list[tuple[str, ast.AST]] = [("", ast.parse(text))]
    while waiting:
        prefix, node = waiting.pop(0)
        for child in ast.iter_child_nodes(node):
            name = (
                f"{prefix}.{getattr(child, 'name', '')}"
                if isinstance(child, ast.FunctionDef | ast.ClassDef)
                else prefix
            )
            if isinstance(child, ast.FunctionDef):
                yield name, child
            waiting.append((name, child))


def _function(text: str, line: int) -> tuple[str, set[int]]:
    """Return the innermost function whose body has a line, empty outside, and the lines of the statement there."""
    found, body = "", None
    for name, node in _functions(text):
        if node.body[0].lineno <= line <= (node.end_lineno or 0):
            found, body = name, node
    if body is None:
        return "", set()
    statement = body.body[0]
    for each in ast.walk(body):
        if isinstance(each, ast.stmt) and each is not body and each.lineno <= line <= (each.end_lineno or 0):
            statement = each
    inner: Sequence[ast.stmt] = getattr(statement, "body", ())
    last = min((each.lineno - 1 for each in inner), default=statement.end_lineno or 0)
    return found, {*range(statement.lineno, max(last, statement.lineno) + 1), line}


def _lines_of(text: str, name: str) -> set[int]:
    """Return the lines of the body of a function."""
    return {
        line
        for each, node in (_functions(text) if text else ())
        if each == name
        for line in range(node.body[0].lineno, (node.end_lineno or 0) + 1)
    }


class _InOrder:
    """A plugin: chosen functions alone, in the order given."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._place = {test: place for place, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Choose and sort the tests."""
        place = self._place
        items[:] = [item for item in items if {item.nodeid, item.nodeid.split("[", 1)[0]} & place.keys()]
        items.sort(key=lambda item: place.get(item.nodeid, place.get(item.nodeid.split("[", 1)[0], 0)))


def _job(mutant: Drawn, tests: Sequence[str], seconds: float) -> Job[Drawn]:
    limit = int(_PATIENCE * seconds + _GRACE_S)
    kept = [test for test in tests if test.startswith("-") or _is_there(test)]
    # a case that is not there any more must not end the run: its function is given, and the plugin chooses
    functions = list(dict.fromkeys(test.split("[", 1)[0] for test in kept))
    return Job(mutant, mutant.file, mutant.text, functions, limit, _WALL_S, plugins=(_InOrder(kept),))


@cache
def _is_there(test: str) -> bool:
    file, _, function = test.split("[", 1)[0].partition("::")
    path = ROOT / file
    return path.is_file() and (
        not function or f"def {function.rpartition('::')[2]}(" in path.read_text(encoding="utf-8")
    )


def _round(
    bench: Bench, mutants: Sequence[Drawn], choose: Callable[[Drawn], tuple[list[str], float]], say: Callable[..., None]
) -> list[Drawn]:
    """Run a round; return the mutants that survived it."""
    left: list[Drawn] = []

    def jobs() -> Iterator[Job[Drawn]]:
        for mutant in mutants:
            tests, seconds = choose(mutant)
            job = _job(mutant, tests, seconds)
            if job.tests:
                yield job
            else:
                left.append(mutant)

    for job, outcome in bench.run(jobs()):
        say(job.what, outcome)
        if outcome.verdict != KILLED:
            left.append(job.what)
    return sorted(left, key=lambda mutant: mutant.number)


def _forked(mutants: Sequence[Drawn], record: Record, workers: int, limit_s: float) -> Iterator[tuple[Drawn, Outcome]]:
    """Run the mutants' tests in forks; yield the verdicts as they come."""
    with tempfile.TemporaryFile("w+") as jobs:
        for mutant in mutants:
            tests, _ = _within(record.tests(mutant), record.seconds, limit_s)
            row = {"number": mutant.number, "file": mutant.file, "text": mutant.text, "tests": tests}
            print(json.dumps(row | {"seconds": [record.seconds[test] for test in tests]}), file=jobs)
        jobs.seek(0)
        by_number = {mutant.number: mutant for mutant in mutants}
        with subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.mutants.forking", str(workers)], cwd=ROOT, stdin=jobs,
            stdout=subprocess.PIPE, stderr=(_TOOLS / "forks.log").open("w"), text=True,
            env=os.environ | {"FADELAB_PURE": "1", "FADELAB_ROOT": str(ROOT), "PYTHONPATH": str(ROOT)},
        ) as process:  # fmt: skip
            for line in process.stdout or ():
                number, verdict, seconds, by = json.loads(line)
                yield by_number[number], Outcome(verdict, seconds, by)


def _run(seed: int, count: int, only: Sequence[int], workers: int, forks_s: float) -> int:
    made = subprocess.run(
        [str(_TOOLS / "bin" / "python"), "-W", "ignore", "-m", "tests.mutants.making", str(seed), str(count)],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    print(f"seed {seed}: {count} of {made.stderr.split()[0]} mutants", flush=True)
    mutants = [Drawn(number, **json.loads(line)) for number, line in enumerate(made.stdout.splitlines())]
    mutants = [mutant for mutant in mutants if mutant.number in only]
    count = len(mutants)
    record = Record(_RECORD)
    verdicts: dict[int, str] = {}

    #: in copies: the mutants that a test function has killed
    killers: dict[str, list[Drawn]] = defaultdict(list)

    def say(name: str, mutant: Drawn, outcome: Outcome) -> None:
        verdicts[mutant.number] = outcome.verdict
        if name != "forks" and "::" in outcome.by:
            killers[outcome.by.split("[", 1)[0]].append(mutant)
        place = f"{mutant.file}:{mutant.line}"
        words = outcome.by if outcome.verdict == KILLED else f"{outcome.by} {mutant.difference()}"
        print(f"{name:6} {mutant.number:3} {outcome.verdict:8} {outcome.seconds:6.1f} s  {place}  {words}", flush=True)

    for mutant, outcome in _forked(mutants, record, workers, forks_s or _FORKS_S):
        say("forks", mutant, outcome)
    left = [mutant for mutant in mutants if verdicts[mutant.number] != KILLED]
    print(f"-- forks: {len(left)} of {count} survive", flush=True)
    # in which the mutant was as in its file
    complete = {m.number for m in left if verdicts[m.number] == SURVIVED and not record.is_run_at_import(m)}
    if forks_s:
        return 0

    def forked(mutant: Drawn) -> list[str]:
        return _within(record.tests(mutant), record.seconds, _FORKS_S)[0] if mutant.number in complete else []

    def first(mutant: Drawn) -> tuple[list[str], float]:
        if mutant.number in complete:
            return [], 0.0
        return _within(record.tests(mutant), record.seconds, _FIRST_S)

    def second(mutant: Drawn) -> tuple[list[str], float]:
        known = record.tests(mutant)
        starters = record.starters if mutant.file.startswith(("testbed/", "hosts/engine/")) else set()
        # those of the same folder first
        beside = f"tests/{mutant.file.rpartition('/')[0]}/"
        started = sorted(starters - set(known), key=lambda test: (not test.startswith(beside), record.seconds[test]))
        tests = [*known[len(forked(mutant) or first(mutant)[0]) :], *started]
        return _within(tests, record.seconds, _SECOND_S)

    with tempfile.TemporaryDirectory(prefix="fadelab-drawn-", ignore_cleanup_errors=True) as copies:
        bench = Bench(ROOT, Path(copies), workers)
        for name, choose in (("first", first), ("second", second)):
            left = _round(bench, left, choose, partial(say, name))
            print(f"-- {name}: {len(left)} of {count} survive", flush=True)
        # where pytest cannot even collect tests that it collects without the mutant, the program cannot be imported
        broken = [mutant for mutant in left if verdicts[mutant.number] == ERROR]
        for job, outcome in bench.run(
            _job(each, ["--collect-only", *_files(record.tests(each))], 9) for each in broken
        ):
            if outcome.verdict == ERROR and outcome.by.startswith("pytest ended with 2"):
                left.remove(job.what)
                print(f"import {job.what.number:3} killed: {job.what.file} cannot be imported", flush=True)
        # a kill by a test that fails without a mutant is none
        alone = (Job(test, None, "", [test], 300, _WALL_S) for test in killers)
        for check, outcome in bench.run(alone):
            if outcome.verdict != SURVIVED:
                print(f"{check.what} fails without a mutant: {outcome.by}")
                left += killers[check.what]
    for mutant in left:
        operator = mutant.operator.removeprefix("core/")
        print(f"{mutant.number:3} {mutant.file}:{mutant.line}:{mutant.column} {operator}: {mutant.difference()}")
    print(f"seed {seed}: {count - len(left)} of {count} killed")
    return 0


def _files(tests: Sequence[str]) -> list[str]:
    """Return the files of the first tests."""
    return list(dict.fromkeys(test.partition("::")[0] for test in tests[:20]))


def _within(tests: Sequence[str], seconds: Mapping[str, float], limit_s: float) -> tuple[list[str], float]:
    """Return the first tests that take so long together, and how long."""
    chosen: list[str] = []
    total = 0.0
    for test in tests:
        if chosen and total + seconds[test] > limit_s:
            break
        chosen.append(test)
        total += seconds[test]
    return chosen, total


def _record(arguments: Sequence[str]) -> int:
    """Run tests with the recording plugin; what was recorded before stays."""
    place = _RECORD / f"{len(list(_RECORD.glob('*'))):03}"
    place.mkdir(parents=True)
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, place / "sources" / folder, ignore=shutil.ignore_patterns("__pycache__"))
    own: dict[str, Any] = {
        "FADELAB_RECORD": str(place), "FADELAB_PURE": "1", "FADELAB_ROOT": str(ROOT),
        "PYTHONPATH": f"{ROOT}:{_TOOLS / 'coverage'}",
    }  # fmt: skip
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.mutants.recording"]
    return subprocess.run(
        [*command, *(arguments or ["--part=quick"])], cwd=ROOT, env=os.environ | own, check=False
    ).returncode


def main() -> int:
    """Do what the arguments say; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants.drawn", description=(__doc__ or "").split("\n", 1)[0]
    )
    commands = parser.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record", help="record which tests run which lines")
    record.add_argument("pytest", nargs="*", help="arguments for pytest (--part=quick)")
    run = commands.add_parser("run", help="draw mutants and run their tests")
    run.add_argument("seed", type=int)
    run.add_argument("count", type=int)
    run.add_argument("--workers", type=int, default=1, help="mutants at a time (1)")
    run.add_argument("--only", metavar="N,N,...", help="these of the draw, counted from 0")
    run.add_argument("--forks", type=float, default=0.0, metavar="S", help="only the first round, of so much time")
    options = parser.parse_args()
    if options.command == "record":
        return _record(options.pytest)
    only = range(options.count) if options.only is None else [int(number) for number in options.only.split(",")]
    return _run(options.seed, options.count, only, options.workers, options.forks)


if __name__ == "__main__":
    sys.exit(main())
