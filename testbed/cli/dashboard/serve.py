"""Page, database and controls of the dashboard, and the runs that it starts.

    orders ─► runs of its own ──────────┬─► hub ─► page
    runs elsewhere ─► InfluxDB ─► tail ─┘

The runs of its own go to run folders and the database, too.
"""

import ipaddress
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from dashboard.app import LOCAL_HOSTS, DashboardConfig, create_app, serve
from dashboard.auth import LEAST_TOKEN
from dashboard.control import Controls
from dashboard.hub import Hub
from dashboard.serving import free_port
from dashboard.tail import Tail
from dashboard.tour import Tour
from telemetry.influx import Influx, InfluxServer, InfluxSink, InfluxTail, read_token
from testbed import interrupts
from testbed.air_steering import AirSteering
from testbed.cli.dashboard.run_starter import LiveRunStarter
from testbed.cli.dashboard.stories import Stories
from testbed.cli.options import DEMO_SCENARIOS, DEMO_TIER
from testbed.errors import FadelabError
from testbed.live.signals import ended_by_sigterm
from testbed.observers import SPOOL, dashboard_hooks, open_influx
from testbed.paths import root
from testbed.scenario.file import load
from testbed.sources import fadelab_version
from testbed.tiers import TIERS

#: where page and database listen, if nothing else does
PORT = 8050
INFLUX_PORT = 8186
#: our own database, in the run store
DATABASE = ".influxdb"


def serve_dashboard(
    *,
    port: int | None,
    bind: str,
    names: Sequence[str],
    proxies: int,
    runs: Path,
    page_token_file: Path | None,
    influx: str | None,
    token_file: Path | None,
    influx_port: int | None,
    retention_days: int,
    demo: bool,
    guided: bool,
    air: str | None,
    scenario: Path | None,
) -> None:
    """Serve the dashboard until Ctrl-C or SIGTERM. Raises errors of one line.

    Without a file, the page's token is drawn at random. Without the URL of a database (`influx`), the dashboard starts
    one of its own. `names` are further host names of the page, and `proxies` the number of proxies in front of it; with
    either, looking takes the token, as it does beyond loopback. `scenario` is the one that stations run which are
    programs of their own, on `air`. A port that is None is the usual one, or the next that is free.
    """
    console = Console(stderr=True, highlight=False, soft_wrap=True)

    def complain(line: str) -> None:
        console.print("[yellow]warning:[/]", end=" ")
        console.print(line, markup=False)

    if scenario is not None and air is None:
        raise FadelabError("--scenario is for --air: what the stations on that air run")
    token = secrets.token_urlsafe(24) if page_token_file is None else read_token(page_token_file)
    if len(token) < LEAST_TOKEN:
        raise FadelabError(
            f"{page_token_file}: a token of {len(token)} characters can be guessed: "
            f"make one of {LEAST_TOKEN} or more, as `openssl rand -base64 24` does"
        )
    steering = _steering(air, scenario)
    hub = Hub()
    with ExitStack() as stack:
        stack.enter_context(ended_by_sigterm())
        database = stack.enter_context(_database(influx, token_file, runs / DATABASE, influx_port, retention_days))
        tail = stack.enter_context(Tail(hub, InfluxTail(database), steering, _has_radio))
        # has no records of its own, and sends those that earlier runs have left
        leftovers = stack.enter_context(closing(InfluxSink(database, {}, runs / SPOOL)))
        leftovers.begin(0)

        def database_state() -> Mapping[str, Any]:
            waiting = leftovers.status().waiting
            state = "away" if tail.problem else "up"
            return {"url": database.url, "state": state, "waiting": waiting, "message": tail.problem}

        starter = stack.enter_context(
            closing(LiveRunStarter(root() / "scenarios", runs, dashboard_hooks(hub, database, complain), complain))
        )
        tour = stack.enter_context(closing(Tour(starter)))
        stories = stack.enter_context(closing(Stories()))
        config = DashboardConfig(
            hub=hub,
            runs=runs,
            token=token,
            starter=starter,
            tour=tour,
            database=database_state,
            tell=stories.tell,
            hosts=(*LOCAL_HOSTS, bind, *names),
            # a proxy, and a name of one's own, lead others here
            require_token_to_read=bool(not _is_loopback(bind) or proxies or names),
            proxies=proxies,
            version=fadelab_version(),
        )
        served = stack.enter_context(serve(create_app(config), bind, free_port(bind, PORT) if port is None else port))
        if port is None and served.port != PORT:
            console.print(f"port {PORT} is taken: the page is on port {served.port}")
        page, view = f"{served.url.replace('0.0.0.0', '127.0.0.1')}/", "#/demo" if demo or guided else ""
        if page_token_file is None:
            print(f"{page}?token={token}{view}", flush=True)
            console.print("the address above opens the dashboard and its controls; Ctrl-C ends it")
        else:
            # what is printed may be kept as a log
            print(f"{page}{view}", flush=True)
            console.print(
                f"the address above opens the dashboard, and the token in {page_token_file} its controls;", end=" "
            )
            console.print("Ctrl-C ends it")
        console.print(f"runs elsewhere join with: fadelab run ... --influx {database.url}")
        if guided:
            tour.begin(unattended=True)
        elif demo:
            starter.start_demo()
        with interrupts.taken():
            served.wait()
        console.print("ending")


@contextmanager
def _database(
    url: str | None, token_file: Path | None, folder: Path, port: int | None, retention_days: int
) -> Iterator[Influx]:
    """Yield the database at a URL, or one of our own while the dashboard lasts. Raises InfluxError."""
    influx = open_influx(url, token_file)
    if influx is not None:
        yield influx
        return
    if token_file is not None:
        raise FadelabError("--token-file is for a database that --influx names: give both, or neither")
    if port is None:
        port = free_port("127.0.0.1", INFLUX_PORT)
    with InfluxServer(folder, port=port, retention_days=retention_days) as server:
        yield Influx(server.url)


def _steering(air: str | None, scenario: Path | None) -> Callable[[Mapping[str, str]], Controls | None]:
    """Return the controls of runs of other programs, by their tags: with an air, those of that air."""
    steering = None if air is None else AirSteering(air, load(scenario or DEMO_SCENARIOS[DEMO_TIER]))
    return lambda tags: steering


def _has_radio(tags: Mapping[str, str]) -> bool:
    """Whether the tier of another program's run has radios; an unknown one may."""
    tier = TIERS.get(tags.get("tier", ""))
    return tier is None or tier.radio


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
