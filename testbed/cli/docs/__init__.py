"""`docs`: the documents as a site.

Read first: `pages.py` (the files that become pages), `reference.py` (the page made from the registries),
`tables.py` (the tables of plugins), `pictures.py` (the page in pictures), docs/nav.yml (their order).

Rules kept: a warning of the builder is an error, a broken link or anchor is a warning. The site needs no network: no
font, script or style comes from elsewhere.
"""

from pathlib import Path

import click

from testbed.cli import options


@click.command()
@click.option("--out", type=options.FOLDER, help="Folder of the site; default: .build/site.")
@click.option("--port", type=click.IntRange(0, 65_535), help="Show the site on this port of the machine, until Ctrl-C.")
@click.option("--write", is_flag=True, help="Write the checkout's tables of plugins and Grafana's boards instead.")
@click.option("--pictures", is_flag=True, help="Make the pictures of the dashboard anew instead: some minutes.")
def docs(out: Path | None, port: int | None, write: bool, pictures: bool) -> None:
    """Build the documents as a site, to be read in a browser."""
    from testbed.cli.docs.site import build, serve
    from testbed.paths import root

    if write:
        from testbed.cli.docs.tables import write as write_all

        for path in write_all(root()):
            click.echo(path)
        return
    if pictures:
        from testbed.cli.docs.pictures import make

        for path in make(root()):
            click.echo(path)
        return
    target = out or root() / ".build" / "site"
    pages = build(target)
    click.echo(f"{target / 'index.html'}: {pages} pages", err=port is not None)
    if port is not None:
        serve(target, port)


COMMAND = docs
