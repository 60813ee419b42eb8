"""The controls of a live run: settings that a person or the scenario's schedule changes while it goes on.

A control changes the scenario and nothing else: `set` makes and checks the new scenario; the run gets it by `take` and
applies it to its stations, its air and its hosts. Methods may be called from any thread.

Rules kept: a refused change has no effect; a control that does not apply to the run is shown with the reason; both
directions of the link change together.
"""

import json
import math
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from channel.errors import ERROR_MODELS
from common.options import NoOptions
from dashboard.control import Control, ControlError, Value, require
from testbed.live.media import medium_of
from testbed.scenario.changes import ScheduledChange, why_no_air, why_no_switch
from testbed.scenario.file import validate
from testbed.scenario.resolver import resolve
from testbed.scenario.run_plan import Plan
from testbed.scenario.schema import Scenario
from testbed.tiers import TIERS

#: profiles that the fading control offers, and the parameters that it gives them
_FADING = ("none", "flat", "rician", "epa", "eva", "etu")
_RICIAN_K_DB = 8.0
_DOPPLER_HZ = 5.0
_SNR_DB = (0.0, 40.0)
_MAX_DOPPLER_HZ = 200.0
_MAX_PER_PERCENT = 50.0


@dataclass(frozen=True, slots=True)
class Change:
    """One change, with the scenario that holds from now on."""

    name: str
    #: as JSON
    value: str
    scenario: Scenario
    paused: bool
    #: by the scenario's schedule; others are a person's
    scheduled: bool = False

    @property
    def plan(self) -> Plan:
        """The plan of the scenario."""
        return resolve(self.scenario)


class Steering:
    """The controls of one run of `scenario`; implements `dashboard.control.Controls`."""

    def __init__(self, scenario: Scenario) -> None:
        self._lock = threading.Lock()
        self._scenario = scenario.model_copy(update={"changes": ()})
        self._paused = False
        self._changes: list[Change] = []
        #: scheduled changes that are to come
        self._schedule = deque(sorted(scenario.changes, key=lambda change: change.at_s))
        self._stopped = threading.Event()
        fading = scenario.channel.direction("up").fading
        #: parameters of the fading profiles
        self._doppler_hz = fading.doppler_hz if fading is not None and fading.doppler_hz else _DOPPLER_HZ
        self._k_db = fading.k_db if fading is not None and fading.k_db is not None else _RICIAN_K_DB

    @classmethod
    def of(cls, plan: Plan) -> "Steering":
        """Return the controls of a plan's run."""
        return cls(validate(dict(plan.values), plan.name))

    # -- for the dashboard -----------------------------------------------------------------------------------

    def describe(self) -> Sequence[Control]:
        """Return all controls with their present values."""
        with self._lock:
            return self._describe()

    def set(self, name: str, value: Value) -> None:
        """Change one control. Raises ControlError in one line."""
        with self._lock:
            require(self._describe(), name, value)
            before = self._paused, self._doppler_hz
            try:
                self._scenario = self._changed(name, value)
            except RuntimeError as error:
                self._paused, self._doppler_hz = before
                raise ControlError(str(error)) from None
            self._changes.append(Change(name, json.dumps(value), self._scenario, self._paused))

    def stop(self) -> None:
        """End the run early; its result is kept like any other's."""
        self._stopped.set()

    # -- for the run -----------------------------------------------------------------------------------------

    @property
    def stopped(self) -> bool:
        """Whether the run is to end."""
        return self._stopped.is_set()

    def take(self, elapsed_s: float = -math.inf) -> list[Change]:
        """Return the changes since the last call, oldest first, with those scheduled up to this time of the run.

        Raises ScenarioError when a scheduled change does not fit what a person has changed.
        """
        with self._lock:
            while self._schedule and self._schedule[0].at_s <= elapsed_s:
                self._apply(self._schedule.popleft())
            changes, self._changes = self._changes, []
            return changes

    @property
    def next_s(self) -> float | None:
        """The time of the run of the next scheduled change, or None."""
        return self._schedule[0].at_s if self._schedule else None

    def _apply(self, change: ScheduledChange) -> None:
        raw = self._scenario.plain()
        change.apply(raw)
        self._scenario = validate(raw, f"the change at {change.at_s:g} s")
        self._paused = self._paused if change.paused is None else change.paused
        self._changes += [
            Change(key, json.dumps(value), self._scenario, self._paused, scheduled=True)
            for key, value in change.set.items()
        ]

    # -- the controls ----------------------------------------------------------------------------------------

    def _describe(self) -> list[Control]:
        direction = self._scenario.channel.direction("up")
        errors, fading = direction.errors, direction.fading
        profile = "none" if fading is None else "recorded" if fading.series is not None else fading.profile
        percent = 100 * float(getattr(errors, "per", 0.0))
        tier = TIERS[self._scenario.tier]
        no_air = why_no_air(tier)
        scheme = self._scenario.link.scheme
        models = [*(name for name, model in ERROR_MODELS.items() if model.options is NoOptions), "bernoulli"]
        return [
            Control("snr_db", "SNR", "range", direction.snr_db, "dB", *_SNR_DB, 0.5, why_not=no_air),
            Control("fading", "Fading", "choice", profile, choices=_with(_FADING, profile), why_not=no_air),
            Control("doppler_hz", "Doppler", "range", self._doppler_hz, "Hz", 0, _MAX_DOPPLER_HZ, 1, why_not=no_air),
            Control("errors", "Error model", "choice", errors.model, choices=_with(models, errors.model)),
            Control("per", "Frames lost at random", "range", percent, "%", 0, _MAX_PER_PERCENT, 0.5),
            Control("slacp", "SLACP", "switch", scheme == "slacp", why_not=why_no_switch(scheme)),
            Control("eln", "ELN", "switch", self._scenario.link.eln != "none"),
            Control("paused", "Pause traffic", "switch", self._paused),
        ]

    def _changed(self, name: str, value: Value) -> Scenario:
        """Return the scenario with one control changed."""
        raw = self._scenario.plain()
        match name:
            case "snr_db":
                _set_both(raw, name, value)
            case "fading":
                _set_both(raw, name, None if value == "none" else self._fading(str(value)))
            case "doppler_hz":
                self._doppler_hz = float(value)
                fading = self._scenario.channel.direction("up").fading
                if fading is not None and fading.series is None:
                    _set_both(raw, "fading", {**fading.model_dump(mode="json"), "doppler_hz": self._doppler_hz})
            case "errors":
                _set_errors(raw, {"model": value} | ({"per": 0.05} if value == "bernoulli" else {}))
            case "per":
                _set_errors(raw, {"model": "bernoulli", "per": float(value) / 100} if value else {"model": "none"})
            case "slacp":
                raw.setdefault("link", {})["scheme"] = "slacp" if value else "none"
            case "eln":
                raw.setdefault("link", {})["eln"] = "ends" if value else "none"
            case "paused":
                self._paused = bool(value)
        scenario = validate(raw, "control")
        if name == "slacp":
            plan = resolve(scenario)
            medium_of(plan).check(plan)
        return scenario

    def _fading(self, profile: str) -> dict[str, Any]:
        fading: dict[str, Any] = {"profile": profile, "doppler_hz": self._doppler_hz}
        return fading | {"k_db": self._k_db} if profile == "rician" else fading


def _set_errors(raw: dict[str, Any], errors: dict[str, Any]) -> None:
    """Give both directions of the channel the same error model."""
    _set_both(raw, "per", None)
    _set_both(raw, "errors", errors)


def _set_both(raw: dict[str, Any], key: str, value: Any) -> None:
    """Give both directions of the channel the same value; None takes the key away."""
    channel = raw["channel"]
    for place in (channel, channel.get("up", {}), channel.get("down", {})):
        place.pop(key, None)
    if value is not None:
        channel[key] = value


def _with(choices: Sequence[str], present: str) -> tuple[str, ...]:
    return (*choices, *(() if present in choices else (present,)))
