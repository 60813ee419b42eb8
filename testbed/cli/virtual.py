"""`virtual`: any program in a machine whose time is virtual."""

from pathlib import Path

import click


@click.command(epilog="docs/virtual-time.md")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of the machine's entropy.")
@click.option(
    "--keep",
    "kept",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    multiple=True,
    metavar="FOLDER",
    help="Keep what the command writes into this folder of the host.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def virtual(seed: int, kept: tuple[Path, ...], command: tuple[str, ...]) -> int:
    """Run COMMAND in a machine in virtual time: fadelab virtual -- COMMAND...

    The machine is Linux in user mode, without root, and sees the files of this one, with the virtual USRPs of
    `fadelab env`. Its time passes only while all its programs wait, so that nothing is ever late. Its output and exit
    status are the command's. What the command writes outside of the folders to --keep is gone with the machine.
    """
    import os
    import sys

    from testbed.cli.env import variables
    from testbed.cli.machine.virtual_kernel import ensure_kernel
    from testbed.virtual import machine

    ensure_kernel()
    machine.check()
    environment = dict(os.environ)
    for name, paths in variables().items():
        before = [environment[name]] if environment.get(name) else []
        environment[name] = ":".join([*map(str, paths), *before])

    def out(octets: bytes) -> None:
        sys.stdout.buffer.write(octets)
        sys.stdout.buffer.flush()

    def err(octets: bytes) -> None:
        sys.stderr.buffer.write(octets)
        sys.stderr.buffer.flush()

    order = machine.Order(
        command=command,
        seed=seed,
        environment=environment,
        folders={str(folder.resolve()): folder.resolve() for folder in kept},
    )
    return machine.run(order, out, err)


COMMAND = virtual
