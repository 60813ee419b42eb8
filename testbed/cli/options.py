"""Options that several commands have, and the kinds of values they take. Cheap to import."""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from testbed.errors import FadelabError
from testbed.paths import root
from testbed.tiers import TIERS, Clock, tier_with

if TYPE_CHECKING:
    from testbed.scenario.schema import Scenario

#: scenario of the demo, by tier
DEMO_SCENARIOS = {name: root() / "scenarios" / tier.demo for name, tier in TIERS.items() if tier.demo}
#: the tier of the demo that needs no devices
DEMO_TIER = tier_with("virtual")


class Finite(click.FloatRange):
    """A number in a range; nan and inf are refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


class Names(click.Choice[str]):
    """One of the names that `names` returns, which is called when they are needed: a registry may be slow to import."""

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        super().__init__(())
        self._names = names

    @property
    def choices(self) -> tuple[str, ...]:
        """The names."""
        return tuple(self._names())

    @choices.setter
    def choices(self, _: Sequence[str]) -> None: ...


PATH = click.Path(path_type=Path)
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)

clock = click.option(
    "--clock", type=click.Choice(get_args(Clock)), help="Run by this clock; virtual: in a machine in virtual time."
)
devices = click.option("--device", "devices", multiple=True, metavar="ARGS", help="Tier usrp: ST's radio, then BAS's.")
json_ = click.option("--json", "json_", is_flag=True, help="Print one JSON object instead of the table.")
out = click.option("--out", type=FOLDER, default="runs", show_default=True)
run_name = click.option("--run", "run_name", help="The run the records belong to; the same at all stations and hosts.")
seconds = click.option("--seconds", type=Finite(min=0.1), help="Stop after this long; default: at Ctrl-C.")
seed = click.option("--seed", type=click.IntRange(min=0), help="Seed of all random numbers.")


def settings(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option `--set KEY=VALUE`."""
    return click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help=text)


def influx(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name an InfluxDB: `influx` and `token_file`."""
    url = click.option(
        "--influx", metavar="URL", envvar="FADELAB_INFLUX", help="Send the records to this InfluxDB, too."
    )
    token = click.option("--token-file", type=FILE, help="File with that InfluxDB's token, or user:password.")
    return url(token(command))


def require_one_link(scenario: "Scenario") -> None:
    """Raise FadelabError when a station or a host on its own is asked for a scenario with two links."""
    if scenario.second_link is not None:
        raise FadelabError("second_link: a station or a host on its own has one link: use run, or set it to null")


def device_settings(devices: Sequence[str]) -> tuple[str, ...]:
    """Return the setting that `--device ST --device BAS` stands for."""
    if not devices:
        return ()
    if len(devices) != 2:
        raise FadelabError(f"--device is given {len(devices)} times: name ST's radio, then BAS's")
    return (f"radio.devices={json.dumps(devices)}",)
