"""`replay`: decode a SigMF recording, or transmit it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from common.units import number_of
from testbed.cli import options
from testbed.errors import FadelabError

if TYPE_CHECKING:
    from flowgraphs.recording import Recording


def _phys() -> Iterable[str]:
    from flowgraphs.phys import PHYS

    return PHYS


def _regions() -> Iterable[str]:
    from flowgraphs.bands import BANDS_HZ

    return BANDS_HZ


@click.command()
@click.argument("recording", type=options.PATH)
@click.option("--phy", type=options.Names(_phys), help="Default: the recording's own, else ofdm.")
@options.settings("Option of the PHY: modulation=qam16.")
@click.option("--trace", type=options.FILE, help="Write the channel trace there.")
@click.option("--device", metavar="ARGS", help="Transmit the recording with this radio instead of decoding it.")
@click.option("--freq", "hz", type=float, help="Carrier to transmit on; default: the recording's.")
@click.option("--cabled", is_flag=True, help="A cable with attenuators, no antenna, is at the transmitter.")
@click.option("--region", type=options.Names(_regions), help="Transmit by antenna, in the bands of this region.")
@click.option("--gain", "gain_db", type=float, help="Transmit gain, dB; default: the middle of its range.")
@click.option("--json", "json_", is_flag=True, help="Print one JSON object per frame.")
def replay(
    recording: Path,
    phy: str | None,
    settings: tuple[str, ...],
    trace: Path | None,
    device: str | None,
    hz: float | None,
    cabled: bool,
    region: str | None,
    gain_db: float | None,
    json_: bool,
) -> None:
    """Decode RECORDING (SigMF) as a receiver would have, or transmit it."""
    decoding = {"--phy": phy, "--set": settings, "--trace": trace, "--json": json_}
    transmitting = {"--freq": hz, "--gain": gain_db, "--cabled": cabled, "--region": region}
    for option, value in (transmitting if device is None else decoding).items():
        if value is not None and value is not False and value != ():
            raise click.UsageError(
                f"{option} is for {'transmitting: add' if device is None else 'decoding: drop'} --device"
            )
    if device is None:
        _decode(recording, phy, settings, trace=trace, json_=json_)
    else:
        _transmit(recording, device, hz, gain_db, cabled=cabled, region=region)


COMMAND = replay


def _decode(path: Path, name: str | None, settings: Sequence[str], *, trace: Path | None, json_: bool) -> None:
    """Print the frames in a recording, and write the channel trace that they give."""
    import json
    from dataclasses import asdict

    from flowgraphs.phy import Received, SequenceGaps
    from flowgraphs.phys import make_phy
    from flowgraphs.recording import Recording, write_trace
    from testbed.results.show import share_bar

    recording = Recording.read(path)
    options = dict(recording.phy_options if name in (None, recording.phy) else {})
    options |= dict(_option(setting) for setting in settings)
    for key in ("name", "rate_sps"):
        if key in options:
            raise FadelabError(f"{path}: {key} is no option of a PHY: leave it out of fadelab:phy_options and of --set")
    phy = make_phy(name or recording.phy or "ofdm", rate_sps=recording.rate_sps, **options)
    gaps = SequenceGaps()
    frames: list[Received] = []
    with share_bar(f"decoding {recording.path.name}") as progress:
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


def _transmit(
    path: Path, device: str, hz: float | None, gain_db: float | None, *, cabled: bool, region: str | None
) -> None:
    from flowgraphs.frontend import FrontEndOptions, RadioSettings
    from flowgraphs.recording import Recording
    from flowgraphs.replayer import transmit
    from testbed.results.show import share_bar

    recording = Recording.read(path)
    hz = recording.frequency_hz if hz is None else hz
    if hz is None:
        raise FadelabError(f"{path}: does not say its carrier: give --freq")
    options = FrontEndOptions(cabled=cabled, region=region)
    settings = RadioSettings(device, recording.rate_sps, tx_hz=hz, rx_hz=hz, tx_gain_db=gain_db, options=options)
    with share_bar(f"transmitting {recording.path.name} on {hz / 1e6:g} MHz") as progress:
        sent = transmit(recording, settings, progress)
    torn = f", with {number_of(sent.late, 'underflow')}: this machine did not keep up" if sent.late else ""
    unheard = "" if sent.acknowledged else "; the radio has not said that it is over: part of it may be missing"
    print(f"transmitted {recording.duration_s:.3f} s{torn}{unheard}")


def _option(setting: str) -> tuple[str, Any]:
    import yaml

    from common.plain_yaml import parse

    key, equals, text = setting.partition("=")
    if not equals:
        raise FadelabError(f"--set {setting}: must be KEY=VALUE, as in modulation=qam16")
    if key == "rate_sps":
        raise FadelabError(f"--set {setting}: the recording says its own rate")
    try:
        return key, parse(text)
    except yaml.YAMLError:
        raise FadelabError(f"--set {setting}: the value is not valid YAML") from None


def _watched(recording: "Recording", progress: Callable[[float], None]) -> Iterator[Any]:
    """Yield the recording's blocks, and call `progress` with the share that is done."""
    done = 0
    for block in recording.blocks():
        yield block
        done += len(block)
        progress(done / len(recording))
