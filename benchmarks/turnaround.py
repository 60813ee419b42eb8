"""How long a host takes from hearing the carrier to sending: the share of bursts that a device has too late, by lead.

    .venv/bin/python -m benchmarks.turnaround                      # a virtual USRP
    .venv/bin/python -m benchmarks.turnaround --device type=b200 --cabled

A decision to send takes effect `lead_us` after the sample that it was made on (flowgraphs/access.py). Of short bursts
on an idle carrier, this counts those whose time was past when the device got them (UHD's L). A slot must be longer
than a lead that is safe. `lag` is the most that received samples came late, beyond the least.
"""

import argparse
import os
import time
from contextlib import ExitStack, suppress

from flowgraphs.access import AccessOptions
from flowgraphs.air import Air
from flowgraphs.frontend import FrontEndOptions, RadioSettings
from flowgraphs.phys import make_phy
from flowgraphs.transceiver import Transceiver

_LEADS_US = (100, 150, 200, 300, 400, 600, 800, 1000, 1500, 2000)
#: real-time priority, as in stations
_PRIORITY = 1


def measure(settings: RadioSettings, lead_us: float, seconds: float) -> tuple[int, int, float]:
    """Return the bursts sent, those that came too late, and the most that samples came late (s)."""
    access = AccessOptions(slot_us=2 * lead_us, lead_us=lead_us, window=1)
    settings = RadioSettings(
        settings.args, settings.rate_sps, settings.tx_hz, settings.rx_hz, options=settings.options, lot_s=access.lot_s
    )
    transceiver = Transceiver(settings, make_phy("ofdm", rate_sps=settings.rate_sps), access=access)
    transceiver.start()
    with suppress(PermissionError):
        transceiver.run_in_real_time(_PRIORITY)
    # the noise must be known first
    time.sleep(0.5)
    transceiver.take_lag_s()
    before = transceiver.counters().underflows
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        transceiver.send(bytes(100))
        time.sleep(0.005)
    time.sleep(0.1)
    found = transceiver.access_counts().bursts, transceiver.counters().underflows - before, transceiver.take_lag_s()
    transceiver.close()
    return found


def main() -> None:
    """Measure each lead and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="device arguments; default: a virtual USRP on an air of its own")
    parser.add_argument("--cabled", action="store_true")
    parser.add_argument("--rate", type=float, default=2.5e6)
    parser.add_argument("--freq", type=float, default=2.45e9)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each lead")
    parser.add_argument("--lead", type=float, nargs="*", default=_LEADS_US, metavar="US")
    options = parser.parse_args()
    with ExitStack() as stack:
        device = options.device
        if device is None:
            air = stack.enter_context(Air.create(f"turnaround-{os.getpid()}"))
            # its own transmitter would be heard
            air.set_link("A", "A", gain_db=-200.0)
            device = f"type=vusrp,air={air.name},serial=A"
        settings = RadioSettings(
            device, options.rate, options.freq, options.freq, options=FrontEndOptions(cabled=options.cabled)
        )
        print("| lead (µs) | bursts | too late | share | lag (µs) |\n|---|---|---|---|---|")
        for lead_us in options.lead:
            bursts, late, lag_s = measure(settings, lead_us, options.seconds)
            print(
                f"| {lead_us:g} | {bursts} | {late} | {100 * late / max(bursts, 1):.1f} % | {lag_s * 1e6:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
