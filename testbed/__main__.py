"""`python -m testbed`: the command line, as `./fadelab` starts it.

Rule kept: SIGTERM and SIGHUP unwind the stack as Ctrl-C does, so that `with` and `finally` blocks remove namespaces,
interfaces and child processes.
"""

import signal
import sys
from types import FrameType


def _terminated(signum: int, _frame: FrameType | None) -> None:
    # a second signal ends the process at once, in case the clean-up hangs
    signal.signal(signum, signal.SIG_DFL)
    raise SystemExit(128 + signum)


def _main() -> int:
    for signum in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(signum) is not signal.SIG_IGN:  # nohup
            signal.signal(signum, _terminated)
    try:
        # Ctrl-C may come while it is imported
        from testbed.cli.app import main
    except KeyboardInterrupt:
        sys.stderr.write("fadelab: interrupted\n")
        return 130
    try:
        return main()
    finally:
        # Ctrl-C within an exec(), as dataclasses have, leaves a mark in CPython by which it kills itself in the end,
        # whatever came of the exception; another exec() removes it
        exec("")


if __name__ == "__main__":
    sys.exit(_main())
