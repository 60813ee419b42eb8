"""Scheduled changes: settings of a scenario that hold from a time of its run on (docs/scenarios.md).

They are the controls of the dashboard, written down: what can change is the medium's errors and air, the link's
scheme, and whether the workloads pause.
"""

from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, ValidationError, field_validator

from common.options import NotNegative
from common.sides import SIDES
from linklayer.schemes import SCHEMES
from testbed.scenario.plugin_options import Part
from testbed.scenario.settings import apply_value
from testbed.tiers import Tier

#: stops the workloads' data, and lets it go on; no key of a scenario
PAUSED: Final = "paused"
#: keys of `channel`, `channel.up` and `channel.down` that can change; the latter two are of virtual radios' air
_ERRORS: Final = ("errors", "per")
_AIR: Final = ("snr_db", "fading")
#: keys of `link` that can change
_LINK: Final = ("scheme", "eln", "filters", *(scheme.options_key for scheme in SCHEMES.values() if scheme.options_key))


class ChangeError(ValueError):
    """A scheduled change after which the scenario is not valid."""

    def __init__(self, index: int, cause: ValidationError) -> None:
        super().__init__(f"changes.{index}: {cause}")
        self.index = index
        self.cause = cause


class ScheduledChange(Part):
    """Settings, as for `--set`, from a time of the run on."""

    at_s: NotNegative
    set: Annotated[dict[str, Any], Field(min_length=1)]

    @field_validator("set")
    @classmethod
    def _check(cls, settings: dict[str, Any]) -> dict[str, Any]:
        for key, value in settings.items():
            if key == PAUSED:
                if not isinstance(value, bool):
                    raise ValueError(f"{PAUSED} is {value!r}: must be true or false")
            elif _place(key) is None:
                raise ValueError(
                    f"{key} cannot change while a run goes on: what can is {PAUSED}, link.{', link.'.join(_LINK)}, and "
                    f"channel.{', channel.'.join((*_ERRORS, *_AIR))}, also of channel.up, channel.down "
                    "and second_link"
                )
        return settings

    @property
    def paused(self) -> bool | None:
        """Whether the workloads pause from then on; None: as before."""
        return self.set.get(PAUSED)

    def apply(self, raw: dict[str, Any]) -> None:
        """Apply the settings to the values of a scenario. Raises ScenarioError."""
        for key, value in self.set.items():
            if key != PAUSED:
                # paths are absolute by now
                apply_value(raw, key, deepcopy(value), base=Path(), setting=f"changes at {self.at_s:g} s")

    def check_tier(self, tier: Tier) -> None:
        """Raise ValueError when the tier does not have what changes."""
        if why := why_no_air(tier):
            for key in self.set:
                if _place(key) in _AIR:
                    raise ValueError(f"{key}: {why}")


def why_no_air(tier: Tier) -> str:
    """Return why the air cannot be changed on a tier, or an empty string."""
    return {
        "none": f"tier {tier.name} has no radio; change the errors instead",
        "virtual": "",
        "real": "the air is the real one",
    }[tier.air]


def why_no_switch(scheme: str) -> str:
    """Return why a run with this scheme cannot have another one from some time on, or an empty string."""
    if SCHEMES[scheme].split is None:
        return ""
    return f"{scheme} splits connections, and those there are cannot be joined again; start a run without it"


def _place(key: str) -> str | None:
    """Return the key of a link or of a direction that a setting changes, or None where it cannot."""
    match key.removeprefix("second_link.").split("."):
        case ["channel", side, name, *_] if side in SIDES and name in (*_ERRORS, *_AIR):
            return name
        case ["channel", name, *_] if name in (*_ERRORS, *_AIR):
            return name
        case ["link", name, *_] if name in _LINK:
            return name
    return None
