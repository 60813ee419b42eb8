"""A replication of a case: its path, and the numbers that its script returns."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from common.units import MS, SECOND
from experiments.bbr_cases.cases import CASES
from experiments.bbr_cases.flow import Flow
from experiments.bbr_cases.parameters import NETWORK
from hosts.tcp.profiles import USER_PROFILES
from testbed.papers.results import Job, PaperError, Sample
from testbed.scenario.run_plan import make_rng

#: values of parameters.NETWORK by key
Values = tuple[tuple[str, Any], ...]


def job(case: tuple[str, str], settings: Sequence[str]) -> Job:
    """Return the computation of a replication of a cell, (case, number). Raises PaperError in one line."""
    return Run(case[0], values(settings))


def values(settings: Sequence[str]) -> Values:
    """Return the parameters, some changed by `key=value`. Raises PaperError in one line."""
    found = {parameter.key: parameter.value for parameter in NETWORK}
    for setting in settings:
        key, _, text = setting.partition("=")
        if key not in found:
            raise PaperError(f"--set {setting}: choose from {', '.join(found)}")
        found[key] = _profile(setting, text) if key == "profile" else _number(setting, text)
    if found["least_rtt_ms"] > found["most_rtt_ms"]:
        raise PaperError("--set least_rtt_ms: most_rtt_ms at most")
    return tuple(found.items())


def _profile(setting: str, name: str) -> str:
    known = [name for name, profile in USER_PROFILES.items() if profile.config.growth.name == "bbr3"]
    if name not in known:
        raise PaperError(f"--set {setting}: profile is one of {', '.join(known)}")
    return name


def _number(setting: str, text: str) -> float:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if type(value) not in (int, float) or not 0.1 <= value <= 1000:
        raise PaperError(f"--set {setting}: takes a number from 0.1 to 1000")
    return float(value)


@dataclass(frozen=True, slots=True)
class Run:
    """One replication: the case, and the network."""

    case: str
    network: Values

    def __call__(self, seed: int) -> Sample:
        """Run it: its counts are the case's numbers; those that it did not reach are infinite."""
        case, network = CASES[self.case], dict(self.network)
        least, most = case.rtt_ms or (network["least_rtt_ms"], network["most_rtt_ms"])
        rtt_ns = round(make_rng(seed, "path").uniform(least, most) * MS)
        rate_bps = round(1e6 * (case.rate_mbps or network["rate_mbps"]))
        config = USER_PROFILES[network["profile"]].config

        def new(*, buffer_bdp: float = inf) -> Flow:
            buffer_bytes = buffer_bdp * rate_bps / 8 * rtt_ns / SECOND
            return Flow(config, seed=seed, rate_bps=rate_bps, rtt_ns=rtt_ns, buffer_bytes=buffer_bytes)

        found = case.script(new)
        numbers = {number.name: float(found.get(number.name, inf)) for number in case.numbers}
        return Sample(0.0, {**numbers, "rtt_ms": rtt_ns / MS})
