"""Starting runs on behalf of the dashboard: one request at a time, one run per scheme, side by side.

Read first: `dashboard/control.py`, whose `RunStarter` this implements. A run ends as its scenario says, by its
controls, or with the starter. Runs of one request have their time 0 at the same time, so that they meet the same
channel at the same time.
"""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from dashboard.control import ControlError, Offer, Outcome, RunRequest, Scene
from flowgraphs.air import LIBRARY
from hosts.errors import HostError
from hosts.kernel.network import check_machine
from linklayer.schemes import SCHEMES
from testbed.cli.machine import capacity, processors
from testbed.cli.options import DEMO_SCENARIOS, DEMO_TIER
from testbed.observers import MakeHooks
from testbed.results.store import RunFolder
from testbed.results.validity import require_intact
from testbed.run_hooks import RunHooks
from testbed.running import check_tier, run_once
from testbed.scenario.file import load
from testbed.scenario.schema import Scenario
from testbed.scenario.settings import ScenarioError
from testbed.steering import Steering
from testbed.tiers import TIERS

#: those with real hosts that need no device arguments, virtual radios first
_TIERS = tuple(
    sorted(
        (name for name, tier in TIERS.items() if not tier.simulated and tier.air != "real"),
        key=lambda name: not TIERS[name].radio,
    )
)
_SECONDS = (2.0, 24 * 3600.0)
#: how long a run may take to end when it is told to
_END_S = 30.0
#: how long a run that is ready waits for the others of its request
_READY_S = 30.0
#: of the demo: the link schemes, and how long it goes on unless it is stopped
_DEMO_SCHEMES = ("none", "slacp")
_DEMO_S = 3600.0
#: cores kept for the page, its database and a browser: twice their mean need (docs/measurements.md), since busy
#: stations in real time leave them nothing
_PAGE_CORES = 0.75


class LiveRuns:
    """The runs of one request; implements `dashboard.control.Started`."""

    def __init__(self, scenarios: Sequence[Scenario], run: "Callable[[LiveRuns, Scenario, int], None]") -> None:
        self._lock = threading.Lock()
        self._stopped = False
        self._steerings: list[Steering] = []
        self._outcomes: list[Outcome] = [Outcome(None, "it has not ended")] * len(scenarios)
        #: where the runs wait for each other
        self.meeting = threading.Barrier(len(scenarios))
        self._begun = threading.Event()
        self._threads = [
            threading.Thread(target=run, args=(self, scenario, place), name=f"run {scenario.link.scheme}")
            for place, scenario in enumerate(scenarios)
        ]

    def begin(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()
        self._begun.set()

    def steered_by(self, steering: Steering) -> None:
        """Keep the controls of a run that has begun."""
        with self._lock:
            self._steerings.append(steering)
            if self._stopped:
                steering.stop()

    def ended(self, place: int, outcome: Outcome) -> None:
        """Keep the outcome of the run at a place of the request."""
        self._outcomes[place] = outcome

    def wait(self, seconds: float) -> bool:
        """Wait so long at most; return whether all have ended."""
        give_up_at = time.monotonic() + seconds
        # a thread that has not started cannot be waited for
        if not self._begun.wait(seconds):
            return False
        for thread in self._threads:
            thread.join(max(0.0, give_up_at - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def stop(self) -> None:
        """End the runs, also those that have not begun."""
        self.meeting.abort()
        with self._lock:
            self._stopped = True
            for steering in self._steerings:
                steering.stop()

    def outcomes(self) -> Sequence[Outcome]:
        """Return the outcomes in the request's order."""
        return tuple(self._outcomes)


class LiveRunStarter:
    """Runs the scenarios in a folder, keeps the runs below `runs` and adds the hooks of `make_hooks`.

    `complain` is called with one line when a run ends in an error.
    """

    def __init__(self, scenarios: Path, runs: Path, make_hooks: MakeHooks, complain: Callable[[str], None]) -> None:
        self._scenarios = scenarios
        self._runs = runs
        self._make_hooks = make_hooks
        self._complain = complain
        self._lock = threading.Lock()
        self._closing = False
        self._unreadable: set[Path] = set()
        #: of the newest request
        self._started: LiveRuns | None = None

    # -- for the dashboard -----------------------------------------------------------------------------------

    def offers(self) -> Sequence[Offer]:
        """Return the scenarios that can be started: all that can be read."""
        tiers = [name for name in _TIERS if LIBRARY.exists() or not TIERS[name].radio]
        offers = []
        for path in sorted(self._scenarios.glob("*.yaml")):
            try:
                scenario = load(path)
            except ScenarioError as error:
                if path not in self._unreadable:
                    self._unreadable.add(path)
                    self._complain(str(error))
                continue
            own_first = tuple(sorted(tiers, key=(scenario.tier, *tiers).index))
            offers.append(Offer(path.stem, scenario.description, own_first, tuple(SCHEMES)))
        return offers

    def why_not(self) -> str:
        """Return the reason why no run can be started now, or an empty string."""
        if self._started is not None and not self._started.wait(0):
            return "a run is going on: stop it first"
        try:
            check_machine()
        except HostError as error:
            return str(error)
        return ""

    def start(self, request: RunRequest, settings: Sequence[str] = ()) -> None:
        """Start the runs, their scenario changed by `settings` (`KEY=VALUE`). Raises ControlError in one line."""
        self._begin(
            lambda: [
                self._scenario(
                    request.scenario,
                    request.tier,
                    request.seconds,
                    (f"link.scheme={scheme}", *settings),
                    seed=request.seed,
                )
                for scheme in request.schemes
            ]
        )

    def _begin(self, make: Callable[[], Sequence[Scenario]]) -> LiveRuns:
        """Start runs of some scenarios. Raises ControlError."""
        with self._lock:
            why_not = "the dashboard is closing" if self._closing else self.why_not()
            if why_not:
                raise ControlError(f"nothing can be started: {why_not}")
            self._started = LiveRuns(make(), self._run)
            self._started.begin()
            return self._started

    def start_demo(self) -> None:
        """Start the demo at the largest share of its rates that leaves cores enough for the page and a browser."""
        path = DEMO_SCENARIOS[DEMO_TIER]
        wanted = load(path, tier=DEMO_TIER)
        lowered, why = _beside_the_page(wanted)
        self.start(RunRequest(path.stem, DEMO_TIER, _DEMO_SCHEMES, _DEMO_S, wanted.seed), lowered)
        if why:
            self._complain(f"the demo runs {why}")

    def start_scene(self, scene: Scene) -> LiveRuns:
        """Start the runs of a scene, at rates that leave cores enough for the page. Raises ControlError in one line."""

        def make() -> Sequence[Scenario]:
            one = self._scenario(scene.scenario, scene.tier, scene.seconds, scene.runs[0])
            lowered, _ = _beside_the_page(one)
            return [
                self._scenario(scene.scenario, scene.tier, scene.seconds, (*settings, *lowered))
                for settings in scene.runs
            ]

        return self._begin(make)

    def _scenario(
        self, name: str, tier: str, seconds: float, changes: Sequence[str], *, seed: int | None = None
    ) -> Scenario:
        """Return the scenario of one run; without a seed it has its own. Raises ControlError."""
        path = self._scenarios / f"{name}.yaml"
        if path not in self._scenarios.glob("*.yaml"):
            raise ControlError(f"there is no scenario of the name {name!r}")
        if tier not in _TIERS:
            raise ControlError(f"tier is {tier!r}: must be one of {', '.join(_TIERS)}")
        if not _SECONDS[0] <= seconds <= _SECONDS[1]:
            raise ControlError(f"{seconds:g} seconds: must be {_SECONDS[0]:g} to {_SECONDS[1]:g}")
        try:
            scenario = load(path, (*_lasting(load(path), seconds), *changes), tier=tier, seed=seed)
            check_tier(scenario)
        except RuntimeError as error:
            raise ControlError(str(error)) from None
        return scenario

    # -- the runs --------------------------------------------------------------------------------------------

    def _run(self, started: LiveRuns, scenario: Scenario, place: int) -> None:
        def hooks(scenario: Scenario, folder: RunFolder) -> RunHooks:
            made = self._make_hooks(scenario, folder)
            if made.steering is not None:
                started.steered_by(made.steering)
            return replace(made, ready=lambda: _meet(started.meeting))

        try:
            summary = run_once(scenario, self._runs, lambda progress: None, hooks)
            require_intact([summary])
            started.ended(place, Outcome(summary.plain()))
        except (RuntimeError, ValueError, OSError) as error:
            line = " ".join(str(error).split())
            # a result that is not intact is none to tell of
            started.ended(place, Outcome(None, line))
            self._complain(line)
        finally:
            # one that fails before its start keeps the others no longer
            started.meeting.abort()

    def close(self) -> None:
        """End the runs and wait for them."""
        with self._lock:
            self._closing = True
            started = self._started
        if started is not None:
            started.stop()
            started.wait(_END_S)


def _beside_the_page(wanted: Scenario) -> tuple[Sequence[str], str]:
    """Return the settings that leave the page its cores beside two links, and words for lowered rates, or none."""
    room = processors.look().beside(_PAGE_CORES)
    plan = capacity.side_by_side(room, capacity.link_costs(wanted, processors.slowness()), links=len(_DEMO_SCHEMES))
    if plan.share == 1:
        return (), ""
    late = "" if plan.fits else ", and may be late all the same"
    return capacity.lowered(wanted, plan.share), f"at {plan.share} of its rates, so that the page keeps up{late}"


def _meet(meeting: threading.Barrier) -> None:
    """Wait for the other runs, as long as they may come."""
    with suppress(threading.BrokenBarrierError):
        meeting.wait(_READY_S)


def _lasting(scenario: Scenario, seconds: float) -> list[str]:
    """The settings that let a scenario's workloads last so long; transfers by size end when they are complete."""
    settings: list[str] = [f"limit_s={seconds + 60}"]
    for index, work in enumerate(scenario.workloads):
        if getattr(work, "duration_s", None) is not None:
            settings.append(f"workloads.{index}.duration_s={max(seconds - work.start_s, 1)}")
    return settings
