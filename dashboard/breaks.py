"""What a presenter breaks: disturbances of the channel of live runs that mend themselves.

A break changes one control of each run (`control.py`) and, some seconds later, changes it back.

Rules kept: one break at a time; all its runs are changed, or none; a value that somebody else changes meanwhile stays.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dashboard.control import Control, ControlError, Controls, Value


@dataclass(frozen=True, slots=True)
class Break:
    """One disturbance: the value that a control has for some seconds."""

    name: str
    label: str
    #: what it does, in plain words and in the field's terms
    plain: str
    terms: str
    control: str
    value: float
    seconds: float


#: in the page's order. With the demo's QPSK and fading, many frames are lost at 11 dB, and all of them at 0 dB
BREAKS = (
    Break("fade", "Fade", "the signal gets weak", "SNR 11 dB", "snr_db", 11.0, 6.0),
    Break("burst", "Burst", "noise drowns everything", "SNR 0 dB", "snr_db", 0.0, 1.0),
    Break("interferer", "Interferer", "another sender hits packets at random", "PER 12 %", "per", 12.0, 6.0),
)
#: error models that the control `per` can leave and restore
_PLAIN_ERRORS = ("none", "bernoulli")


class Breaker:
    """Breaks live runs and mends them. `told` is called after each change."""

    def __init__(self, told: Callable[[], None] = lambda: None) -> None:
        self._told = told
        self._lock = threading.Lock()
        self._present: Break | None = None

    def start(self, name: str, runs: Sequence[Controls]) -> None:
        """Begin a break of some runs. Raises ControlError in one line."""
        wanted = next((each for each in BREAKS if each.name == name), None)
        if wanted is None:
            raise ControlError(f"{name} is no break: there are {', '.join(each.name for each in BREAKS)}")
        with self._lock:
            if self._present is not None:
                raise ControlError(f"one break at a time: wait for the end of the {self._present.label.lower()}")
            before = [_value_before(wanted, run.describe()) for run in runs]
            for run in runs:
                run.set(wanted.control, wanted.value)
            self._present = wanted
        self._told()
        timer = threading.Timer(wanted.seconds, self._mend, (wanted, list(zip(runs, before, strict=True))))
        timer.daemon = True
        timer.start()

    def _mend(self, over: Break, runs: Sequence[tuple[Controls, Value]]) -> None:
        with self._lock:
            self._present = None
            for run, before in runs:
                try:
                    if _control(over.control, run.describe()).value == over.value:
                        run.set(over.control, before)
                except ControlError:
                    # the run may have ended, or have lost the control
                    continue
        self._told()


def _control(name: str, controls: Sequence[Control]) -> Control:
    found = next((control for control in controls if control.name == name), None)
    if found is None:
        raise ControlError(f"{name} is no control of this run")
    return found


def _value_before(wanted: Break, controls: Sequence[Control]) -> float:
    """Return the value to restore. Raises ControlError where the break would be none, or could not be mended."""
    control = _control(wanted.control, controls)
    if control.why_not:
        raise ControlError(f"{control.label} cannot be changed: {control.why_not}")
    before = float(control.value)
    if wanted.control == "per":
        errors = next((each.value for each in controls if each.name == "errors"), "none")
        if errors not in _PLAIN_ERRORS:
            raise ControlError(f"the run has the error model {errors}, which a break could not restore")
        worse = before < wanted.value
    else:
        worse = before > wanted.value
    if not worse:
        raise ControlError(f"{control.label} is {before:g} {control.unit} already: that is as bad as the break")
    return before
