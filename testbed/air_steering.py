"""The controls of a link between stations that run as separate programs: those of the virtual air between them."""

from dataclasses import replace

from dashboard.control import Control, ControlError, Value
from flowgraphs.air import Air
from testbed.live.media.virtual_air import AirChannel
from testbed.scenario.resolver import resolve
from testbed.scenario.schema import Scenario
from testbed.steering import Steering
from testbed.tiers import tier_with

_OURS = ("snr_db", "fading", "doppler_hz")
_WHY_NOT = "the stations are programs of their own: start them anew"


class AirSteering(Steering):
    """Controls of the air `name` between ST and BAS, which run `scenario`. Raises AirError without such an air."""

    def __init__(self, name: str, scenario: Scenario) -> None:
        super().__init__(scenario.model_copy(update={"tier": tier_with("virtual")}))
        self._channel = AirChannel(Air.open(name), resolve(scenario).radio)

    def set(self, name: str, value: Value) -> None:
        """Change one control. Raises ControlError in one line."""
        super().set(name, value)
        for change in self.take():
            for side, station in change.plan.stations.items():
                self._channel.apply(side, station.air)

    def stop(self) -> None:
        """Raise ControlError: the stations are other programs, which this one cannot end."""
        raise ControlError("this run cannot be stopped from here: " + _WHY_NOT)

    def _describe(self) -> list[Control]:
        return [
            control if control.name in _OURS else replace(control, why_not=control.why_not or _WHY_NOT)
            for control in super()._describe()
        ]
