"""`dashboard`: the page, live and past runs in a browser. `serve.py` does it."""

from typing import Any

import click

from testbed.cli import options


@click.command(epilog="docs/dashboard.md")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    show_default="8050, or the next one that is free",
    help="The page's; 0: any free.",
)
@click.option("--bind", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="Others demand the token.")
@click.option("--name", "names", multiple=True, help="Host name of the page, where it is no address. Repeatable.")
@click.option(
    "--proxies",
    type=click.IntRange(0, 16),
    default=0,
    show_default=True,
    help="Proxies in front, whose X-Forwarded-For is believed.",
)
@click.option(
    "--demo", is_flag=True, help="Start the demo at once: a fading link on virtual radios, without and with SLACP."
)
@click.option(
    "--tour",
    "guided",
    is_flag=True,
    help="Start the guided tour at once, unattended in a loop: five steps from a clear channel to a recorded one.",
)
@click.option("--out", "runs", type=options.FOLDER, default="runs", show_default=True)
@click.option("--page-token-file", type=options.FILE, help="File with the token of the page.")
@options.influx
@click.option(
    "--influx-port",
    type=click.IntRange(0, 65535),
    show_default="8186, or the next one that is free",
    help="Where the database of our own listens, without --influx; 0: any free.",
)
@click.option(
    "--retention-days",
    type=click.IntRange(1, 3650),
    default=30,
    show_default=True,
    help="How long that one keeps records.",
)
@click.option("--air", metavar="NAME", help="Steer this air between stations that are programs of their own.")
@click.option("--scenario", type=options.PATH, help="What those run; default: the demo's.")
def dashboard(**arguments: Any) -> None:
    """Show live and past runs in a browser, and steer a demo.

    Prints the page's address, with the token that opens its controls unless that is in a file. Runs of other programs
    appear when they write to the same InfluxDB (--influx). docs/dashboard.md has the rest.
    """
    from testbed.cli.dashboard.serve import serve_dashboard

    serve_dashboard(**arguments)


COMMAND = dashboard
