"""What `station`, `record` and `replay` do, behind the command line."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from testbed.commands import DEMO_SCENARIO
from testbed.scenario import Side
from testbed.scenario_file import load
from testbed.show import rate
from testbed.standalone import folder_name, run_station

_SIDES: Mapping[str, Side] = {"st": "up", "bas": "down"}


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
) -> None:
    """Be one station until Ctrl-C, saying every second how it goes."""
    scenario = load(path or DEMO_SCENARIO, settings, tier="usrp")
    console = Console(stderr=True)
    folder = out / folder_name(role)
    latest: dict[str, Any] = {}
    told_s = 0.0

    def up() -> None:
        if address is not None:
            from hosts.network import add_address

            add_address(tap, address)
        console.print(f"station {role}: {device}, TAP {tap}; Ctrl-C ends it", highlight=False)

    def report(kind: str, body: Mapping[str, Any]) -> None:
        nonlocal told_s
        if kind == "ready":
            console.print("link up")
            return
        latest.update(body)
        time_s = latest["time_ns"] / 1e9
        if kind == "link" and time_s - told_s >= 1:
            told_s = time_s
            snr = latest.get("snr_db")
            heard = "nothing heard" if snr is None else f"SNR {snr:.1f} dB"
            console.print(
                f"{time_s:6.0f} s  sent {rate(latest['throughput_bps'])}, {latest['retransmissions']} retransmissions, "
                f"{heard}",
                highlight=False,
            )

    final = run_station(scenario, _SIDES[role], device, tap=tap, folder=folder, seconds=seconds, up=up, report=report)
    (folder / "station.json").write_text(json.dumps(final, indent=2) + "\n")
    console.print(f"{folder}/  station.json, traces", highlight=False, soft_wrap=True)
