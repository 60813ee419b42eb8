"""The live runs, in memory: runs put in what they measure, pages take out what is new.

    run ─► Feed.write ─► inbox ─► Curves ─► Reader.frame ─► page

Read first: `curves.py`.

Rules kept
- A page never makes a run wait: `write` appends to an inbox and wakes who sleeps. What is in there becomes curves when
  a page asks, in the page's thread; when none asks, the writer does it now and then, unless a page is at it.
- Memory is bounded: per curve, per kind of record, and `RUNS` runs that are over; newer ones push them out.
- A page that comes back goes on where it was, as far back as the hub remembers.

All methods may be called from any thread. Left out: what is older than ten minutes; it is in the run's folder.
"""

import math
import re
import secrets
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from dashboard import shapes
from dashboard.charts import offered
from dashboard.control import Controls
from dashboard.curves import Curves
from telemetry.records import RECORD_TYPES, Record
from telemetry.views import PhyView

#: how far back the hub remembers, at a probe interval of 100 ms
RETENTION_S = 600
_POINTS = 10 * RETENTION_S
#: raw records kept of each kind
_RECORDS = 30_000
#: runs remembered that are over
RUNS = 8
#: records that wait for a page before the writer makes curves of them
_INBOX = 2_000
#: how long what controls said of themselves holds
_CONTROLS_S = 0.2
_OVER = "the run is over"
#: what runs are called: names that are good in addresses and for folders
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What a run is, known before its first record. What is not known is empty, or None."""

    #: its id, and its folder's name where it has one
    name: str
    title: str
    scenario: str
    scheme: str
    tier: str
    tcp: str
    seed: int | None
    #: the nodes from left to right; `up` goes to the right
    topology: tuple[str, ...] = ("h1", "ST", "BAS", "h2")


class Feed:
    """One run in the hub: a sink for its records (`telemetry/sinks.py`), and a watcher of its radios."""

    def __init__(self, hub: "Hub", info: RunInfo, controls: Controls | None) -> None:
        self._hub = hub
        self.info = info
        self.controls = controls
        self._lock = threading.Lock()
        self._inbox: deque[Record | str] = deque()
        #: under the lock
        self._curves = Curves(_POINTS)
        self._records: dict[type[Record], deque[Record]] = {kind: deque(maxlen=_RECORDS) for kind in RECORD_TYPES}
        self._messages: deque[tuple[int, str]] = deque(maxlen=100)
        self._described: tuple[float, list[dict[str, Any]]] = -math.inf, []
        self._views: dict[str, PhyView] = {}
        self._epoch_ns: int | None = None
        self._live = True
        self._ended: dict[str, Any] | None = None
        self._eyes = 0

    # -- for the run -----------------------------------------------------------------------------------------

    def begin(self, epoch_ns: int) -> None:
        """Take the Unix time, in ns, of the run's time 0."""
        self._epoch_ns = epoch_ns
        self._hub.stir()

    def write(self, record: Record) -> None:
        """Take one record."""
        self._put(record)

    def close(self) -> None:
        """Take leave: nothing comes any more."""
        self._live = False
        self._hub.stir()

    def show(self, view: PhyView) -> None:
        """Take a look at a receiver; it replaces the one before."""
        self._views[view.link] = view
        self._hub.stir()

    @property
    def watched(self) -> bool:
        """Whether a page shows this run's radios right now."""
        return self._eyes > 0

    def message(self, text: str) -> None:
        """Tell the pages one line."""
        self._put(text)

    def ended(self, summary: Mapping[str, Any] | None, error: str | None) -> None:
        """Take the run's result, or what went wrong."""
        self._ended = {"error": error, "summary": None if summary is None else dict(summary)}
        self.close()

    def _put(self, item: Record | str) -> None:
        self._inbox.append(item)
        if len(self._inbox) >= _INBOX and self._lock.acquire(blocking=False):
            try:
                self._digest()
            finally:
                self._lock.release()
        self._hub.stir()

    # -- for the pages ---------------------------------------------------------------------------------------

    @property
    def live(self) -> bool:
        """Whether more may come."""
        return self._live

    def describe(self) -> dict[str, Any]:
        """Return what the run is and how it stands (RunInfo on the wire)."""
        return asdict(self.info) | {
            "epoch_ns": self._epoch_ns,
            "live": self._live,
            "ended": self._ended,
            "controlled": self.controls is not None and self._live,
            "charts": list(offered(self.info.tier)),
        }

    def describe_controls(self, *, fresh: bool = False) -> list[dict[str, Any]]:
        """Return the run's controls; those of a run that is over cannot be changed."""
        if self.controls is None:
            return []
        at, known = self._described
        if self._live and (fresh or time.monotonic() >= at + _CONTROLS_S):
            known = [asdict(control) for control in self.controls.describe()]
            self._described = time.monotonic(), known
        return known if self._live else [control | {"why_not": control["why_not"] or _OVER} for control in known]

    def records(self, kind: type[Record]) -> list[Record]:
        """Return the records of one kind, as far back as they are remembered."""
        with self.curves():
            return list(self._records[kind])

    @contextmanager
    def curves(self) -> Iterator[Curves]:
        """Lend the run's curves, up to date; nobody else touches them meanwhile."""
        with self._lock:
            self._digest()
            yield self._curves

    def messages(self, after: int) -> list[str]:
        """Return the messages of batches after one; while the curves are lent."""
        return [text for batch, text in self._messages if batch > after]

    def views(self) -> dict[str, PhyView]:
        """Return the newest look at each receiver."""
        return dict(self._views)

    def watch(self, by: int) -> None:
        """Count pages that show this run's radios."""
        with self._lock:
            self._eyes += by
        self._hub.stir()

    def _digest(self) -> None:
        """Make curves of what is in the inbox; under the lock."""
        if not self._inbox:
            return
        records = []
        for _ in range(len(self._inbox)):
            item = self._inbox.popleft()
            if isinstance(item, str):
                self._messages.append((self._curves.batch + 1, item))
            else:
                records.append(item)
                self._records[type(item)].append(item)
        self._curves.take(records)


class Hub:
    """The runs that pages can watch."""

    def __init__(self) -> None:
        #: tells this hub's event ids from those of one before it
        self.nonce = secrets.token_hex(4)
        self._feeds: dict[str, Feed] = {}
        self._news = threading.Condition()
        self._version = 0

    def open(self, info: RunInfo, controls: Controls | None = None) -> Feed:
        """Make a run visible; it takes the place of one of the same name. Raises ValueError when that is no `NAME`."""
        if not NAME.fullmatch(info.name):
            raise ValueError("a run is called by letters, digits, dots and dashes")
        feed = Feed(self, info, controls)
        with self._news:
            self._feeds.pop(info.name, None)
            self._feeds[info.name] = feed
            over = [name for name, other in self._feeds.items() if not other.live]
            for name in over[: max(len(over) - RUNS, 0)]:
                del self._feeds[name]
        self.stir()
        return feed

    def find(self, name: str) -> Feed | None:
        """Return a run, or None when the hub does not know it."""
        return self._feeds.get(name)

    def runs(self) -> list[dict[str, Any]]:
        """Return what all runs are, the newest first."""
        with self._news:
            feeds = list(self._feeds.values())
        return [feed.describe() for feed in reversed(feeds)]

    def stir(self) -> None:
        """Wake everybody who waits."""
        with self._news:
            self._version += 1
            self._news.notify_all()

    def wait(self, version: int, timeout_s: float) -> int:
        """Wait until there is something newer than a version, but not longer; return the present version."""
        with self._news:
            self._news.wait_for(lambda: self._version != version, timeout_s)
            return self._version


class Reader:
    """What one page has seen of some runs. A context manager: while it is open, the runs know they are watched."""

    def __init__(
        self, hub: Hub, names: Sequence[str], *, history_s: float, views: bool, seen: Mapping[str, int] | None = None
    ) -> None:
        self._hub = hub
        self._history_s = history_s
        self._wants_views = views
        self._runs = {name: _Seen(batch=(seen or {}).get(name, 0)) for name in dict.fromkeys(names)}

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        for run in self._runs.values():
            self._look_at(run, None)

    @property
    def seen(self) -> dict[str, int]:
        """The newest batch of each run that was read."""
        return {name: run.batch for name, run in self._runs.items()}

    def frame(self) -> dict[str, Any] | None:
        """Return what is new, or None."""
        found = {name: new for name, run in self._runs.items() if (new := self._new(name, run))}
        return {"now_ns": time.time_ns(), "runs": found} if found else None

    def _look_at(self, run: "_Seen", feed: Feed | None) -> None:
        if run.feed is feed:
            return
        if run.feed is not None:
            if self._wants_views:
                run.feed.watch(-1)
            run.batch = 0
            run.told.clear()
            run.views.clear()
        if feed is not None and self._wants_views:
            feed.watch(1)
        run.feed = feed

    def _new(self, name: str, run: "_Seen") -> dict[str, Any]:
        feed = self._hub.find(name)
        self._look_at(run, feed)
        if feed is None:
            return {}
        new: dict[str, Any] = {}
        with feed.curves() as curves:
            fresh = run.batch == 0 or run.batch > curves.batch
            after = 0 if fresh else run.batch
            since_s = curves.newest_s - self._history_s if fresh else -math.inf
            if curves.batch > after:
                new = {
                    "series": shapes.series(curves, after, since_s),
                    "marks": shapes.marks(curves.marks(after, since_s)),
                    "notes": shapes.notes(curves.notes(after, since_s)),
                    "messages": feed.messages(after),
                    "links": curves.links(),
                    "hidden": curves.hidden(),
                }
            run.batch = curves.batch
        new = {key: value for key, value in new.items() if value}
        if fresh and new:
            new["fresh"] = True
        for key, now in (("info", feed.describe()), ("controls", feed.describe_controls())):
            if now != run.told.get(key):
                run.told[key] = new[key] = now
        if self._wants_views:
            views = {link: view for link, view in feed.views().items() if run.views.get(link) is not view}
            if views:
                run.views.update(views)
                new["views"] = {link: shapes.view(view) for link, view in views.items()}
        return new


@dataclass(slots=True)
class _Seen:
    """How far a page has read one run."""

    batch: int
    feed: Feed | None = None
    #: what was told last
    told: dict[str, Any] = field(default_factory=dict)
    views: dict[str, PhyView] = field(default_factory=dict)
