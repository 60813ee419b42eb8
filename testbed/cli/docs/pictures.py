"""The pictures of the dashboard in the documents: `./fadelab docs --pictures` makes them.

    demo scenario, twice, virtual time ─► Kept ─► hub ─► page in Chromium ─► docs/dashboard-*.png

The runs are those of `dashboard --demo`, and their breaks are the presenter's, by the scenario's schedule. In virtual
time no load of this machine is in them.

Rule kept: docs/pictures.json says of what page the pictures are, and which files they are. A test compares both, so a
picture is never older than the page. Times of files do not matter, and neither do comments and blank lines.
"""

import hashlib
import json
import re
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dashboard.app import DashboardConfig, create_app, serve
from dashboard.breaks import BREAKS
from dashboard.hub import Hub
from telemetry.records import ControlRecord, Record
from telemetry.views import PhyView
from testbed.cli.bar import bar
from testbed.cli.docs.chromium import CHROMIUM, FLAGS
from testbed.cli.machine.virtual_kernel import prepare_clock
from testbed.cli.options import DEMO_SCENARIOS, DEMO_TIER
from testbed.errors import FadelabError
from testbed.observers import run_info
from testbed.results.store import RunFolder
from testbed.results.validity import require_intact
from testbed.run_hooks import Progress, RunHooks
from testbed.running import run_once
from testbed.scenario.file import load
from testbed.scenario.schema import Scenario
from testbed.steering import Steering

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

#: below the checkout
RECORD = Path("docs") / "pictures.json"
_SCHEMES = ("none", "slacp")
_SECONDS = 80.0
#: when each break begins, in the order of `BREAKS`
_BREAKS_AT_S = (18.0, 32.0, 43.0)
#: the end of the runs that the page gets as it would live: it draws what comes, and pictures take their time
_LIVE_S = 28.0
#: between two looks at what is due
_PACE_S = 0.02
#: the key of a scenario behind a control, and the control's value over the key's
_KEYS = {"snr_db": ("channel.snr_db", 1.0), "per": ("channel.per", 100.0)}
_COMMENT = re.compile(r"/\*.*?\*/|<!--.*?-->", re.DOTALL)
#: a page draws within so long, ms
_DRAWN_MS = 2500


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: a file below docs/, the view's address, the size of its window, and what a reader has set."""

    name: str
    address: str
    size: tuple[int, int]
    dark: bool = False
    projector: bool = False
    #: whether the page may steer, and whether the runs have ended
    token: bool = True
    ended: bool = False


#: those of runs that go on come first
PICTURES = (
    Picture("dashboard-light.png", "#/live/{slacp}", (1920, 1080)),
    Picture("dashboard-dark.png", "#/live/{slacp}", (1920, 1080), dark=True),
    Picture("dashboard-presenter.png", "#/demo", (1920, 1080), projector=True),
    Picture("dashboard-demo.png", "#/demo", (1280, 800), ended=True),
    Picture("dashboard-phone.png", "#/demo", (390, 844), token=False, ended=True),
)


def make(checkout: Path) -> list[Path]:
    """Make all pictures and their record; return the paths. Raises FadelabError in one line."""
    if not Path(CHROMIUM).exists():
        raise FadelabError(f"{CHROMIUM}: not there; install Debian's chromium")
    # what the page is now: a change made meanwhile is not in the pictures
    shown = digest(checkout)
    docs = checkout / "docs"
    with tempfile.TemporaryDirectory() as folder:
        _draw(_run(Path(folder)), docs)
    files = {picture.name: _sha256((docs / picture.name).read_bytes()) for picture in PICTURES}
    (checkout / RECORD).write_text(json.dumps({"page": shown, "files": files}, indent=1) + "\n")
    return [*(docs / name for name in files), checkout / RECORD]


def stale(checkout: Path) -> list[str]:
    """Return what does not fit the record: "the page", or names of pictures."""
    record = json.loads((checkout / RECORD).read_text())
    found = [] if record["page"] == digest(checkout) else ["the page"]
    for picture in PICTURES:
        path = checkout / "docs" / picture.name
        if not path.exists() or record["files"].get(picture.name) != _sha256(path.read_bytes()):
            found.append(picture.name)
    return found


def digest(checkout: Path) -> str:
    """Return the SHA-256 of the page: its template, styles and modules, without comments and blank lines."""
    folder = checkout / "dashboard"
    paths = [folder / "templates" / "index.html", *sorted((folder / "static").iterdir())]
    parts = [f"{path.name}\n{_bare(path.read_text())}" for path in paths]
    return _sha256("\n".join(parts).encode())


def _bare(text: str) -> str:
    lines = (line.strip() for line in _COMMENT.sub("", text).splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def _sha256(octets: bytes) -> str:
    return hashlib.sha256(octets).hexdigest()


# -- the runs ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Kept:
    """What one run has said: a sink of its records and of the views of its radios, which can play them again."""

    scenario: Scenario
    run: str
    said: list[Record | PhyView] = field(default_factory=list)
    summary: Mapping[str, Any] = field(default_factory=dict)
    watched: bool = True

    def begin(self, epoch_ns: int) -> None:
        """Take the run's time 0."""

    def write(self, record: Record) -> None:
        """Keep one record; a change of the schedule becomes the presenter's."""
        self.said.append(_by_control(record) if isinstance(record, ControlRecord) else record)

    def close(self) -> None:
        """Keep all as it is."""

    def show(self, view: PhyView) -> None:
        """Keep a view of a receiver."""
        self.said.append(view)

    def play(self, hub: Hub, began: float, stop: threading.Event) -> threading.Thread:
        """Play the run to a hub by the clock, its time 0 at `began` (Unix, s); `stop` has the rest come at once."""
        feed = hub.open(run_info(self.scenario, self.run), Steering(self.scenario))
        feed.begin(round(began * 1e9))

        def play() -> None:
            for each in sorted(self.said, key=lambda each: each.time_ns):
                while not stop.is_set() and time.time() < began + each.time_ns / 1e9:
                    time.sleep(_PACE_S)
                if isinstance(each, PhyView):
                    feed.show(each)
                else:
                    feed.write(each)
            feed.ended(self.summary, None)

        thread = threading.Thread(target=play, name=f"play {self.run}")
        thread.start()
        return thread


def _by_control(record: ControlRecord) -> ControlRecord:
    """Return the change of a scheduled key as one of its control."""
    for control, (key, scale) in _KEYS.items():
        if record.name == key:
            return replace(record, name=control, value=json.dumps(scale * json.loads(record.value)))
    return record


def schedule(scenario: Scenario) -> Sequence[Mapping[str, Any]]:
    """Return the changes of the breaks, and those that mend them."""
    channel = scenario.channel.direction("up")
    before = {"snr_db": channel.snr_db, "per": 0.0}
    changes: list[Mapping[str, Any]] = []
    for each, at_s in zip(BREAKS, _BREAKS_AT_S, strict=True):
        key, scale = _KEYS[each.control]
        changes.append({"at_s": at_s, "set": {key: each.value / scale}})
        changes.append({"at_s": at_s + each.seconds, "set": {key: before[each.control] / scale}})
    return changes


def _run(runs: Path) -> dict[str, Kept]:
    """Make the runs below a folder, side by side; return them by their schemes."""
    path = DEMO_SCENARIOS[DEMO_TIER]
    plain = load(path)
    settings = (f"workloads.0.duration_s={_SECONDS}", f"changes={json.dumps(schedule(plain))}")
    scenarios = [
        load(path, (*settings, f"link.scheme={scheme}"), tier=DEMO_TIER, clock="virtual") for scheme in _SCHEMES
    ]
    prepare_clock(scenarios[0])
    found: dict[str, Kept] = {}

    def hooks(scenario: Scenario, folder: RunFolder) -> RunHooks:
        kept = found[scenario.link.scheme] = Kept(scenario, folder.name)
        return RunHooks([kept], kept)

    with bar("making the runs", "s") as told, ThreadPoolExecutor(len(scenarios)) as pool:

        def show(progress: Progress) -> None:
            told(round(progress.elapsed_s), round(_SECONDS))

        for scenario, summary in zip(
            scenarios, pool.map(lambda each: run_once(each, runs, show, hooks), scenarios), strict=True
        ):
            require_intact([summary])
            found[scenario.link.scheme].summary = summary.plain()
    return found


# -- the page ------------------------------------------------------------------------------------------------------


def _draw(runs: Mapping[str, Kept], docs: Path) -> None:
    from playwright.sync_api import sync_playwright

    hub, token = Hub(), secrets.token_urlsafe(24)
    names = {scheme: kept.run for scheme, kept in runs.items()}
    with (
        tempfile.TemporaryDirectory() as none,
        sync_playwright() as playwright,
        serve(create_app(DashboardConfig(hub, Path(none), token)), "127.0.0.1", 0) as served,
        playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS)) as browser,
        _playing(runs, hub) as finish,
    ):
        for picture in PICTURES:
            if picture.ended:
                finish()
            begun = f"{served.url}/?token={token}" if picture.token else f"{served.url}/"
            with _opened(browser, picture, begun + picture.address.format_map(names)) as page:
                page.screenshot(path=docs / picture.name)


@contextmanager
def _playing(runs: Mapping[str, Kept], hub: Hub) -> Iterator[Callable[[], None]]:
    """Play the runs side by side; yields what ends them at once."""
    stop, began = threading.Event(), time.time() - _SECONDS + _LIVE_S
    # the newest one is the page's run A
    threads = [runs[scheme].play(hub, began, stop) for scheme in _SCHEMES]

    def finish() -> None:
        stop.set()
        for thread in threads:
            thread.join()

    try:
        yield finish
    finally:
        finish()


@contextmanager
def _opened(browser: "Browser", picture: Picture, address: str) -> "Iterator[Page]":
    """The page with a picture's view, drawn."""
    width, height = picture.size
    scheme: Any = "dark" if picture.dark else "light"
    with browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme) as window:
        settings = {"fadelab.window": "all", "fadelab.projector": "yes" if picture.projector else "no"}
        for key, value in settings.items():
            window.add_init_script(f"localStorage.setItem({json.dumps(key)}, {json.dumps(value)})")
        page = window.new_page()
        page.goto(address)
        page.locator("html[data-ready]").wait_for(state="attached")
        page.wait_for_timeout(_DRAWN_MS)
        yield page
