"""`compile`: make the cores native, for tier `model` and the stations."""

import click


@click.command("compile", epilog="docs/compiled.md")
def compile_() -> None:
    """Compile the cores with mypyc: tier model becomes eight times as fast. The results are the same.

    FADELAB_PURE=1 runs the cores interpreted all the same. Once a core has changed, they are interpreted until the
    next `compile`.
    """
    from time import monotonic

    began = monotonic()
    modules = _build()
    click.echo(f"{modules} modules compiled in {monotonic() - began:.0f} s")


COMMAND = compile_


def ensure_compiled() -> None:
    """Compile the cores, unless they are or FADELAB_PURE is set, and begin this command anew.

    Where they cannot be compiled a line says so, and the command goes on: its results are the same.
    """
    import os
    import sys

    from common.compiled import PURE, look, state
    from testbed.errors import FadelabError

    if state() in ("compiled", PURE):
        return
    try:
        _build()
    except FadelabError as error:
        click.echo(f"fadelab: {error}; going on with interpreted cores", err=True)
        return
    if look() == "compiled":
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, "-P", "-m", "testbed", *sys.argv[1:]])


def _build() -> int:
    from testbed.cli.bar import bar
    from testbed.cli.machine import compiler

    with bar("compiling the cores", "files") as told:
        return compiler.build(told)
