"""The command line: one click group, and the one place where an exception becomes a line for people.

Rules kept:

- A command imports what it needs inside its function, so that `--help` and every start are quick.
- stdout carries results (with `--json`: one JSON document and nothing else); progress goes to stderr.
- A command returns its exit status (None is 0). It raises for the rest and catches nothing it cannot mend:
  exceptions named in `KNOWN_ERRORS` become `fadelab: <one line>` and status 2; any other is a bug, whose
  traceback is saved.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from testbed.paths import root

#: Exception classes whose message is a line for people, by full name: named, not imported, to keep starts
#: quick. Subclasses count.
KNOWN_ERRORS = frozenset(
    {
        "channel.replay.TraceError",
        "hosts.errors.HostError",
        "testbed.errors.FadelabError",
    }
)

INTERRUPTED = 130


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; never raises for an error of the command's."""
    try:
        status = cli.main(args=None if args is None else list(args), prog_name="fadelab", standalone_mode=False)
    except click.Abort as error:
        # click turns Ctrl-C into Abort; what remains is a question answered with end-of-file.
        interrupted = error.__cause__ is None or isinstance(error.__cause__, KeyboardInterrupt)
        _complain("interrupted" if interrupted else "no answer given")
        return INTERRUPTED if interrupted else 2
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED
    except click.ClickException as error:
        _complain(_click_message(error))
        return 2
    except Exception as error:
        if _is_known(error):
            _complain(str(error))
            return 2
        if os.environ.get("FADELAB_DEBUG") == "1":
            raise
        _complain(f"internal error: {type(error).__name__}: {error} ({_save_traceback(error)})")
        return 1
    return status if isinstance(status, int) else 0


def _print_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    import tomllib

    project = tomllib.loads((root() / "pyproject.toml").read_text())["project"]
    click.echo(f"fadelab {project['version']}")
    context.exit()


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the version and exit.",
)
@click.pass_context
def cli(context: click.Context) -> None:
    """A hardware-in-the-loop wireless testbed for TCP over lossy links."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@cli.command()
@click.argument("scenario", type=click.Path(path_type=Path))
@click.option("--tier", type=click.Choice(["model", "emulated", "vusrp", "usrp"]), help="Run on this tier.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a value, as in channel.per=0.1.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of all random numbers.")
@click.option("--repeat", type=click.IntRange(min=1), default=1, help="Run N times with consecutive seeds.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default="runs", show_default=True)
@click.option("--allow-late", is_flag=True, help="Accept a run that did not keep the clock.")
@click.option("--json", "json_", is_flag=True, help="Print one JSON object (with --repeat: one per run) instead.")
def run(
    scenario: Path,
    tier: str | None,
    settings: tuple[str, ...],
    seed: int | None,
    repeat: int,
    out: Path,
    allow_late: bool,
    json_: bool,
) -> None:
    """Run SCENARIO (a YAML file) and show its result.

    Each run keeps its scenario, seed, versions, records and result in a folder of its own below --out.
    """
    from testbed import commands

    overrides = {"tier": tier, "seed": seed}
    commands.run(scenario, settings, overrides, repeat=repeat, out=out, allow_late=allow_late, json_=json_)


@cli.command()
@click.option("--seconds", type=click.FloatRange(min=2), default=40.0, show_default=True, help="Length of each run.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a value of the scenario.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of all random numbers.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default="runs", show_default=True)
@click.option("--allow-late", is_flag=True, help="Accept a run that did not keep the clock.")
def demo(seconds: float, settings: tuple[str, ...], seed: int | None, out: Path, allow_late: bool) -> None:
    """Show what SLACP does: one transfer over a lossy link without it, one with it, side by side.

    Two real Linux hosts, kernel TCP, a modelled radio link (tier emulated). Takes about a minute and ends with a
    table and a plot.
    """
    from testbed import commands

    commands.demo(seconds, settings, seed, out=out, allow_late=allow_late)


@cli.command()
@click.option("--json", "json_", is_flag=True, help="Print one JSON object instead of the table.")
def doctor(json_: bool) -> int:
    """Look at this machine: what works, what is missing, how to get it.

    Changes nothing. The exit status is 0 when everything `demo` needs is there, else 2.
    """
    from testbed import doctor as doctor_

    with doctor_.progress() as report:
        found = doctor_.checks(report)
    if json_:
        click.echo(doctor_.as_json(found))
    else:
        doctor_.render(found)
    return 0 if doctor_.ready(found) else 2


@cli.command(context_settings={"ignore_unknown_options": True})
@click.argument("pytest_args", nargs=-1, type=click.UNPROCESSED)
def test(pytest_args: tuple[str, ...]) -> int:
    """Run every check and test: ruff, mypy, shellcheck, pytest.

    PYTEST_ARGS go to pytest: `fadelab test -- -k slacp`.
    """
    from testbed.checks import run

    return run(pytest_args)


@cli.command()
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
def clean(dry_run: bool) -> None:
    """Remove what a killed run left: namespaces, interfaces, processes."""
    from hosts import network

    things = network.leftovers() if dry_run else network.clean()
    for thing in things:
        click.echo(f"{'would remove' if dry_run else 'removed'} {thing}")
    if not things:
        click.echo("nothing to clean")


def _is_known(error: Exception) -> bool:
    return any(f"{kind.__module__}.{kind.__qualname__}" in KNOWN_ERRORS for kind in type(error).__mro__)


def _click_message(error: click.ClickException) -> str:
    message = error.format_message()
    if isinstance(error, click.UsageError) and error.ctx is not None:
        message += f" See `{error.ctx.command_path} --help`."
    return message


def _complain(message: str) -> None:
    click.echo(f"fadelab: {' '.join(message.split())}", err=True)


def _save_traceback(error: Exception) -> str:
    """Keep the traceback for a bug report; returns where it is, or how else to see it."""
    import traceback

    target = root() / ".build" / "last-error.txt"
    try:
        target.parent.mkdir(exist_ok=True)
        target.write_text(f"{sys.argv}\n" + "".join(traceback.format_exception(error)))
    except OSError:
        return "FADELAB_DEBUG=1 shows the traceback"
    return f"traceback in {target}"
