"""The command line: one click group, and the one place where an exception becomes a line for people.

Rules kept:

- A command imports what it needs inside its function, so that `--help` and every start are quick.
- stdout carries results (with `--json`: one JSON document and nothing else); progress goes to stderr.
- A command returns its exit status (None is 0). It raises for the rest and catches nothing it cannot mend:
  exceptions named in `KNOWN_ERRORS` become `fadelab: <one line>` and status 2; any other is a bug, whose
  traceback is saved.
"""

import math
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

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
        "testbed.errors.FadelabError",
    }
)

INTERRUPTED = 130


class Finite(click.FloatRange):
    """A number in a range, to which neither nan nor inf belongs."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


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


def influx_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name an InfluxDB: `influx` and `token_file`."""
    url = click.option(
        "--influx", metavar="URL", envvar="FADELAB_INFLUX", help="Send the records to this InfluxDB, too."
    )
    path = click.Path(path_type=Path, dir_okay=False)
    token = click.option("--token-file", type=path, help="File with that InfluxDB's token, or user:password.")
    return url(token(command))


@cli.command()
@click.argument("scenario", type=click.Path(path_type=Path))
@click.option("--tier", type=click.Choice(["model", "emulated", "vusrp", "usrp"]), help="Run on this tier.")
@click.option("--tcp", metavar="NAME", help="What both hosts speak: a profile of the kernel's TCP, or user:NAME.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a value, as in channel.per=0.1.")
@click.option("--device", "devices", multiple=True, metavar="ARGS", help="Tier usrp: ST's radio, then BAS's.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of all random numbers.")
@click.option("--repeat", type=click.IntRange(min=1), default=1, help="Run N times with consecutive seeds.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default="runs", show_default=True)
@influx_options
@click.option("--allow-late", is_flag=True, help="Accept a run that did not keep the clock.")
@click.option("--json", "json_", is_flag=True, help="Print one JSON object (with --repeat: one per run) instead.")
def run(
    scenario: Path,
    tier: str | None,
    tcp: str | None,
    settings: tuple[str, ...],
    devices: tuple[str, ...],
    seed: int | None,
    repeat: int,
    out: Path,
    influx: str | None,
    token_file: Path | None,
    allow_late: bool,
    json_: bool,
) -> None:
    """Run SCENARIO (a YAML file) and show its result.

    Each run keeps its scenario, seed, versions, records and result in a folder of its own below --out.
    """
    from testbed.cli import run as commands

    overrides = {"tier": tier, "tcp": tcp, "seed": seed}
    settings = (*settings, *commands.device_settings(devices))
    commands.run(
        scenario,
        settings,
        overrides,
        repeat=repeat,
        out=out,
        influx=(influx, token_file),
        allow_late=allow_late,
        json_=json_,
    )


@cli.command()
@click.option(
    "--tier", type=click.Choice(["vusrp", "usrp", "emulated"]), default="vusrp", show_default=True, help="The medium."
)
@click.option("--device", "devices", multiple=True, metavar="ARGS", help="Tier usrp: ST's radio, then BAS's.")
@click.option("--seconds", type=Finite(min=2), default=40.0, show_default=True, help="Length of each run.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a value of the scenario.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of all random numbers.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default="runs", show_default=True)
@influx_options
# scripts may say it: lateness never fails a demo
@click.option("--allow-late", is_flag=True, hidden=True, expose_value=False)
def demo(
    tier: str,
    devices: tuple[str, ...],
    seconds: float,
    settings: tuple[str, ...],
    seed: int | None,
    out: Path,
    influx: str | None,
    token_file: Path | None,
) -> None:
    """Show what SLACP does: one transfer over a lossy link without it, one with it, side by side.

    Two real Linux hosts and kernel TCP over two radios: virtual ones on an air that fades, real ones with --tier usrp,
    or a frame-level model with --tier emulated. Both at once where this machine can carry that, else one after the
    other, or at a lower rate. Takes one to two minutes and ends with a table and a plot.
    """
    from testbed.cli import run as commands

    settings = (*settings, *commands.device_settings(devices))
    commands.demo(tier, seconds, settings, seed, out=out, influx=(influx, token_file))


@cli.command()
@click.option(
    "--device", required=True, metavar="ARGS", help="The radio, as in type=b200 or type=vusrp,air=lab,serial=V1."
)
@click.option(
    "--as", "role", type=click.Choice(["st", "bas"]), default="st", show_default=True, help="Which end to be."
)
@click.option("--scenario", type=click.Path(path_type=Path), help="Link, PHY and rates; default: the demo's.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a value of the scenario.")
@click.option("--tap", default="fl0", show_default=True, help="The TAP interface to make.")
@click.option("--address", metavar="ADDRESS/BITS", help="Give the TAP this IPv4 address.")
@click.option("--seconds", type=Finite(min=0.1), help="Stop after this long; default: at Ctrl-C.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default="runs", show_default=True)
@influx_options
@click.option("--run", help="The run the records belong to; the same at all stations and hosts.")
def station(
    device: str,
    role: str,
    scenario: Path | None,
    settings: tuple[str, ...],
    tap: str,
    address: str | None,
    seconds: float | None,
    out: Path,
    influx: str | None,
    token_file: Path | None,
    run: str | None,
) -> None:
    """Be one station of a radio link: a TAP on this side, a radio on the other.

    Start the other station, with the other --as, on this machine or another.
    """
    from testbed.cli import radio as radio_commands

    radio_commands.station(
        device,
        role,
        scenario,
        settings,
        tap=tap,
        address=address,
        seconds=seconds,
        out=out,
        influx=(influx, token_file),
        run=run,
    )


@cli.command()
@click.option(
    "--as", "role", type=click.Choice(["h1", "h2"]), default="h1", show_default=True, help="Which host to be."
)
@click.option("--peer", required=True, metavar="ADDRESS", help="The other host.")
@click.option("--scenario", type=click.Path(path_type=Path), help="Workloads and TCP; default: the demo's.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a value of the scenario.")
@click.option("--seconds", type=Finite(min=0.1), help="Stop after this long; default: at Ctrl-C.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default="runs", show_default=True)
@influx_options
@click.option("--run", help="The run the records belong to; the same at all stations and hosts.")
def host(
    role: str,
    peer: str,
    scenario: Path | None,
    settings: tuple[str, ...],
    seconds: float | None,
    out: Path,
    influx: str | None,
    token_file: Path | None,
    run: str | None,
) -> None:
    """Be one host behind a station: send and receive a scenario's workloads, with its TCP.

    Start the other host, with the other --as, behind the other station. Workloads limited by time alone go on until
    the host ends. While it runs, the TCP settings of this network namespace are the scenario's.
    """
    from testbed.cli import host as host_command

    host_command.host(role, peer, scenario, settings, seconds=seconds, out=out, influx=(influx, token_file), run=run)


@cli.command()
@click.argument("paper", required=False)
@click.option("--only", multiple=True, metavar="GLOB", help="Cells by name, as in 'table2/cra/high/*'.")
@click.option("--list", "list_", is_flag=True, help="Name the cells and do nothing else.")
@click.option("--replications", type=click.IntRange(1, 100_000), help="Runs per cell; default: the paper's own number.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of the first replication.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a value of all cells' scenarios.")
@click.option("--workers", type=click.IntRange(1, 1024), help="Processes; default: one per core.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Keep results, tables and plots there.")
@click.option("--json", "json_", is_flag=True, help="Print one JSON document instead of the table.")
def papers(
    paper: str | None,
    only: tuple[str, ...],
    list_: bool,
    replications: int | None,
    seed: int,
    settings: tuple[str, ...],
    workers: int | None,
    out: Path | None,
    json_: bool,
) -> None:
    """Compute the tables of PAPER again and show ours beside the paper's; without PAPER, name the papers.

    The result does not depend on the number of workers. docs/experiments.md says what each paper's cells are.
    """
    from testbed.cli import papers as papers_command

    if paper is None:
        papers_command.show_papers()
    elif list_:
        papers_command.show_cells(paper, only)
    else:
        papers_command.run(
            paper,
            only=only,
            replications=replications,
            seed=seed,
            settings=settings,
            workers=workers,
            out=out,
            json_=json_,
        )


@cli.command()
@click.option("--port", type=click.IntRange(0, 65535), default=8050, show_default=True, help="The page's; 0: any free.")
@click.option("--bind", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="Others demand the token.")
@click.option("--demo", is_flag=True, help="Start the demo at once: a fading link on virtual radios, with SLACP.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default="runs", show_default=True)
@click.option(
    "--page-token-file", type=click.Path(path_type=Path, dir_okay=False), help="File with the token of the page."
)
@influx_options
@click.option(
    "--influx-port",
    type=click.IntRange(0, 65535),
    default=8186,
    show_default=True,
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
@click.option("--scenario", type=click.Path(path_type=Path), help="What those run; default: the demo's.")
def dashboard(
    port: int,
    bind: str,
    demo: bool,
    out: Path,
    page_token_file: Path | None,
    influx: str | None,
    token_file: Path | None,
    influx_port: int,
    retention_days: int,
    air: str | None,
    scenario: Path | None,
) -> None:
    """Show live and past runs in a browser, and steer a demo.

    Prints the page's address, with the token that opens its controls. Runs of other programs appear when they write
    to the same InfluxDB (--influx). docs/dashboard.md has the rest.
    """
    from testbed.cli import dashboard as dashboard_command

    dashboard_command.dashboard(
        dashboard_command.Options(
            port=port,
            bind=bind,
            runs=out,
            page_token_file=page_token_file,
            influx=influx,
            token_file=token_file,
            influx_port=influx_port,
            retention_days=retention_days,
            demo=demo,
            air=air,
            scenario=scenario,
        )
    )


@cli.command()
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--device", required=True, metavar="ARGS", help="The radio, as in type=b200.")
@click.option("--freq", "hz", type=float, required=True, help="Carrier, Hz.")
@click.option("--rate", "rate_sps", type=float, default=2.5e6, show_default=True, help="Samples per second.")
@click.option("--gain", "gain_db", type=float, help="Receive gain, dB; default: the middle of its range.")
@click.option("--seconds", type=Finite(min=0.001), default=10.0, show_default=True)
def record(target: Path, device: str, hz: float, rate_sps: float, gain_db: float | None, seconds: float) -> None:
    """Record what a radio receives as a SigMF recording TARGET.sigmf-data and TARGET.sigmf-meta."""
    from testbed.cli import radio as radio_commands

    radio_commands.record(target, device, hz, rate_sps, gain_db, seconds)


@cli.command()
@click.argument("recording", type=click.Path(path_type=Path))
@click.option("--phy", type=click.Choice(["ofdm", "wifi"]), help="Default: the recording's own, else ofdm.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Option of the PHY: modulation=qam16.")
@click.option("--trace", type=click.Path(path_type=Path, dir_okay=False), help="Write the channel trace there.")
@click.option("--device", metavar="ARGS", help="Transmit the recording with this radio instead of decoding it.")
@click.option("--freq", "hz", type=float, help="Carrier to transmit on; default: the recording's.")
@click.option("--gain", "gain_db", type=float, help="Transmit gain, dB; default: the middle of its range.")
@click.option("--json", "json_", is_flag=True, help="Print one JSON object per frame.")
def replay(
    recording: Path,
    phy: str | None,
    settings: tuple[str, ...],
    trace: Path | None,
    device: str | None,
    hz: float | None,
    gain_db: float | None,
    json_: bool,
) -> None:
    """Decode RECORDING (SigMF) as a receiver would have, or transmit it."""
    from testbed.cli import radio as radio_commands

    decoding = {"--phy": phy, "--set": settings, "--trace": trace, "--json": json_}
    transmitting = {"--freq": hz, "--gain": gain_db}
    for option, value in (transmitting if device is None else decoding).items():
        if value is not None and value is not False and value != ():
            raise click.UsageError(
                f"{option} is for {'transmitting: add' if device is None else 'decoding: drop'} --device"
            )
    if device is None:
        radio_commands.decode(recording, phy, settings, trace=trace, json_=json_)
    else:
        radio_commands.transmit(recording, device, hz, gain_db)


@cli.group()
def air() -> None:
    """Look at and change the air between virtual USRPs, also while they run."""


@air.command("list")
def air_list() -> None:
    """List the airs of this machine, their radios and paths."""
    from testbed.cli import air as air_commands

    air_commands.show_all()


@air.command("create")
@click.argument("name")
@click.option("--clock", type=click.Choice(["realtime", "lockstep"]), help="Default: realtime.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of noise and fading; default: 1.")
@click.option("--wait-streams", type=click.IntRange(min=0), help="Lockstep: hold the clock for N transmitters.")
@click.option("--scenario", type=click.Path(path_type=Path), help="Let radios ST and BAS meet its channel.")
def air_create(name: str, clock: str | None, seed: int | None, wait_streams: int | None, scenario: Path | None) -> None:
    """Make the air NAME, which stays until it is removed; one that is there already must agree."""
    from testbed.cli import air as air_commands

    air_commands.create(name, clock=clock, seed=seed, wait_streams=wait_streams, scenario=scenario)


@air.command("set")
@click.argument("name")
@click.argument("settings", nargs=-1, required=True, metavar="KEY=VALUE...")
@click.option("--from", "tx", default="*", show_default=True, help="Transmitter: serial, serial:channel or *.")
@click.option("--to", "rx", default="*", show_default=True, help="Receiver: serial, serial:channel or *.")
def air_set(name: str, settings: tuple[str, ...], tx: str, rx: str) -> None:
    """Change paths on the air NAME, as in: fadelab air set lab gain_db=-80 fading=eva doppler_hz=5

    \b
    gain_db=-80            path gain                    delay_ns=1000   delay
    cfo_hz=200             carrier offset               fading=eva      profile; flat, epa, eva, tdl-a...; none
    doppler_hz=5 k_db=6 delay_spread_ns=300             of the profile
    series=FILE            gains or taps to follow      noise_dbm_hz=-168   noise of the receivers in --to
    clock_ppm=2            clock offset of the radios in --from
    interference=REC       a SigMF recording that --to hears over and over; none ends it
    level_dbm=-60          what its full scale arrives with
    """
    from testbed.cli import air as air_commands

    air_commands.change(name, tx, rx, settings)


@air.command("series")
@click.argument("trace", type=click.Path(path_type=Path))
@click.argument("target", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--interval-ms", type=Finite(min=0.01), default=5.0, show_default=True)
def air_series(trace: Path, target: Path, interval_ms: float) -> None:
    """Turn a recorded channel trace into a series of gains, for: fadelab air set NAME series=TARGET"""
    from testbed.cli import air as air_commands

    air_commands.make_series(trace, target, interval_ms)


@air.command("remove")
@click.argument("name")
def air_remove(name: str) -> None:
    """Remove the air NAME."""
    from testbed.cli import air as air_commands

    air_commands.remove(name)


@cli.command()
def env() -> None:
    """Print shell exports with which any UHD program and GNU Radio Companion see the virtual USRPs and our blocks.

    \b
    eval "$(./fadelab env)"
    """
    from testbed.cli.env import exports

    click.echo(exports())


@cli.command()
@click.option("--json", "json_", is_flag=True, help="Print one JSON object instead of the table.")
def doctor(json_: bool) -> int:
    """Look at this machine: what works, what is missing, how to get it.

    Changes nothing. The exit status is 0 when everything `demo` needs is there, else 2.
    """
    from testbed.cli import doctor as doctor_

    with doctor_.progress() as report:
        found = doctor_.checks(report)
    if json_:
        click.echo(doctor_.as_json(found))
    else:
        doctor_.render(found)
    return 0 if doctor_.ready(found) else 2


@cli.command(context_settings={"ignore_unknown_options": True})
@click.option("--quick", is_flag=True, help="Only what needs no root, no radio and no browser: about a minute.")
@click.argument("pytest_args", nargs=-1, type=click.UNPROCESSED)
def test(pytest_args: tuple[str, ...], quick: bool) -> int:
    """Run every check and test: ruff, mypy, shellcheck, pytest.

    PYTEST_ARGS go to pytest: `fadelab test -- -k slacp`.
    """
    from testbed.cli.checks import run

    return run(pytest_args, quick=quick)


@cli.command()
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
def clean(dry_run: bool) -> None:
    """Remove what a killed run left: namespaces, interfaces, processes, airs."""
    from testbed.cli import clean as cleaning

    things = cleaning.leftovers() if dry_run else cleaning.clean()
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
