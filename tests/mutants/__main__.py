"""Run the mutants: put each fault into a copy of the sources and see whether its tests notice.

    .venv/bin/python -m tests.mutants [--only GLOB] [--workers N]

Exit status: 0 when every mutant is killed, 1 when one survives, 2 when the list or a run is at fault.
"""

import argparse
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.catalogue import ROOT, ListError, Mutant, check, choose, load

#: pytest's exit statuses (pytest.ExitCode)
_PASSED, _FAILED = 0, 1
#: a mutant may take this many times as long as the tests without it, and so much more, before it counts as hanging
_PATIENCE, _GRACE_S = 10, 60
#: the tests themselves
_LIMIT_S = 600.0
#: address space of one run: a loop that a fault made endless must not take the machine's memory
_MEMORY_BYTES = 4 << 30
#: pytest's short summary: the test ends where the reason begins
_BLAMED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)

KILLED, SURVIVED, ERROR = "killed", "survived", "error"


@dataclass(frozen=True)
class Outcome:
    """What became of one mutant, or of the tests without any."""

    verdict: str
    seconds: float
    #: the test that has failed, or what went wrong
    by: str


class Runner:
    """Runs tests in copies of the sources; `stop` ends all that is under way."""

    def __init__(self, root: Path, copies: Path) -> None:
        self._root, self._copies = root, copies
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True, text=True)
        self._files = [name for name in listed.stdout.split("\0") if name and (root / name).is_file()]
        self._stopped = False
        self._running: set[subprocess.Popen[bytes]] = set()

    def run(self, tests: Sequence[str], mutant: Mutant | None, limit_s: float) -> Outcome:
        """Run tests on a fresh copy of the sources."""
        with tempfile.TemporaryDirectory(dir=self._copies, ignore_cleanup_errors=True) as copy:
            subprocess.run(["cp", "--parents", "--no-dereference", *self._files, copy], cwd=self._root, check=True)
            if mutant is not None:
                mutant.apply(Path(copy))
            return self._pytest(tests, Path(copy), limit_s)

    def _pytest(self, tests: Sequence[str], copy: Path, limit_s: float) -> Outcome:
        # no bytecode: two versions of a file within one second have the same time stamp
        own = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(copy), "FADELAB_ROOT": str(copy)}
        command = [sys.executable, "-P", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        said = copy / "pytest.out"
        began = time.monotonic()
        with said.open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=copy,
                env=os.environ | own,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._running.add(process)
        try:
            if self._stopped:
                _kill(process)
            resource.prlimit(process.pid, resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return Outcome(KILLED, time.monotonic() - began, f"no end within {limit_s:.0f} s")
        finally:
            _kill(process)
            process.wait()
            self._running.discard(process)
        return judge(process.returncode, said.read_text(errors="replace"), time.monotonic() - began)

    def stop(self) -> None:
        """End what is under way, and what begins yet."""
        self._stopped = True
        for process in list(self._running):
            _kill(process)


def judge(status: int, output: str, seconds: float) -> Outcome:
    """Say what pytest's exit status and output mean."""
    if status == _PASSED:
        return Outcome(SURVIVED, seconds, "")
    if status == _FAILED:
        blamed = _BLAMED.search(output)
        return Outcome(KILLED, seconds, blamed[1] if blamed else "a test pytest does not name")
    last = output.strip().rsplit("\n", 1)[-1]
    return Outcome(ERROR, seconds, f"pytest ended with {status}: {last}")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a run and the processes it has started: it leads a group of its own."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def _run_all(runner: Runner, mutants: Sequence[Mutant], workers: int) -> dict[str, Outcome]:
    """Return each mutant's outcome by its name; an interrupt ends all runs.

    Raises ListError when tests fail without any mutant.
    """
    sets = list(dict.fromkeys(mutant.tests for mutant in mutants))
    limits: dict[tuple[str, ...], float] = {}
    outcomes: dict[str, Outcome] = {}
    with ThreadPoolExecutor(workers) as pool:
        try:
            bare = {pool.submit(runner.run, tests, None, _LIMIT_S): tests for tests in sets}
            for done in as_completed(bare):
                outcome, tests = done.result(), bare[done]
                words = " ".join(tests)
                if outcome.verdict != SURVIVED:
                    raise ListError(f"the tests fail without any mutant: {outcome.by} (of {words})")
                limits[tests] = _GRACE_S + _PATIENCE * outcome.seconds
                print(f"without mutants [{len(limits)}/{len(sets)}] {outcome.seconds:6.1f} s  {words}", flush=True)
            runs = {pool.submit(runner.run, mutant.tests, mutant, limits[mutant.tests]): mutant for mutant in mutants}
            for done in as_completed(runs):
                name = runs[done].name
                outcome = outcomes[name] = done.result()
                place = f"[{len(outcomes)}/{len(mutants)}]"
                print(f"{place:>7} {outcome.verdict:8} {outcome.seconds:6.1f} s  {name}", flush=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            runner.stop()
            raise
    return outcomes


def _table(mutants: Sequence[Mutant], outcomes: dict[str, Outcome]) -> str:
    width = max(len(mutant.name) for mutant in mutants)
    rows = [f"{'mutant':{width}}  {'verdict':8}  seconds  by"]
    for mutant in mutants:
        outcome = outcomes[mutant.name]
        by = outcome.by or f"nobody; {mutant.rule}"
        rows.append(f"{mutant.name:{width}}  {outcome.verdict:8}  {outcome.seconds:7.1f}  {by}")
    return "\n".join(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants that were asked for; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", metavar="GLOB", default="*", help="mutants whose name fits, as in 'snoop-*'")
    parser.add_argument("--workers", metavar="N", type=int, default=1, help="mutants at a time (1)")
    parser.add_argument("--list", action="store_true", help="say what there is and run nothing")
    options = parser.parse_args(arguments)
    if options.workers < 1:
        parser.error(f"--workers is {options.workers}; it must be 1 or more")
    try:
        mutants = choose(load(), options.only)
        check(mutants)
        if options.list:
            print("\n".join(f"{mutant.name}: {mutant.rule}" for mutant in mutants))
            return 0
        with tempfile.TemporaryDirectory(prefix="fadelab-mutants-", ignore_cleanup_errors=True) as copies:
            outcomes = _run_all(Runner(ROOT, Path(copies)), mutants, options.workers)
    except ListError as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("mutants: interrupted", file=sys.stderr)
        return 130
    print(f"\n{_table(mutants, outcomes)}\n")
    count = {verdict: sum(o.verdict == verdict for o in outcomes.values()) for verdict in (KILLED, SURVIVED, ERROR)}
    print(f"{count[KILLED]} of {len(mutants)} killed, {count[SURVIVED]} survived, {count[ERROR]} could not be run")
    return 2 if count[ERROR] else 1 if count[SURVIVED] else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
