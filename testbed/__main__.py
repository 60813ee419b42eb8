"""`python -m testbed`: the command line, as `./fadelab` starts it.

Rule kept: a termination request unwinds like Ctrl-C does, so that `with` and `finally` blocks still remove
namespaces, interfaces and children.
"""

import signal
import sys
from types import FrameType

from testbed.cli.app import main


def _terminated(signum: int, _frame: FrameType | None) -> None:
    # A second one finds the default action, should the clean-up itself hang.
    signal.signal(signum, signal.SIG_DFL)
    raise SystemExit(128 + signum)


if __name__ == "__main__":
    for _signum in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(_signum) is not signal.SIG_IGN:  # nohup
            signal.signal(_signum, _terminated)
    sys.exit(main())
