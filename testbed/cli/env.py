"""`env`: where UHD finds the virtual USRPs and GNU Radio Companion our blocks."""

import shlex
import site
from pathlib import Path

import click

from testbed.paths import root


@click.command()
def env() -> None:
    """Print shell exports with which any UHD program and GNU Radio Companion see the virtual USRPs and our blocks.

    \b
    eval "$(./fadelab env)"
    """
    # ours go before the paths that a variable holds already
    for name, paths in variables().items():
        ours = shlex.quote(":".join(map(str, paths)))
        click.echo(f"export {name}={ours}${{{name}:+:${name}}}")


COMMAND = env


def variables() -> dict[str, tuple[Path, ...]]:
    """Return the search paths of virtual USRPs and of our blocks, by the name of their variable."""
    ours = (path for path in map(Path, site.getsitepackages()) if path.is_relative_to(root()))
    return {
        "UHD_MODULE_PATH": (root() / ".build" / "vusrp" / "uhd",),
        "GRC_BLOCKS_PATH": (root() / "flowgraphs" / "native" / "grc", root() / "flowgraphs" / "grc"),
        # our blocks' own, and the packages they import that Debian's Python does not have
        "PYTHONPATH": (root(), root() / ".build" / "native" / "python", *ours),
    }
