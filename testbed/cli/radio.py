"""What `station`, `record` and `replay` do, behind the command line."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from common.sides import STATIONS, Side
from flowgraphs.frontend import RadioSettings
from flowgraphs.phy import Received, SequenceGaps
from flowgraphs.phys import make_phy
from flowgraphs.recording import Recording, write_trace
from linklayer.schemes import SCHEMES
from testbed.cli.run import DEMO_SCENARIOS
from testbed.errors import FadelabError
from testbed.live.standalone import folder_name, run_station
from testbed.observers import database_or_none, open_influx
from testbed.results.show import rate
from testbed.scenario.file import load

_SIDES: Mapping[str, Side] = {role: side for side, role in STATIONS.items()}


def station(
    device: str,
    role: str,
    path: Path | None,
    settings: Sequence[str],
    *,
    tap: str,
    address: str | None,
    seconds: float | None,
    out: Path,
    influx: tuple[str | None, Path | None],
    run: str | None,
) -> None:
    """Be one station until Ctrl-C, saying every second how it goes; `influx` is a URL and a token's file."""
    scenario = load(path or DEMO_SCENARIOS["usrp"], settings, tier=tier_of(device))
    if SCHEMES[scenario.link.scheme].split is not None:
        raise FadelabError(
            f"link.scheme {scenario.link.scheme}: a station on its own has no proxy that splits connections: "
            "choose another scheme, or use run"
        )
    console = Console(stderr=True)
    folder = out / folder_name(role)

    def complain(line: str) -> None:
        console.print(line, style="yellow", markup=False, highlight=False)

    sink = database_or_none(open_influx(*influx), scenario, run or folder.name, out, complain, lists=False)
    told_s = 0.0
    snr_db: float | None = None

    def up() -> None:
        if address is not None:
            from hosts.network import add_address

            add_address(tap, address)
        console.print(f"station {role}: {device}, TAP {tap}; Ctrl-C ends it", highlight=False)

    def report(kind: str, body: Mapping[str, Any]) -> None:
        nonlocal told_s, snr_db
        if kind == "ready":
            console.print("link up")
            return
        if kind == "phy":
            # of the newest interval in which anything was heard
            snr_db = snr_db if body["snr_db"] is None else body["snr_db"]
            return
        time_s = body["time_ns"] / 1e9
        if time_s - told_s >= 1:
            told_s = time_s
            heard = "nothing heard" if snr_db is None else f"SNR {snr_db:.1f} dB"
            snr_db = None
            console.print(
                f"{time_s:6.0f} s  sent {rate(body['throughput_bps'])}, "
                f"{body['counts']['retransmissions']} retransmissions, {heard}",
                highlight=False,
            )

    final = run_station(
        scenario, _SIDES[role], device, tap=tap, folder=folder, seconds=seconds, up=up, sink=sink, report=report
    )
    (folder / "station.json").write_text(json.dumps(final, indent=2) + "\n")
    console.print(f"{folder}/  station.json, traces", highlight=False, soft_wrap=True)


def tier_of(device: str) -> str:
    """The tier of a station whose radio has these device arguments."""
    arguments = dict(argument.partition("=")[::2] for argument in device.replace(" ", "").split(","))
    return "vusrp" if "air" in arguments or arguments.get("type") == "vusrp" else "usrp"


def record(target: Path, device: str, hz: float, rate_sps: float, gain_db: float | None, seconds: float) -> None:
    """Record what a radio receives."""
    from flowgraphs.recorder import record

    settings = RadioSettings(device, rate_sps, tx_hz=hz, rx_hz=hz, rx_gain_db=gain_db)
    with _bar(f"recording {hz / 1e6:g} MHz") as progress:
        meta = record(settings, target, seconds, progress)
    found = Recording.read(meta)
    lost = f", with {found.gaps} gaps: this machine did not keep up" if found.gaps else ""
    print(f"{meta}  {found.duration_s:.3f} s at {found.rate_sps / 1e6:g} Msps{lost}")


def decode(path: Path, name: str | None, settings: Sequence[str], *, trace: Path | None, json_: bool) -> None:
    """Print the frames in a recording, and what they say of the channel."""
    recording = Recording.read(path)
    options = dict(recording.phy_options if name in (None, recording.phy) else {})
    options |= dict(_option(setting) for setting in settings)
    phy = make_phy(name or recording.phy or "ofdm", rate_sps=recording.rate_sps, **options)
    gaps = SequenceGaps()
    frames: list[Received] = []
    with _bar(f"decoding {recording.path.name}") as progress:
        for frame in phy.decode(_watched(recording, progress)):
            gaps.handle(frame.sequence)
            frames.append(frame)
            if json_:
                print(json.dumps({**asdict(frame), "payload": frame.payload.hex()}))
    if trace is not None:
        try:
            write_trace(trace, frames, rate_sps=recording.rate_sps, link=recording.path.stem, producer="fadelab replay")
        except OSError as error:
            raise FadelabError(f"{trace}: {error.strerror or error}; choose another place") from None
    if not json_:
        damaged = sum(not frame.crc_ok for frame in frames)
        print(f"{phy.describe()}: {len(frames)} frames heard, {damaged} of them damaged, {gaps.missed} missed")


def transmit(path: Path, device: str, hz: float | None, gain_db: float | None) -> None:
    """Put a recording on the air."""
    from flowgraphs.replayer import transmit

    recording = Recording.read(path)
    hz = recording.frequency_hz if hz is None else hz
    if hz is None:
        raise FadelabError(f"{path}: does not say its carrier: give --freq")
    settings = RadioSettings(device, recording.rate_sps, tx_hz=hz, rx_hz=hz, tx_gain_db=gain_db)
    with _bar(f"transmitting {recording.path.name} on {hz / 1e6:g} MHz") as progress:
        transmit(recording, settings, progress)
    print(f"transmitted {recording.duration_s:.3f} s")


def _option(setting: str) -> tuple[str, Any]:
    key, equals, text = setting.partition("=")
    if not equals:
        raise FadelabError(f"--set {setting}: must be KEY=VALUE, as in modulation=qam16")
    if key == "rate_sps":
        raise FadelabError(f"--set {setting}: the recording says its own rate")
    try:
        return key, yaml.safe_load(text)
    except yaml.YAMLError:
        raise FadelabError(f"--set {setting}: the value is not valid YAML") from None


def _watched(recording: Recording, progress: Callable[[float], None]) -> Iterator[Any]:
    done = 0
    for block in recording.blocks():
        yield block
        done += len(block)
        progress(done / len(recording))


@contextmanager
def _bar(label: str) -> Iterator[Callable[[float], None]]:
    """Show how far something is, where somebody watches."""
    console = Console(stderr=True)
    bars = Progress(
        TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(), console=console, transient=True
    )
    task = bars.add_task(label, total=1.0)
    with bars if console.is_terminal else nullcontext():
        yield lambda share: bars.update(task, completed=share)
