"""Run the listed mutants: put each fault into a copy of the sources and see whether its tests notice.

    .venv/bin/python -m tests.mutants [--only GLOB] [--workers N]

Exit status: 0 when every mutant is killed, 1 when one survives, 2 when the list or a run is at fault.
"""

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.mutants.catalogue import ROOT, ListError, Mutant, check, choose, load
from tests.mutants.running import ERROR, KILLED, SURVIVED, Bench, Job, Outcome

#: a mutant has hung after this time; the tests of each take a few seconds without it
_CPU_S, _WALL_S = 30, 300.0


def _jobs(mutants: Sequence[Mutant]) -> Iterator[Job[Mutant | None]]:
    # all tests, which must pass without any mutant
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    yield Job(None, None, "", tests, 10 * _CPU_S, 10 * _WALL_S)
    for mutant in mutants:
        yield Job(mutant, mutant.file, mutant.mutated(ROOT), mutant.tests, _CPU_S, _WALL_S)


def _run_all(bench: Bench, mutants: Sequence[Mutant]) -> dict[str, Outcome]:
    """Return each mutant's outcome by its name. Raises ListError when tests fail without any mutant."""
    outcomes: dict[str, Outcome] = {}
    for job, outcome in bench.run(_jobs(mutants)):
        if job.what is None:
            if outcome.verdict != SURVIVED:
                raise ListError(f"the tests fail without any mutant: {outcome.by}")
            print(f"        all tests pass without mutants, {outcome.seconds:.1f} s", flush=True)
        else:
            outcomes[job.what.name] = outcome
            place = f"[{len(outcomes)}/{len(mutants)}]"
            by = outcome.by or f"nobody; {job.what.rule}"
            print(f"{place:>9} {outcome.verdict:8} {outcome.seconds:6.1f} s  {job.what.name}  {by}", flush=True)
    return outcomes


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants that were asked for; return the exit status."""
    processors = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", metavar="GLOB", default="*", help="mutants whose name fits, as in 'snoop-*'")
    parser.add_argument("--workers", metavar="N", type=int, default=processors, help=f"at a time ({processors})")
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
            outcomes = _run_all(Bench(ROOT, Path(copies), options.workers), mutants)
    except ListError as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("mutants: interrupted", file=sys.stderr)
        return 130
    count = {verdict: sum(o.verdict == verdict for o in outcomes.values()) for verdict in (KILLED, SURVIVED, ERROR)}
    print(f"{count[KILLED]} of {len(mutants)} killed, {count[SURVIVED]} survived, {count[ERROR]} could not be run")
    return 2 if count[ERROR] else 1 if count[SURVIVED] else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
