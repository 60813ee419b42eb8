"""Copies of this process that run another module: children without the start of an interpreter.

In virtual time a start and its imports are most of what a run costs, since every system call and every first touch of a
page of memory goes through the machine's kernel, an ordinary program. A copy has the imports of this process.

Rules kept
- A copy is to the module what `python -m MODULE` is: its own `__main__`, environment, standard streams, Python's
  handling of signals, a collector of garbage, and no descriptor but these and those passed.
- Only a process of one thread is copied: what other threads hold would stay held.
"""

import gc
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.abc import InspectLoader
from importlib.util import find_spec, module_from_spec
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

_STANDARD = (0, 1, 2)


def entry(module: str, environment: Mapping[str, str], kept: Sequence[int]) -> Callable[[], NoReturn]:
    """Return what the copy calls (`preexec_fn` of Popen): it runs the module, and ends the process with its status.

    Popen's `restore_signals` must be False: it would undo what Python does about SIGPIPE, as before an exec.
    Raises RuntimeError when this process has several threads.
    """
    if len(list(Path("/proc/self/task").iterdir())) > 1:
        raise RuntimeError("a process with several threads cannot be copied")
    for stream in (sys.stdout, sys.stderr):
        # a copy would write it again
        stream.flush()
    spec = find_spec(module)
    assert spec is not None, module
    assert isinstance(spec.loader, InspectLoader)
    # here: what a copy has to compile, or has in a cache, would move its collections
    code = spec.loader.get_code(module)
    assert code is not None, module
    # the copy would touch, and so copy, every object that it collects
    gc.freeze()

    def run() -> NoReturn:
        # Popen has switched it off, for the moment before an exec
        gc.enable()
        # of no objects: the collector counts from here (grid.py)
        gc.collect()
        _close_all_but({*_STANDARD, *kept})
        os.environ.clear()
        os.environ.update(environment)
        main = sys.modules["__main__"] = module_from_spec(spec)
        main.__name__ = "__main__"
        status = 1
        try:
            exec(code, vars(main))
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
            if isinstance(end.code, str):
                print(end.code, file=sys.stderr)
        except BaseException:
            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError):
                    stream.flush()
            # what this process does when it ends is not for the copy
            os._exit(status)

    return run


def _close_all_but(kept: set[int]) -> None:
    # an empty range would be all of them
    for before, after in pairwise([-1, *sorted(kept), os.sysconf("SC_OPEN_MAX")]):
        if after > before + 1:
            os.closerange(before + 1, after)
