"""The command line: one click group, and the one place where an exception becomes a line for people.

A command is a file in this folder (or a folder, where it has parts) that declares `COMMAND`.

Rules kept:

- A command imports what it needs inside its function, so that `--help` and every start are quick.
- stdout carries results (with `--json`: one JSON document and nothing else); progress goes to stderr.
- A command returns its exit status (None is 0). It raises for the rest and catches nothing it cannot mend:
  exceptions named in `KNOWN_ERRORS` become `fadelab: <one line>` and status 2; any other is a bug, whose
  traceback is saved.
"""

import io
import os
import sys
from collections.abc import Callable, Sequence

import click

from common.registry import Registry
from testbed.errors import is_of_disk
from testbed.paths import root

#: Exception classes whose message is a line for people, by full name: named, not imported, to keep starts
#: quick. Subclasses count.
KNOWN_ERRORS = frozenset(
    {
        "channel.replay.TraceError",
        "dashboard.control.ControlError",
        "dashboard.serving.ServerError",
        "flowgraphs.air.AirError",
        "flowgraphs.frontend.FrontEndError",
        "flowgraphs.phy.PhyError",
        "flowgraphs.recording.RecordingError",
        "flowgraphs.series.SeriesError",
        "hosts.errors.HostError",
        "telemetry.influx.errors.InfluxError",
        "telemetry.parquet.RecordsError",
        "testbed.errors.FadelabError",
    }
)

INTERRUPTED = 130
#: characters of a line's begin and end that stay, when what it quotes makes it longer
_HEAD, _TAIL = 800, 200


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; never raises for an error of the command's."""
    for stream in (sys.stdout, sys.stderr):
        # a name of a file need not be text
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    given = None if args is None else list(args)
    return status_of(lambda: cli.main(args=given, prog_name="fadelab", standalone_mode=False))


def status_of(command: Callable[[], object]) -> int:
    """Run a command, or a program beside the command line, and return its exit status; errors become a line."""
    try:
        status = command()
    except click.Abort as error:
        # click turns Ctrl-C into Abort; the rest is a question answered with end-of-file.
        interrupted = error.__cause__ is None or isinstance(error.__cause__, KeyboardInterrupt)
        _complain("interrupted" if interrupted else "no answer given")
        return INTERRUPTED if interrupted else 2
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        # a group without a command: what there is, in as many lines as that has
        click.echo(error.format_message(), err=True)
        return 2
    except click.ClickException as error:
        _complain(_click_message(error))
        return 2
    except Exception as error:
        if is_of_disk(error):
            place = f" at {error.filename}" if error.filename else ""
            line = f"the disk takes no more{place} ({error.strerror})"
            _complain(f"{line}: make room, or write to another disk (--out), and start again")
            return 2
        if _is_known(error):
            for note in getattr(error, "__notes__", ()):
                click.echo(f"warning: {note}", err=True)
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


# click types the name as optional; a command made of a function has one
for _command in Registry("testbed.cli", "COMMAND", click.Command).values():  # type: ignore[type-var]
    cli.add_command(_command)


def _is_known(error: Exception) -> bool:
    return any(f"{kind.__module__}.{kind.__qualname__}" in KNOWN_ERRORS for kind in type(error).__mro__)


def _click_message(error: click.ClickException) -> str:
    message = error.format_message()
    if isinstance(error, click.UsageError) and error.ctx is not None:
        message += f" See `{error.ctx.command_path} --help`."
    return message


def _complain(message: str) -> None:
    line = " ".join(message.split())
    if len(line) > _HEAD + _TAIL:
        line = f"{line[:_HEAD]} … {line[-_TAIL:]}"
    click.echo(f"fadelab: {line}", err=True)


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
