"""Page, database and controls of the dashboard, and the runs that it starts.

    orders ─► runs of its own ──────────┬─► hub ─► page
    runs elsewhere ─► InfluxDB ─► tail ─┘

The runs of its own go to run folders and the database, too.
"""

import ipaddress
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from dashboard.app import LOCAL_HOSTS, DashboardConfig, create_app, serve
from dashboard.control import Controls, Order
from dashboard.hub import Hub
from dashboard.tail import Tail
from telemetry.influx import Influx, InfluxServer, InfluxSink, InfluxTail, read_token
from testbed.cli.dashboard.orders import Lab
from testbed.cli.machine import capacity, processors
from testbed.cli.options import DEMO_SCENARIOS
from testbed.errors import FadelabError
from testbed.live.air_steering import AirSteering
from testbed.live.signals import ended_by_sigterm
from testbed.observers import SPOOL, dashboard_and_database, open_influx
from testbed.paths import fadelab_version, root
from testbed.scenario.file import load

#: our own database, in the run store
DATABASE = ".influxdb"
#: how long the demo goes on unless it is stopped
_DEMO_S = 3600.0
#: cores kept for the page, its database and a browser: twice their mean need (docs/measurements.md), since busy
#: stations in real time leave them nothing
_AUDIENCE_CORES = 0.75


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command."""

    port: int
    bind: str
    runs: Path
    #: of the page; without a file, the token is drawn at random
    page_token_file: Path | None
    #: an existing database; without a URL, the dashboard starts one of its own on `influx_port`
    influx: str | None
    token_file: Path | None
    influx_port: int
    retention_days: int
    #: start the demo at once
    demo: bool
    #: an air between stations that are programs of their own, and their scenario
    air: str | None
    scenario: Path | None


def serve_dashboard(options: Options) -> None:
    """Serve the dashboard until Ctrl-C or SIGTERM. Raises errors of one line."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)

    def complain(line: str) -> None:
        console.print("[yellow]warning:[/]", end=" ")
        console.print(line, markup=False)

    if options.scenario is not None and options.air is None:
        raise FadelabError("--scenario is for --air: what the stations on that air run")
    token = secrets.token_urlsafe(24) if options.page_token_file is None else read_token(options.page_token_file)
    steering = _steering(options)
    hub = Hub()
    with ExitStack() as stack:
        stack.enter_context(ended_by_sigterm())
        influx = stack.enter_context(_database(options))
        tail = stack.enter_context(Tail(hub, InfluxTail(influx), steering))
        leftovers = stack.enter_context(_leftovers(influx, options.runs / SPOOL))

        def database() -> Mapping[str, Any]:
            waiting = leftovers.status().waiting
            state = "away" if tail.problem else "up"
            return {"url": influx.url, "state": state, "waiting": waiting, "message": tail.problem}

        lab = stack.enter_context(
            Lab(root() / "scenarios", options.runs, dashboard_and_database(hub, influx, complain), complain)
        )
        config = DashboardConfig(
            hub=hub,
            runs=options.runs,
            token=token,
            lab=lab,
            database=database,
            hosts=(*LOCAL_HOSTS, options.bind),
            require_token_to_read=not _is_loopback(options.bind),
            version=fadelab_version(),
        )
        served = stack.enter_context(serve(create_app(config), options.bind, options.port))
        page = f"{served.url.replace('0.0.0.0', '127.0.0.1')}/?token={token}"
        print(page, flush=True)
        console.print("the address above opens the dashboard and its controls; Ctrl-C ends it")
        console.print(f"runs elsewhere join with: fadelab run ... --influx {influx.url}")
        if options.demo:
            _start_demo(lab, console)
        with suppress(KeyboardInterrupt):
            served.wait()
        console.print("ending")


def _start_demo(lab: Lab, console: Console) -> None:
    """Start the demo at the largest share of its rates that leaves the page and a browser what they need."""
    path = DEMO_SCENARIOS["vusrp"]
    wanted = load(path, tier="vusrp")
    room = processors.look().beside(_AUDIENCE_CORES)
    costs = capacity.link_costs(wanted, processors.slowness())
    share = capacity.choose(room, costs, links=1).share
    if share < 1:
        console.print(f"the demo runs at {share} of its rates, so that the page keeps up on this machine")
    lab.start(Order(path.stem, "vusrp", ("slacp",), _DEMO_S, wanted.seed), capacity.lowered(wanted, share))


@contextmanager
def _database(options: Options) -> Iterator[Influx]:
    """Yield the database that the options name, or one of our own while the dashboard lasts. Raises InfluxError."""
    influx = open_influx(options.influx, options.token_file)
    if influx is not None:
        yield influx
        return
    if options.token_file is not None:
        raise FadelabError("--token-file is for a database that --influx names: give both, or neither")
    folder = options.runs / DATABASE
    with InfluxServer(folder, port=options.influx_port, retention_days=options.retention_days) as server:
        yield Influx(server.url)


@contextmanager
def _leftovers(influx: Influx, spool: Path) -> Iterator[InfluxSink]:
    """A sink without records of its own: it sends what waits from runs that are over."""
    sink = InfluxSink(influx, {}, spool)
    sink.begin(0)
    try:
        yield sink
    finally:
        sink.close()


def _steering(options: Options) -> Callable[[Mapping[str, str]], Controls | None]:
    """Return the controls of runs of other programs, by their tags: with --air, those of that air."""
    if options.air is None:
        return lambda tags: None
    steering = AirSteering(options.air, load(options.scenario or DEMO_SCENARIOS["vusrp"]))
    return lambda tags: steering


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
