"""`clean`: remove the leftovers of killed runs.

Namespaces and processes are `hosts`', airs `flowgraphs`', folders of machines in virtual time `testbed/virtual`'s.
"""

import click


@click.command()
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
def clean(dry_run: bool) -> None:
    """Remove what a killed run left: namespaces, interfaces, processes, airs, folders of machines."""
    import shutil

    from flowgraphs.air import Air
    from hosts.kernel.ownership import Registry
    from testbed.virtual import machine

    # processes first: an air stays as long as one of its radios lives
    leftovers = [str(leftover) for leftover in (Registry().leftovers() if dry_run else Registry().clean())]
    for name in Air.abandoned():
        if not dry_run:
            Air.remove(name)
        leftovers.append(f"air {name}: no process uses it")
    for folder in machine.abandoned():
        if not dry_run:
            shutil.rmtree(folder, ignore_errors=True)
        leftovers.append(f"{folder}: its machine in virtual time is gone")
    for leftover in leftovers:
        click.echo(f"{'would remove' if dry_run else 'removed'} {leftover}")
    if not leftovers:
        click.echo("nothing to clean")


COMMAND = clean
