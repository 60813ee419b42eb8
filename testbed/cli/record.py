"""`record`: a radio's samples into a SigMF recording."""

from pathlib import Path

import click

from common.units import number_of
from testbed.cli import options


@click.command()
@click.argument("target", type=options.PATH)
@click.option("--device", required=True, metavar="ARGS", help="The radio, as in type=b200.")
@click.option("--freq", "hz", type=float, required=True, help="Carrier, Hz.")
@click.option("--rate", "rate_sps", type=float, default=2.5e6, show_default=True, help="Samples per second.")
@click.option("--gain", "gain_db", type=float, help="Receive gain, dB; default: the middle of its range.")
@click.option("--seconds", type=options.Finite(min=0.001), default=10.0, show_default=True)
def record(target: Path, device: str, hz: float, rate_sps: float, gain_db: float | None, seconds: float) -> None:
    """Record what a radio receives as a SigMF recording TARGET.sigmf-data and TARGET.sigmf-meta."""
    from flowgraphs.frontend import RadioSettings
    from flowgraphs.recorder import record
    from flowgraphs.recording import Recording
    from testbed.results.show import share_bar

    settings = RadioSettings(device, rate_sps, tx_hz=hz, rx_hz=hz, rx_gain_db=gain_db)
    with share_bar(f"recording {hz / 1e6:g} MHz") as progress:
        meta = record(settings, target, seconds, progress)
    found = Recording.read(meta)
    lost = f", with {number_of(found.gaps, 'gap')}: this machine did not keep up" if found.gaps else ""
    print(f"{meta}  {found.duration_s:.3f} s at {found.rate_sps / 1e6:g} Msps{lost}")


COMMAND = record
