"""`station`: one station of a radio link, as a program of its own."""

from pathlib import Path

import click

from testbed.cli import options
from testbed.errors import FadelabError
from testbed.tiers import tier_with


@click.command()
@click.option(
    "--device", required=True, metavar="ARGS", help="The radio, as in type=b200 or type=vusrp,air=lab,serial=V1."
)
@click.option(
    "--as", "role", type=click.Choice(["st", "bas"]), default="st", show_default=True, help="Which end to be."
)
@click.option("--scenario", type=options.PATH, help="Link, PHY and rates; default: the demo's.")
@options.settings("Change a value of the scenario.")
@click.option("--tap", default="fl0", show_default=True, help="The TAP interface to make.")
@click.option("--address", metavar="ADDRESS/BITS", help="Give the TAP this IPv4 address.")
@options.seconds
@options.out
@options.influx
@options.run_name
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
    run_name: str | None,
) -> None:
    """Be one station of a radio link: a TAP on this side, a radio on the other.

    Start the other station, with the other --as, on this machine or another.
    """
    import json
    from collections.abc import Mapping
    from dataclasses import asdict
    from typing import Any

    from rich.console import Console

    from common.sides import SIDES, STATIONS
    from hosts.messages import FromProcess, Ready, Started
    from linklayer.schemes import SCHEMES
    from linklayer.station_counts import StationReport
    from telemetry.records import PhyRecord
    from testbed.live.standalone import run_station
    from testbed.observers import database_or_none, open_influx
    from testbed.results.show import rate
    from testbed.results.store import radio_warnings, start_stamp
    from testbed.scenario.file import load
    from testbed.scenario.resolver import resolve

    loaded = load(scenario or options.DEMO_SCENARIOS[tier_with("real")], settings, tier=tier_of(device))
    if SCHEMES[loaded.link.scheme].split is not None:
        raise FadelabError(
            f"link.scheme {loaded.link.scheme}: a station on its own has no proxy that splits connections: "
            "choose another scheme, or use run"
        )
    options.require_one_link(loaded)
    console = Console(stderr=True)
    folder = out / f"{start_stamp()}-station-{role}"

    def complain(line: str) -> None:
        console.print(line, style="yellow", markup=False, highlight=False)

    database = open_influx(influx, token_file)
    sink = database_or_none(database, loaded, run_name or folder.name, out, complain, lists=False)
    told_s = 0.0
    radio: Mapping[str, Any] = {}
    snr_db: float | None = None

    def up() -> None:
        if address is not None:
            from hosts.kernel.network import add_address

            add_address(tap, address)
        console.print(f"station {role}: {device}, TAP {tap}; Ctrl-C ends it", highlight=False)

    def report(message: FromProcess) -> None:
        nonlocal told_s, snr_db, radio
        match message:
            case Started():
                radio = message.radio
            case Ready():
                console.print("link up")
            case PhyRecord() if message.snr_db is not None:
                # of the newest interval in which the radio heard a frame
                snr_db = message.snr_db
            case StationReport() if (time_s := message.time_ns / 1e9) - told_s >= 1:
                told_s = time_s
                heard = "nothing heard" if snr_db is None else f"SNR {snr_db:.1f} dB"
                snr_db = None
                console.print(
                    f"{time_s:6.0f} s  sent {rate(message.throughput_bps)}, "
                    f"{message.counts.retransmissions} retransmissions, {heard}",
                    highlight=False,
                )

    [side] = [side for side in SIDES if STATIONS[side] == role]
    final = run_station(
        resolve(loaded), side, device, tap=tap, folder=folder, seconds=seconds, up=up, sink=sink, report=report
    )
    figures = asdict(final.counts) | asdict(final.lateness) | {"radio": radio}
    (folder / "station.json").write_text(json.dumps(figures, indent=2) + "\n")
    for line in radio_warnings(folder):
        complain(f"warning: {line}")
    console.print(f"{folder}/  station.json, traces", highlight=False, soft_wrap=True)


COMMAND = station


def tier_of(device: str) -> str:
    """Return the tier of a station whose radio has these device arguments."""
    from flowgraphs.frontend import is_virtual

    return tier_with("virtual" if is_virtual(device) else "real")
