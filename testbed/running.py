"""Runs scenarios: tiers by name, repetitions, a folder per run."""

from collections.abc import Callable, Iterator
from pathlib import Path

from common.sides import SIDES
from hosts.kernel import split_routes
from hosts.kernel.network import check_machine
from testbed.errors import writing_below
from testbed.live.live_run import run_live
from testbed.live.media import MEDIA
from testbed.model.model_run import check_model, run_model
from testbed.observers import MakeHooks, no_hooks
from testbed.results.removal import going_on
from testbed.results.store import RunFolder, noting_warnings
from testbed.results.summary import Summary
from testbed.run_hooks import RunHooks, Show
from testbed.scenario.resolver import resolve
from testbed.scenario.run_plan import Plan, make_rng
from testbed.scenario.schema import Direction, Scenario
from testbed.virtual import virtual_run


def check_tier(scenario: Scenario) -> None:
    """Raise FadelabError, PhyError or HostError when the scenario's tier cannot run here."""
    plan = resolve(scenario)
    if plan.tier.medium is None:
        check_model(plan)
        return
    if plan.clock == "virtual":
        virtual_run.check(plan)
    else:
        check_machine()
        if plan.split is not None:
            split_routes.check()
    for present in (plan, *(change.plan for change in plan.changes)):
        for each in (present, present.second):
            if each is not None:
                MEDIA[plan.tier.medium].check(each)


def unused(scenario: Scenario) -> Iterator[str]:
    """Yield the settings of queues, radios and the air that have no effect on this tier, a line each."""
    link, plan = scenario.link, resolve(scenario)
    if link.queue != type(link).model_fields["queue"].default:
        ends = (station.link.make(make_rng(plan.seed), 0, sized=True) for station in plan.stations.values())
        if not any(end.flow_control for end in ends):
            yield f"scheme {link.scheme} has no use for link.queue: its packets wait in the transmitter's buffer"
    tier = plan.tier
    if tier.simulated and scenario.clock is not None:
        yield f"tier {scenario.tier} has no use for clock: it is always in virtual time"
    if tier.air == "virtual":
        return
    # by value: a stored scenario contains the defaults, too
    directions = [scenario.channel.direction(side) for side in SIDES]
    keys = [
        f"channel.{key}"
        for key in ("snr_db", "fading", "cfo_hz")
        if any(getattr(direction, key) != Direction.model_fields[key].default for direction in directions)
    ]
    if not tier.radio and scenario.radio.devices is not None:
        keys.append("radio.devices")
    if keys:
        why = "the air is the real one" if tier.radio else "there is no radio"
        yield f"tier {scenario.tier} has no use for {', '.join(keys)}: {why}"


def run_once(scenario: Scenario, runs: Path, show: Show, make_hooks: MakeHooks = no_hooks) -> Summary:
    """Run a scenario and return its result."""
    check_tier(scenario)
    with writing_below(runs):
        return run_in(RunFolder.create(runs, scenario), scenario, show, make_hooks)


def run_in(folder: RunFolder, scenario: Scenario, show: Show, make_hooks: MakeHooks = no_hooks) -> Summary:
    """Run a scenario that its tier can run, with records and result in a folder, and return its result."""
    plan, hooks = resolve(scenario), make_hooks(scenario, folder)
    try:
        with going_on(folder.path), noting_warnings(folder.path):
            summary = _runner(plan)(plan, folder, show, hooks)
    except BaseException as error:
        hooks.ended(None, " ".join(str(error).split()) or type(error).__name__)
        raise
    hooks.ended(summary, None)
    return summary


def _runner(plan: Plan) -> Callable[[Plan, RunFolder, Show, RunHooks], Summary]:
    if plan.tier.simulated:
        return run_model
    return virtual_run.run_virtual if plan.clock == "virtual" else run_live
