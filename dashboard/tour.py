"""The guided tour: five steps, each a sentence of story, runs of its own, and a sentence with their real figures.

    Step ─► runs of a RunStarter ─► Figures ─► the step's last sentence

`STEPS` has all that a step is. `Tour` plays the steps, for a presenter who moves on or unattended in a loop; README.md
has what the page gets of it.

Rules kept: figures are those of the runs just made; a step that fails says so in a line, and the tour goes on.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dashboard.control import ControlError, Outcome, RunStarter, Scene, Started

#: how long the story stands before the runs begin, and the last sentence before an unattended tour goes on
STORY_S = 5.0
RESULT_S = 10.0
#: length of a step's runs
_RUN_S = 20.0
#: how long a run may take to end when it is told to
_END_S = 60.0
_LOOK_S = 0.2
#: ratios of two rates within which they are alike
_ALIKE = 1.1
#: what is added to the sentence of a step whose runs were late
LATE = " This machine was late, so these figures are not the channel's alone."
_NO_SCHEME = "link.scheme=none"

Phase = Literal["story", "running", "result", "failed"]


@dataclass(frozen=True, slots=True)
class Figures:
    """What a step says of one of its runs, from its summary; losses are of the busier direction."""

    goodput_bps: float
    capacity_bps: float
    frames: int
    damaged: int
    #: packets that the link lost for good
    left: int
    eln_marks: int
    on_time: bool = True

    @property
    def share(self) -> float:
        """Goodput over the link's capacity: it can be compared between runs at different rates."""
        return self.goodput_bps / self.capacity_bps if self.capacity_bps else 0.0

    @property
    def rate(self) -> str:
        return f"{self.goodput_bps / 1e6:.2f} Mbit/s"

    @property
    def losses(self) -> str:
        return f"{self.damaged} of {self.frames} frames"


def figures_of(summary: Mapping[str, Any]) -> Figures:
    """Return the figures of a run's summary (docs/runs.md)."""
    links = summary["link"]
    # as the page chooses the direction to show: acknowledgements alone are no traffic
    busy = max(links.values(), key=lambda link: (2 if link is links.get("up") else 1) * link["throughput_bps"])
    return Figures(
        goodput_bps=summary["goodput_bps"],
        capacity_bps=summary["capacity_bps"],
        frames=busy["frames"],
        damaged=busy["corruption_losses"],
        left=busy["residual_losses"],
        eln_marks=sum(link.get("eln_marks", 0) for link in links.values()),
        on_time=summary.get("on_time", True),
    )


#: figures of steps played before, by name
Before = Mapping[str, Sequence[Figures]]


@dataclass(frozen=True, slots=True)
class Step:
    """One step: the sentence before its runs, the runs, and how their figures make the sentence after them."""

    name: str
    title: str
    story: str
    scene: Scene
    tell: Callable[[Sequence[Figures], Before], str]


def _clean(now: Sequence[Figures], before: Before) -> str:
    [one] = now
    return f"{one.losses} were damaged, and TCP carried {one.rate}: {one.share:.0%} of what the link can."


def _fading(now: Sequence[Figures], before: Before) -> str:
    [one] = now
    said = f"The air damaged {one.losses}, and TCP fell to {one.rate}: {one.share:.0%} of what the link can"
    clean = before.get("clean")
    return f"{said}, against {clean[0].share:.0%} on the clear channel." if clean else f"{said}."


def _slacp(now: Sequence[Figures], before: Before) -> str:
    bare, repaired = now
    most = f"all but {repaired.left} of the {repaired.damaged}" if repaired.left else f"all {repaired.damaged}"
    return (
        f"{_compared(bare, repaired, 'With SLACP', 'arrived over the same channel')}: "
        f"it repaired {most} losses before TCP noticed."
    )


def _eln(now: Sequence[Figures], before: Before) -> str:
    untold, told = now
    truth = f"{told.eln_marks} acknowledgements told it that the air was to blame"
    return f"{_compared(untold, told, 'From the sender that is told', 'arrived')}: {truth}."


def _replay(now: Sequence[Figures], before: Before) -> str:
    bare, repaired = now
    rates = f"{repaired.rate} against {bare.rate}"
    return f"{_compared(bare, repaired, 'With SLACP', 'arrived through the recorded losses')}: {rates}."


def _compared(one: Figures, other: Figures, who: str, where: str) -> str:
    """The ratio of two rates, `other` over `one`, in words."""
    ratio = other.goodput_bps / one.goodput_bps if one.goodput_bps else 0.0
    if not ratio:
        return f"{who} {other.rate} {where}, and nothing without"
    if ratio > _ALIKE:
        return f"{who} {ratio:.1f} times as much {where}"
    return f"{who} {'about the same' if ratio > 1 / _ALIKE else f'only {ratio:.1f} times as much'} {where}"


#: in the tour's order
STEPS = (
    Step(
        "clean",
        "A clear channel",
        "First a clear channel: one sender, one receiver, and radio between them.",
        Scene("fading-link", "vusrp", _RUN_S, ((_NO_SCHEME, "channel.fading=null", "channel.snr_db=30"),)),
        _clean,
    ),
    Step(
        "fading",
        "The signal fades",
        "Now the signal fades, as it does for all who move, and the link repairs nothing.",
        Scene("fading-link", "vusrp", _RUN_S, ((_NO_SCHEME,),)),
        _fading,
    ),
    Step(
        "slacp",
        "Repair on the link",
        "The same fading twice at once: beside the bare link one with SLACP, which sends damaged frames again.",
        Scene("fading-link", "vusrp", _RUN_S, ((_NO_SCHEME,), ("link.scheme=slacp",))),
        _slacp,
    ),
    Step(
        "eln",
        "Telling the sender",
        "Another way: no repair, but one of two senders is told that a loss was the air's fault, not a traffic jam.",
        Scene(
            "lossy-link",
            "emulated",
            _RUN_S,
            (
                (_NO_SCHEME, "channel.per=0.03", "tcp=reno"),
                (_NO_SCHEME, "channel.per=0.03", "tcp=eln", "link.eln=ends"),
            ),
        ),
        _eln,
    ),
    Step(
        "replay",
        "A recorded channel",
        "Last a recording: each frame meets the fate that a frame of a real-time radio run had, on both links alike.",
        Scene("recorded-link", "emulated", _RUN_S, ((_NO_SCHEME,), ("link.scheme=slacp",))),
        _replay,
    ),
)


class Tour:
    """Plays the steps with the runs of a starter, in a thread of its own. All methods may be called from any thread."""

    def __init__(self, starter: RunStarter, *, story_s: float = STORY_S, result_s: float = RESULT_S) -> None:
        self._starter = starter
        self._story_s = story_s
        self._result_s = result_s
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        # under the condition
        self._on = False
        self._unattended = False
        self._step = 0
        self._phase: Phase = "story"
        self._sentence = ""
        #: where a presenter wants to go: steps from here
        self._moves = 0
        self._before: dict[str, Sequence[Figures]] = {}

    # -- for the page ----------------------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """Return the steps and the tour's state, as in README.md."""
        with self._changed:
            return {
                "on": self._on,
                "unattended": self._unattended,
                "step": self._step,
                "phase": self._phase,
                "sentence": self._sentence,
                "steps": [{"name": each.name, "title": each.title, "tier": each.scene.tier} for each in STEPS],
            }

    def begin(self, *, unattended: bool) -> None:
        """Begin with the first step. Raises ControlError in one line."""
        with self._changed:
            if self._on:
                raise ControlError("the tour is on already")
            if self._thread is not None and self._thread.is_alive():
                raise ControlError("the runs of the last tour are ending: ask again in a moment")
            why_not = self._starter.why_not()
            if why_not:
                raise ControlError(f"the tour cannot begin: {why_not}")
            self._on, self._unattended, self._moves = True, unattended, 0
            self._before = {}
            self._show(0, "story", STEPS[0].story)
            self._thread = threading.Thread(target=self._play_all, name="tour", daemon=True)
            self._thread.start()

    def move(self, steps: int) -> None:
        """Go to a later or an earlier step. Raises ControlError."""
        with self._changed:
            self._require_on()
            self._moves += steps
            self._changed.notify_all()

    def attend(self, *, unattended: bool) -> None:
        """Choose whether the tour goes on by itself. Raises ControlError."""
        with self._changed:
            self._require_on()
            self._unattended = unattended
            self._changed.notify_all()

    def end(self) -> None:
        """End the tour and its runs."""
        with self._changed:
            self._on = False
            self._changed.notify_all()

    def close(self) -> None:
        """End the tour and wait for it."""
        self.end()
        if self._thread is not None:
            self._thread.join(_END_S)

    def _require_on(self) -> None:
        if not self._on:
            raise ControlError("there is no tour: begin it first")

    # -- the thread ------------------------------------------------------------------------------------------

    def _play_all(self) -> None:
        number = 0
        while True:
            self._play(number)
            with self._changed:
                if not self._on:
                    return
                number = (number + (self._moves or 1)) % len(STEPS)
                self._moves = 0

    def _play(self, number: int) -> None:
        """Play one step, until it is over or somebody moves on."""
        step = STEPS[number]
        with self._changed:
            self._show(number, "story", step.story)
        if self._left_within(lambda: self._story_s):
            return
        try:
            started = self._starter.start_scene(step.scene)
        except (RuntimeError, ValueError, OSError) as error:
            self._tell("failed", f"This step could not begin: {_one_line(error)}")
        else:
            with self._changed:
                self._phase = "running"
            if not self._ended(started):
                return
            self._tell_result(step, started.outcomes())
        self._left_within(lambda: self._result_s if self._unattended else None)

    def _ended(self, started: Started) -> bool:
        """Wait for the end of runs; where somebody moves on before, stop them and return False."""
        while not started.wait(_LOOK_S):
            with self._changed:
                left = not self._on or bool(self._moves)
            if left:
                started.stop()
                started.wait(_END_S)
                return False
        return True

    def _tell_result(self, step: Step, outcomes: Sequence[Outcome]) -> None:
        errors = [outcome.error for outcome in outcomes if outcome.summary is None]
        if errors:
            self._tell("failed", f"A run of this step has failed: {errors[0]}")
            return
        try:
            figures = [figures_of(outcome.summary) for outcome in outcomes if outcome.summary is not None]
            said = step.tell(figures, self._before)
        except (KeyError, TypeError, ValueError) as error:
            self._tell("failed", f"The results of this step lack a figure: {_one_line(error)}")
            return
        with self._changed:
            self._before[step.name] = figures
        self._tell("result", said if all(each.on_time for each in figures) else said + LATE)

    def _left_within(self, seconds: Callable[[], float | None]) -> bool:
        """Wait so long, for ever for None, which may change meanwhile; return whether somebody moved on or ended it."""
        began = time.monotonic()
        with self._changed:
            while self._on and not self._moves:
                limit = seconds()
                left = None if limit is None else began + limit - time.monotonic()
                if left is not None and left <= 0:
                    return False
                self._changed.wait(left)
            return True

    def _tell(self, phase: Phase, sentence: str) -> None:
        with self._changed:
            self._show(self._step, phase, sentence)

    def _show(self, step: int, phase: Phase, sentence: str) -> None:
        self._step, self._phase, self._sentence = step, phase, sentence


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
