"""`python -m testbed`: the command line, as `./fadelab` starts it."""

import sys

from testbed import interrupts


def _main() -> int:
    interrupts.install()
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
