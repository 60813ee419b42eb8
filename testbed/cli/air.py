"""`air`: look at and change the air between virtual USRPs."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from testbed.cli import options
from testbed.errors import FadelabError

if TYPE_CHECKING:
    from rich.console import Console

    from flowgraphs.air import Air
    from flowgraphs.recording import Recording

#: received power of a recording's full scale
DEFAULT_INTERFERENCE_DBM = -60.0
_PATH_KEYS = ("gain_db", "delay_ns", "cfo_hz")
_PROFILE_KEYS = ("doppler_hz", "k_db", "delay_spread_ns")
_NAMED_KEYS = ("fading", "series", "interference")
_OTHER_KEYS = ("noise_dbm_hz", "clock_ppm", "level_dbm")


@click.group(epilog="flowgraphs/vusrp/README.md")
def air() -> None:
    """Look at and change the air between virtual USRPs, also while they run."""


COMMAND = air


@air.command("list")
def list_() -> None:
    """List the airs of this machine, their radios and paths."""
    from rich.console import Console

    from flowgraphs.air import Air, AirError

    console = Console()
    names = Air.names()
    if not names:
        console.print("there is no air: the first virtual USRP of one makes it, or `fadelab air create NAME`")
    for name in names:
        try:
            found = Air.open(name)
        except AirError:
            # gone since it was named
            if name in Air.names():
                raise
            continue
        with found:
            _show(found, console)


@air.command()
@click.argument("name")
@click.option("--clock", type=click.Choice(["realtime", "lockstep"]), help="Default: realtime.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of noise and fading; default: 1.")
@click.option("--wait-streams", type=click.IntRange(min=0), help="Lockstep: hold the clock for N transmitters.")
@click.option("--scenario", type=options.PATH, help="Let radios ST and BAS meet its channel.")
def create(name: str, clock: str | None, seed: int | None, wait_streams: int | None, scenario: Path | None) -> None:
    """Make the air NAME, which stays until it is removed; one that is there already must agree."""
    from flowgraphs.air import Air
    from testbed.live.media.virtual_air import AirChannel
    from testbed.scenario.file import load
    from testbed.scenario.resolver import resolve

    wanted = None if scenario is None else resolve(load(scenario))
    with Air.create(name, clock=clock, seed=seed, wait_streams=wait_streams, keep=True) as made:
        if wanted is not None:
            channel = AirChannel(made, wanted.radio)
            for side, station in wanted.stations.items():
                channel.apply(side, station.air)


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
    level_dbm=-60          received level of its full scale
    """
    from flowgraphs.air import Air

    texts = dict(_split(setting) for setting in settings)
    fading, series, interference = (texts.pop(key, None) for key in _NAMED_KEYS)
    numbers = {key: _number(key, text) for key, text in texts.items()}
    path: dict[str, Any] = {key: numbers[key] for key in _PATH_KEYS if key in numbers}
    profile = {key: numbers[key] for key in _PROFILE_KEYS if key in numbers}
    if profile and fading in (None, "none"):
        raise FadelabError(f"{next(iter(profile))} belongs to a profile: add fading=NAME")
    if fading == "none":
        path["taps"] = ()
    if series is not None:
        path["series"] = Path(series)
    if "level_dbm" in numbers and interference in (None, "none"):
        raise FadelabError("level_dbm belongs to a recording: add interference=RECORDING")
    recording = None if interference in (None, "none") else _interference(Path(interference))
    # tried on an air of our own first: a setting that is refused must not come after others that have taken effect
    with Air.open(name) as named, Air.create(f"trial-{os.getpid()}") as trial:
        for each in (trial, named):
            if fading not in (None, "none"):
                each.set_profile(tx, rx, fading, **{"doppler_hz": 0.0, **profile})
            if path:
                each.set_link(tx, rx, **path)
            if "noise_dbm_hz" in numbers:
                each.set_receiver(rx, noise_dbm_hz=numbers["noise_dbm_hz"])
            if "clock_ppm" in numbers:
                each.set_clock_offset(tx, numbers["clock_ppm"])
            if recording is not None:
                each.set_interference(
                    rx,
                    recording.path,
                    rate_sps=recording.rate_sps,
                    freq_hz=recording.frequency_hz or 0.0,
                    level_dbm=numbers.get("level_dbm", DEFAULT_INTERFERENCE_DBM),
                )
            elif interference == "none":
                each.set_interference(rx, None)


@air.command()
@click.argument("name")
@click.argument("serial")
@click.argument("settings", nargs=-1, required=True, metavar="KEY=VALUE...")
def impair(name: str, serial: str, settings: tuple[str, ...]) -> None:
    """Change the flaws of a radio on the air NAME, as in: fadelab air impair lab V1 tx.iq_gain_db=0.3 walk_ppm=0.01

    \b
    rx. and tx.: iq_gain_db, iq_phase_deg, leakage_dbfs, bits, spur_hz, spur_dbfs, mask=1e3:-80,1e6:-120
    tolerance_ppm, warm_up_ppm, warm_up_s, walk_ppm, p1db_dbm, smoothness, ramp_us, noise_figure_lowest_db,
    noise_figure_highest_db, settling_us, slope_db, edge_db, wideband, isolation_db, hiccups_hz, hiccup_ms, unplug_s
    flaws=own       back to those that the radio was opened with       flaws=none   a perfect radio
    """
    from flowgraphs.air import Air, Impairments

    with Air.open(name) as named:
        wanted = named.impairments(serial)
        for key, text in (_parted(setting) for setting in settings):
            if key == "flaws" and text in ("own", "none"):
                named.set_impairments(serial, None)
                wanted = named.impairments(serial) if text == "own" else Impairments()
                continue
            side, _, field = key.rpartition(".")
            owner: Any = getattr(wanted, side) if side in ("rx", "tx") else wanted
            if field in ("rx", "tx") or not hasattr(type(owner), "__slots__") or field not in type(owner).__slots__:
                raise click.UsageError(f"{key}: unknown")
            value = _mask(text) if field == "mask" else _number(key, text)
            changed = replace(owner, **{field: value})
            wanted = replace(wanted, **{side: changed}) if side else changed
        named.set_impairments(serial, wanted)


@air.command()
@click.argument("name")
@click.argument("serial")
def unplug(name: str, serial: str) -> None:
    """Pull the radio SERIAL on the air NAME out."""
    from flowgraphs.air import Air

    with Air.open(name) as named:
        named.unplug(serial)


@air.command()
@click.argument("trace", type=options.PATH)
@click.argument("target", type=options.FILE)
@click.option("--interval-ms", type=options.Finite(min=0.01), default=5.0, show_default=True)
def series(trace: Path, target: Path, interval_ms: float) -> None:
    """Turn a recorded channel trace into a series of gains, for: fadelab air set NAME series=TARGET"""
    from channel.trace import read_trace
    from flowgraphs.series import gains_of, write_gains

    interval_ns = interval_ms * 1e6
    gains_db = gains_of(read_trace(trace), interval_ns)
    write_gains(target, interval_ns, gains_db)
    print(f"{target}  {len(gains_db) * interval_ms / 1e3:.1f} s, {gains_db.min():.1f} to {gains_db.max():.1f} dB")


@air.command()
@click.argument("target", type=options.FILE)
@click.option("--rate", "rate_sps", type=options.Finite(min=1e3), required=True, help="Of the receiver (samples/s).")
@click.option("--freq", "frequency_hz", type=options.Finite(min=0), required=True, help="Of the receiver (Hz).")
@click.option("--busy", type=options.Finite(min=0.01), default=0.3, show_default=True, help="Share of the time.")
@click.option("--seconds", type=options.Finite(min=0.01), default=5.0, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
def wifi(target: Path, rate_sps: float, frequency_hz: float, busy: float, seconds: float, seed: int) -> None:
    """Write bursts like those of a Wi-Fi channel, for: fadelab air set NAME interference=TARGET level_dbm=-70"""
    from datetime import UTC, datetime

    import numpy as np

    from flowgraphs import wifi_traffic
    from flowgraphs.recording import data_path, finish

    try:
        made = wifi_traffic.samples(seconds, busy, rate_sps, np.random.default_rng(seed))
    except ValueError as error:
        raise FadelabError(str(error)) from None
    made.tofile(data_path(target))
    about = f"bursts like Wi-Fi's, {busy:g} of the time, seed {seed}"
    now = datetime.now(UTC)
    print(finish(target, rate_sps=rate_sps, frequency_hz=frequency_hz, started=now, hardware="none", description=about))


@air.command()
@click.argument("name")
def remove(name: str) -> None:
    """Remove the air NAME."""
    from flowgraphs.air import Air

    if not Air.remove(name):
        raise FadelabError(f"there is no air {name!r}: `fadelab air list` names those there are")


def _interference(path: Path) -> "Recording":
    from flowgraphs.recording import Recording

    recording = Recording.read(path)
    if recording.datatype != "cf32_le" or recording.frequency_hz is None:
        raise FadelabError(f"{path}: interference is a recording of cf32_le samples that says its frequency")
    return recording


def _parted(setting: str) -> tuple[str, str]:
    key, equals, text = setting.partition("=")
    if not equals or not text:
        raise click.UsageError(f"{setting}: must be KEY=VALUE, as in gain_db=-80")
    return key, text


def _mask(text: str) -> tuple[tuple[float, float], ...]:
    points = (point.partition(":") for point in text.split(",") if text != "none")
    return tuple((_number("mask", hz), _number("mask", level)) for hz, _, level in points)


def _split(setting: str) -> tuple[str, str]:
    key, text = _parted(setting)
    known = (*_PATH_KEYS, *_PROFILE_KEYS, *_NAMED_KEYS, *_OTHER_KEYS)
    if key not in known:
        raise click.UsageError(f"{key}: unknown; there are {', '.join(known)}")
    return key, text


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise click.UsageError(f"{key}={text}: must be a number") from None


def _show(air: "Air", console: "Console") -> None:
    from rich import box
    from rich.table import Table

    style: Any = {"box": box.SIMPLE_HEAD, "padding": (0, 1)}
    devices = air.devices()
    console.print(f"[bold]{air.name}[/]  clock {air.clock}, seed {air.seed}", highlight=False)
    radios = Table("radio", "process", "sends at", "hears at", "noise", "clock", **style)
    for device in devices:
        radios.add_row(
            device.serial,
            str(device.pid),
            *(f"{tunings[0].freq_hz / 1e6:g} MHz" for tunings in (device.tx, device.rx)),
            f"{air.noise_dbm_hz(device.serial):g} dBm/Hz",
            f"{device.clock_offset_ppm:g} ppm",
        )
    paths = Table("path", "gain", "delay", "offset", "taps", **style)
    serials = [device.serial for device in devices] or ["*"]
    for tx in serials:
        for rx in serials:
            if tx == rx and len(serials) > 1:
                continue
            link = air.link(tx, rx)
            taps = str(link.series) if link.series else f"{len(link.taps)} fading" if link.taps else "one, steady"
            paths.add_row(
                f"{tx} → {rx}", f"{link.gain_db:.1f} dB", f"{link.delay_ns:g} ns", f"{link.cfo_hz:g} Hz", taps
            )
    if devices:
        console.print(radios)
    console.print(paths)
