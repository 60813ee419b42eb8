"""`air`: look at and change the air between virtual USRPs. `actions.py` does it."""

from pathlib import Path

import click

from testbed.cli import options


@click.group()
def air() -> None:
    """Look at and change the air between virtual USRPs, also while they run."""


COMMAND = air


@air.command("list")
def list_() -> None:
    """List the airs of this machine, their radios and paths."""
    from testbed.cli.air import actions

    actions.show_all()


@air.command()
@click.argument("name")
@click.option("--clock", type=click.Choice(["realtime", "lockstep"]), help="Default: realtime.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of noise and fading; default: 1.")
@click.option("--wait-streams", type=click.IntRange(min=0), help="Lockstep: hold the clock for N transmitters.")
@click.option("--scenario", type=options.PATH, help="Let radios ST and BAS meet its channel.")
def create(name: str, clock: str | None, seed: int | None, wait_streams: int | None, scenario: Path | None) -> None:
    """Make the air NAME, which stays until it is removed; one that is there already must agree."""
    from testbed.cli.air import actions

    actions.create(name, clock=clock, seed=seed, wait_streams=wait_streams, scenario=scenario)


@air.command("set")
@click.argument("name")
@click.argument("settings", nargs=-1, required=True, metavar="KEY=VALUE...")
@click.option("--from", "tx", default="*", show_default=True, help="Transmitter: serial, serial:channel or *.")
@click.option("--to", "rx", default="*", show_default=True, help="Receiver: serial, serial:channel or *.")
def set_(name: str, settings: tuple[str, ...], tx: str, rx: str) -> None:
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
    from testbed.cli.air import actions

    actions.change(name, tx, rx, settings)


@air.command()
@click.argument("trace", type=options.PATH)
@click.argument("target", type=options.FILE)
@click.option("--interval-ms", type=options.Finite(min=0.01), default=5.0, show_default=True)
def series(trace: Path, target: Path, interval_ms: float) -> None:
    """Turn a recorded channel trace into a series of gains, for: fadelab air set NAME series=TARGET"""
    from testbed.cli.air import actions

    actions.make_series(trace, target, interval_ms)


@air.command()
@click.argument("name")
def remove(name: str) -> None:
    """Remove the air NAME."""
    from testbed.cli.air import actions

    actions.remove(name)
