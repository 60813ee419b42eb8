"""The case of this machine: a scenario, the radios' answers, the kernel's files."""

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from common.sides import SIDES, STATIONS
from testbed.cli.doctor.usrp.case import Case, Radio
from testbed.cli.doctor.usrp.probe import ask
from testbed.cli.options import DEMO_SCENARIOS
from testbed.errors import FadelabError
from testbed.scenario.file import load
from testbed.scenario.schema import Scenario
from testbed.tiers import tier_with

_ETHTOOL_S = 5.0


def case_of(
    radios: Sequence[str],
    scenario: Path | None,
    settings: Sequence[str],
    report: Callable[[int, int, str], None] | None = None,
) -> Case:
    """Return the case of these radios, asked one after the other. Raises FadelabError."""
    if len(radios) > len(SIDES):
        raise FadelabError(f"--radio is given {len(radios)} times: name ST's radio, then BAS's")
    loaded = scenario_of(scenario, settings)
    radio, plain = loaded.radio, loaded.plain()
    clock_source = radio.front_end().clock_source
    found = []
    for number, (side, args) in enumerate(zip(SIDES, radios, strict=False)):
        station = STATIONS[side].upper()
        if report is not None:
            report(number, len(radios), f"asking {station}'s radio, {args}")
        found.append(Radio(station, args, ask(args, clock_source, plain, side)))
    return Case(
        radios=tuple(found),
        rate_sps=radio.rate_sps,
        clock_source=clock_source,
        uid=os.geteuid(),
        images=os.environ.get("UHD_IMAGES_DIR", ""),
        rings=_rings,
    )


def scenario_of(scenario: Path | None, settings: Sequence[str]) -> Scenario:
    """Return the scenario, without its own radios. Raises FadelabError."""
    tier = tier_with("real")
    loaded = load(scenario or DEMO_SCENARIOS[tier], settings, tier=tier)
    return loaded.model_copy(update={"radio": loaded.radio.model_copy(update={"devices": None})})


def _rings(interface: str) -> str:
    done = subprocess.run(("ethtool", "-g", interface), capture_output=True, text=True, check=False, timeout=_ETHTOOL_S)
    return done.stdout
