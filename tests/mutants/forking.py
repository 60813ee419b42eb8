"""Runs tests against mutants of functions, in forks of one pytest session that has collected all tests once.

    python -m tests.mutants.forking WORKERS < jobs > verdicts        (JSON, one a line; tests.mutants.drawn starts it)

In a fork the functions of the program get the code of the mutant. Nothing is imported or collected again, so that a
mutant takes the time of its tests. A mutant of code that runs at import (a constant, a default, a decorator) cannot be
made so: `running.Bench` imports the program anew for it.
"""

import functools
import gc
import importlib
import inspect
import json
import os
import resource
import sys
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from typing_extensions import override

from tests.mutants.making import FOLDERS, ROOT
from tests.mutants.running import IMPORT, KILLED, SURVIVED, Bench, Job, Outcome, Place, become_run

#: processor time and wall clock beyond which a test or a run hangs: times the recorded time, and s (a fixture that
#: tests share may have been recorded with another one)
PATIENCE, GRACE_S, WALL_S = 3, 20, 1500.0
_MEMORY_BYTES = 4 << 30
#: the same for a test without a mutant
_CHECK_S = 20.0
_TESTS = ["--part=parallel", "-q", "-s", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]


def _inner(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]


def _bare(code: CodeType, *, own: bool = False) -> CodeType:
    """Return code without its places in the file; `own`: without the code in it."""
    consts = [(each.co_name if own else _bare(each)) if isinstance(each, CodeType) else each for each in code.co_consts]
    return code.replace(co_linetable=b"", co_firstlineno=1, co_consts=tuple(consts))


def changed_functions(old: CodeType, new: CodeType) -> list[tuple[CodeType, CodeType]] | None:
    """Return the outermost functions that differ; None where code differs that runs when the file is imported."""
    if _bare(old, own=True) != _bare(new, own=True):
        return None
    found: list[tuple[CodeType, CodeType]] = []
    for before, after in zip(_inner(old), _inner(new), strict=True):
        if _bare(before) == _bare(after):
            continue
        if before.co_flags & inspect.CO_OPTIMIZED:
            found.append((before, after))
        elif (inner := changed_functions(before, after)) is not None:
            found += inner
        else:
            return None
    return found


class _Program:
    """The functions of the program in this process."""

    def __init__(self) -> None:
        for folder in FOLDERS:
            for path in (ROOT / folder).rglob("*.py"):
                if not path.name.startswith("__"):
                    importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        # frozen objects are not told of
        gc.unfreeze()
        everything = gc.get_objects()
        self._caches = [
            each
            for each in everything
            if isinstance(each, functools._lru_cache_wrapper) and not each.__module__.startswith("tests")
        ]
        self._functions = defaultdict[tuple[str, str, int], list[FunctionType]](list)
        for each in everything:
            if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(f"{ROOT}/"):
                code = each.__code__
                self._functions[code.co_filename, code.co_qualname, code.co_firstlineno].append(each)

    def patch(self, file: str, text: str) -> bool:
        """Give the functions of a file the code of a mutant; False where that does not make the mutant."""
        path = ROOT / file
        old = compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True)
        pairs = changed_functions(old, compile(text, str(path), "exec", dont_inherit=True))
        if not pairs:
            return False
        for before, after in pairs:
            live = self._functions[str(path), before.co_qualname, before.co_firstlineno]
            if not live or after.co_freevars != before.co_freevars:
                return False
            for function in live:
                function.__code__ = after
        for cache in self._caches:
            cache.cache_clear()
        return True


class _Failures:
    """A plugin: the first test that fails."""

    def __init__(self) -> None:
        self.first = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        if report.failed:
            self.first = self.first or report.nodeid


class _Forks(Bench):
    """Runs each job in a fork of this session."""

    def __init__(self, session: pytest.Session, folder: Path, workers: int) -> None:
        self._session, self._program = session, _Program()
        self._items = defaultdict[str, list[pytest.Item]](list)
        for item in session.items:
            for name in {item.nodeid, item.nodeid.split("[", 1)[0]}:
                self._items[name].append(item)
        self._taken_bytes = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        self._places = [Place(folder / str(number)) for number in range(workers)]

    @override
    def work(self, path: Path, job: Job[Any]) -> int:
        become_run(path, _MEMORY_BYTES + self._taken_bytes)
        temporary = path / "tmp"
        temporary.mkdir(exist_ok=True)
        tempfile.tempdir = os.environ["TMPDIR"] = os.environ["PYTEST_DEBUG_TEMPROOT"] = str(temporary)
        if job.file is not None and not self._program.patch(job.file, job.text):
            return IMPORT
        failures = _Failures()
        self._session.config.pluginmanager.register(failures)
        chosen = [(test, item) for test in job.tests for item in self._items.get(test, ())]
        following = [*(item for _, item in chosen[1:]), None]
        seconds, present = dict(zip(job.tests, job.seconds, strict=True)), ""
        for (test, item), after in zip(chosen, following, strict=False):
            if test != present:
                present = test
                limit = int(time.process_time() + PATIENCE * seconds[test] + GRACE_S)
                resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if failures.first:
                print(f"\nFAILED {failures.first} - ", flush=True)
                return 1
        return 0


class _Queue(Iterator[Job[Any]]):
    """The jobs; a test that has killed for the first time is run without a mutant, too."""

    def __init__(self, jobs: Iterable[Job[Any]]) -> None:
        self._waiting = deque(jobs)
        #: killing tests, and whether they pass without a mutant; None: not known yet
        self._sound: dict[str, bool | None] = {}
        self._held: list[tuple[Job[Any], Outcome]] = []

    def __next__(self) -> Job[Any]:
        """Return the next job."""
        if self._waiting:
            return self._waiting.popleft()
        raise StopIteration

    def settle(self, job: Job[Any], outcome: Outcome) -> Iterator[tuple[Job[Any], Outcome]]:
        """Take an outcome; yield those that are certain. A kill by a test that fails without a mutant is none."""
        if job.file is None:
            self._sound[job.tests[0]] = outcome.verdict == SURVIVED
        elif outcome.verdict == KILLED and "::" in outcome.by:
            self._held.append((job, outcome))
            if outcome.by not in self._sound:
                self._sound[outcome.by] = None
                self._waiting.appendleft(Job(None, None, "", [outcome.by], 0, WALL_S, [_CHECK_S]))
        else:
            yield job, outcome
        for held in list(self._held):
            sound = self._sound[held[1].by]
            if sound is not None:
                self._held.remove(held)
                if sound:
                    yield held
                else:
                    blamed = held[1].by.split("[", 1)[0]
                    rest = [(test, s) for test, s in zip(held[0].tests, held[0].seconds, strict=True) if test != blamed]
                    self._waiting.append(
                        replace(held[0], tests=[test for test, _ in rest], seconds=[s for _, s in rest])
                    )


class _Plugin:
    """Runs jobs instead of all tests."""

    def __init__(self, workers: int) -> None:
        self._workers = workers

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Answer each job."""
        rows = map(json.loads, sys.stdin)
        queue = _Queue([Job(r["number"], r["file"], r["text"], r["tests"], 0, WALL_S, r["seconds"]) for r in rows])
        with tempfile.TemporaryDirectory(prefix="fadelab-forks-", ignore_cleanup_errors=True) as folder:
            forks = _Forks(session, Path(folder), self._workers)
            # a fork must not copy all pages, and a collection of garbage touches each object
            gc.collect()
            gc.freeze()
            for job, outcome in forks.run(queue):
                for sure, what in queue.settle(job, outcome):
                    row = [sure.what, what.verdict, what.seconds, what.by]
                    print(json.dumps(row), file=_ANSWERS, flush=True)
        return True


if __name__ == "__main__":
    os.environ["FADELAB_PURE"] = "1"
    _ANSWERS = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.exit(pytest.main(_TESTS, plugins=[_Plugin(int(sys.argv[1]))]))
