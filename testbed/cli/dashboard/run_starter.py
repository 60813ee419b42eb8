"""Starting runs on behalf of the dashboard: one request at a time, one run per scheme, side by side.

Read first: `dashboard/control.py`, whose `RunStarter` this implements. A run ends as its scenario says, by its
controls, or with the starter. Runs of one request have their time 0 at the same time, so that they meet the same
channel at the same time.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from dashboard.control import ControlError, Offer, RunRequest
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
        self._threads: list[threading.Thread] = []
        self._steerings: list[Steering] = []
        #: where the runs of the newest request wait for each other
        self._meeting = threading.Barrier(1)

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
        if any(thread.is_alive() for thread in self._threads):
            return "a run is going on: stop it first"
        try:
            check_machine()
        except HostError as error:
            return str(error)
        return ""

    def start(self, request: RunRequest, settings: Sequence[str] = ()) -> None:
        """Start the runs, their scenario changed by `settings` (`KEY=VALUE`). Raises ControlError in one line."""
        with self._lock:
            why_not = "the dashboard is closing" if self._closing else self.why_not()
            if why_not:
                raise ControlError(f"nothing can be started: {why_not}")
            scenarios = [self._scenario(request, scheme, settings) for scheme in request.schemes]
            self._steerings = []
            self._meeting = threading.Barrier(len(scenarios))
            self._threads = [
                threading.Thread(target=self._run, args=(scenario,), name=f"run {scenario.link.scheme}")
                for scenario in scenarios
            ]
            for thread in self._threads:
                thread.start()

    def start_demo(self) -> None:
        """Start the demo at the largest share of its rates that leaves cores enough for the page and a browser."""
        path = DEMO_SCENARIOS[DEMO_TIER]
        wanted = load(path, tier=DEMO_TIER)
        room = processors.look().beside(_PAGE_CORES)
        plan = capacity.side_by_side(room, capacity.link_costs(wanted, processors.slowness()), links=len(_DEMO_SCHEMES))
        self.start(
            RunRequest(path.stem, DEMO_TIER, _DEMO_SCHEMES, _DEMO_S, wanted.seed),
            capacity.lowered(wanted, plan.share),
        )
        if plan.share < 1:
            late = "" if plan.fits else ", and may be late all the same"
            self._complain(f"the demo runs at {plan.share} of its rates, so that the page keeps up{late}")

    def _scenario(self, request: RunRequest, scheme: str, changes: Sequence[str]) -> Scenario:
        """Return the scenario of one run. Raises ControlError."""
        path = self._scenarios / f"{request.scenario}.yaml"
        if path not in self._scenarios.glob("*.yaml"):
            raise ControlError(f"there is no scenario of the name {request.scenario!r}")
        if request.tier not in _TIERS:
            raise ControlError(f"tier is {request.tier!r}: must be one of {', '.join(_TIERS)}")
        if not _SECONDS[0] <= request.seconds <= _SECONDS[1]:
            raise ControlError(f"{request.seconds:g} seconds: must be {_SECONDS[0]:g} to {_SECONDS[1]:g}")
        try:
            settings = (f"link.scheme={scheme}", *_lasting(load(path), request.seconds), *changes)
            scenario = load(path, settings, tier=request.tier, seed=request.seed)
            check_tier(scenario)
        except RuntimeError as error:
            raise ControlError(str(error)) from None
        return scenario

    # -- the runs --------------------------------------------------------------------------------------------

    def _run(self, scenario: Scenario) -> None:
        meeting = self._meeting

        def hooks(scenario: Scenario, folder: RunFolder) -> RunHooks:
            return replace(self._hooks(scenario, folder), ready=lambda: _meet(meeting))

        try:
            require_intact([run_once(scenario, self._runs, lambda progress: None, hooks)])
        except (RuntimeError, ValueError, OSError) as error:
            self._complain(" ".join(str(error).split()))
        finally:
            # one that fails before its start keeps the others no longer
            meeting.abort()

    def _hooks(self, scenario: Scenario, folder: RunFolder) -> RunHooks:
        """Make the hooks of a run, and keep its controls."""
        hooks = self._make_hooks(scenario, folder)
        if hooks.steering is not None:
            with self._lock:
                self._steerings.append(hooks.steering)
                if self._closing:
                    hooks.steering.stop()
        return hooks

    def close(self) -> None:
        """End the runs and wait for them."""
        with self._lock:
            self._closing = True
            self._meeting.abort()
            for steering in self._steerings:
                steering.stop()
        for thread in self._threads:
            thread.join(_END_S)


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
