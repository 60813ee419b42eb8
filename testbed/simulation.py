"""A scenario in virtual time, without files."""

from testbed.model.model_run import Begun, Simulation
from testbed.model.watch import Watch
from testbed.results.summary import Summary
from testbed.results.validity import require_intact
from testbed.scenario.resolver import resolve
from testbed.scenario.schema import Scenario


def simulate(scenario: Scenario, watch: Watch | None = None, begun: Begun = lambda network, traffic: None) -> Summary:
    """Return the result of a scenario in virtual time; `watch` gets its TCP segments and frames.

    `begun` is called at the run's time 0, with the network and the traffic.

    Raises FadelabError in one line for a scenario that tier `model` cannot run, and for data that arrived otherwise
    than sent.
    """
    summary = Simulation(resolve(scenario), watch=watch, begun=begun).run()
    require_intact([summary])
    return summary
