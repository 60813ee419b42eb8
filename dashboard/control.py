"""The protocols by which the dashboard controls and starts runs.

`testbed` implements them and passes the objects to `create_app`. The server's threads call all methods, which return
at once.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Value = float | int | bool | str


class ControlError(RuntimeError):
    """An unknown control, or a value that it does not take; one line."""


@dataclass(frozen=True, slots=True)
class Control:
    """One setting of a live run that can be changed, and its present value."""

    #: stable identifier, as in snr_db; the page shows `label`
    name: str
    label: str
    kind: Literal["range", "choice", "switch"]
    value: Value
    unit: str = ""
    #: of a range
    low: float = 0.0
    high: float = 0.0
    step: float = 0.0
    #: of a choice
    choices: tuple[str, ...] = ()
    #: why the control cannot be changed in this run; empty: it can
    why_not: str = ""


def require(controls: Sequence[Control], name: str, value: Value) -> None:
    """Raise ControlError in one line unless there is a control of that name that takes the value now."""
    control = next((control for control in controls if control.name == name), None)
    if control is None:
        raise ControlError(f"{name} is no control of this run: there are {', '.join(each.name for each in controls)}")
    if control.why_not:
        raise ControlError(f"{control.label} cannot be changed: {control.why_not}")
    if control.kind == "switch":
        wanted, fits = "true or false", isinstance(value, bool)
    elif control.kind == "choice":
        wanted, fits = f"one of {', '.join(control.choices)}", value in control.choices
    else:
        wanted = f"a number from {control.low:g} to {control.high:g}"
        # compared as it is: a whole number may be larger than any float
        number = isinstance(value, int | float) and not isinstance(value, bool)
        fits = number and control.low <= value <= control.high  # type: ignore[operator]
    if not fits:
        raise ControlError(f"{control.label} is {json.dumps(value)}: must be {wanted}")


class Controls(Protocol):
    """The controls of one live run."""

    def describe(self) -> Sequence[Control]:
        """Return all controls with their present values."""

    def set(self, name: str, value: Value) -> None:
        """Change one control, with effect in about 0.1 s. Raises ControlError."""

    def stop(self) -> None:
        """End the run early; its result is kept."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A scenario that can be started from the page."""

    name: str
    description: str
    #: tiers that this machine can run now
    tiers: tuple[str, ...]
    schemes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The runs to start: one per scheme, at the same time where the tier allows it."""

    scenario: str
    tier: str
    schemes: tuple[str, ...]
    seconds: float
    seed: int


@dataclass(frozen=True, slots=True)
class Scene:
    """Runs of one scenario side by side, each with settings of its own."""

    scenario: str
    tier: str
    seconds: float
    #: the settings (KEY=VALUE) of each run
    runs: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one run: its summary (docs/runs.md), or a line that says why there is none."""

    summary: Mapping[str, Any] | None
    error: str = ""


class Started(Protocol):
    """The runs of a scene, which go on or have ended."""

    def wait(self, seconds: float) -> bool:
        """Wait so long at most; return whether all have ended."""

    def stop(self) -> None:
        """End the runs early."""

    def outcomes(self) -> Sequence[Outcome]:
        """Return the outcomes of the runs, in the scene's order; to be called when all have ended."""


class RunStarter(Protocol):
    """Starts runs on behalf of the page."""

    def offers(self) -> Sequence[Offer]:
        """Return the scenarios that can be started."""

    def why_not(self) -> str:
        """Return why no run can be started now (no rights, a run going on), or an empty string."""

    def start(self, request: RunRequest) -> None:
        """Start the runs; they appear in the hub. Raises ControlError."""

    def start_demo(self) -> None:
        """Start the demo: one run without repair on the link and one with it. Raises ControlError."""

    def start_scene(self, scene: Scene) -> Started:
        """Start the runs of a scene. Raises ControlError."""
