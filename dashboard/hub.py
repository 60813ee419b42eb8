"""The live runs, in memory: runs write records, pages read new data.

    run ─► Feed.write ─► inbox ─► Curves ─► Reader.frame ─► page

Read first: `curves.py`.

Rules kept
- A page never makes a run wait: `write` appends to an inbox and wakes waiting pages. A page's thread adds the inbox to
  the curves when the page reads. Without pages the writer does so from time to time.
- Memory is bounded: per curve, per kind of record, and to `RUNS` ended runs; the oldest go.
- A page that reconnects continues at its last data, as far back as the hub remembers.

All methods may be called from any thread. Left out: data older than ten minutes, which is in the run's folder.
"""

import math
import secrets
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from typing_extensions import override

from common.closing import Closing
from dashboard import shapes
from dashboard.charts import offered
from dashboard.commentary import Comment, comment_on, scene_of
from dashboard.control import Controls
from dashboard.curves import Curves
from dashboard.run_folders import NAME
from telemetry.records import RECORD_TYPES, Record
from telemetry.views import PhyView

#: time that the hub remembers, at a probe interval of 100 ms
RETENTION_S = 600
_POINTS = 10 * RETENTION_S
#: raw records kept of each kind
_RECORDS = 30_000
#: most ended runs that the hub remembers
RUNS = 8
#: inbox size at which the writer adds the records to the curves
_INBOX = 2_000
#: lifetime of a cached description of the controls
_CONTROLS_S = 0.2
#: least time between two comments, s
_COMMENT_S = 0.5
_OVER = "the run is over"


@dataclass(frozen=True, slots=True)
class RunInfo:
    """Properties of a run, known before its first record. Unknown ones are empty or None."""

    #: the run's id, and the name of its folder, if any
    name: str
    title: str
    scenario: str
    scheme: str
    tier: str
    tcp: str
    seed: int | None
    #: whether the link has radios, so that there are views and figures of them
    radio: bool = True
    #: the nodes from left to right; `up` goes to the right
    topology: tuple[str, ...] = ("h1", "ST", "BAS", "h2")


class Feed:
    """One run in the hub: a sink for its records (`telemetry/sinks.py`), and for views of its radios."""

    def __init__(self, hub: "Hub", info: RunInfo, controls: Controls | None) -> None:
        self._hub = hub
        self.info = info
        self.controls = controls
        self._lock = threading.Lock()
        self._inbox: deque[Record] = deque()
        #: under the lock
        self._curves = Curves(_POINTS)
        self._records: dict[type[Record], deque[Record]] = {kind: deque(maxlen=_RECORDS) for kind in RECORD_TYPES}
        #: the kinds of records so far; replaced, never changed
        self._kinds: frozenset[type[Record]] = frozenset()
        self._described: tuple[float, list[dict[str, Any]]] = -math.inf, []
        self._views: dict[str, PhyView] = {}
        self._epoch_ns: int | None = None
        #: whether more records may come
        self.live = True
        self._ended: dict[str, Any] | None = None
        self._watchers = 0

    # -- for the run -----------------------------------------------------------------------------------------

    def begin(self, epoch_ns: int) -> None:
        """Take the Unix time, in ns, of the run's time 0."""
        self._epoch_ns = epoch_ns
        self._hub.stir()

    def close(self) -> None:
        """End: no more records come."""
        self.live = False
        self._hub.stir()

    def show(self, view: PhyView) -> None:
        """Take a view of a receiver; it replaces the previous one."""
        self._views[view.link] = view
        self._hub.stir()

    @property
    def watched(self) -> bool:
        """Whether a page shows this run's radios at present."""
        return self._watchers > 0

    def ended(self, summary: Mapping[str, Any] | None, error: str | None) -> None:
        """Take the run's result or its error."""
        self._ended = {"error": error, "summary": None if summary is None else dict(summary)}
        self.close()

    def write(self, record: Record) -> None:
        """Take one record."""
        self._inbox.append(record)
        if len(self._inbox) >= _INBOX and self._lock.acquire(blocking=False):
            try:
                self._update_curves()
            finally:
                self._lock.release()
        self._hub.stir()

    # -- for the pages ---------------------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """Return the run's properties and state (RunInfo in README.md)."""
        return asdict(self.info) | {
            "epoch_ns": self._epoch_ns,
            "live": self.live,
            "ended": self._ended,
            "controlled": self.controls is not None and self.live,
            "charts": list(offered(self._kinds, radio=self.info.radio)),
        }

    def describe_controls(self, *, fresh: bool = False) -> list[dict[str, Any]]:
        """Return the run's controls; those of an ended run cannot be changed."""
        if self.controls is None:
            return []
        at, known = self._described
        if self.live and (fresh or time.monotonic() >= at + _CONTROLS_S):
            known = [asdict(control) for control in self.controls.describe()]
            self._described = time.monotonic(), known
        return known if self.live else [control | {"why_not": control["why_not"] or _OVER} for control in known]

    def records(self, kind: type[Record]) -> list[Record]:
        """Return the remembered records of one kind."""
        with self.curves():
            return list(self._records[kind])

    @contextmanager
    def curves(self) -> Iterator[Curves]:
        """Lock and return the run's curves, up to date."""
        with self._lock:
            self._update_curves()
            yield self._curves

    def views(self) -> dict[str, PhyView]:
        """Return the newest view of each receiver."""
        return dict(self._views)

    def watch(self, by: int) -> None:
        """Count pages that show this run's radios."""
        with self._lock:
            self._watchers += by
        self._hub.stir()

    def _update_curves(self) -> None:
        """Add the inbox to the curves; under the lock."""
        if not self._inbox:
            return
        records = [self._inbox.popleft() for _ in range(len(self._inbox))]
        for record in records:
            self._records[type(record)].append(record)
        if not self._kinds.issuperset(kinds := {type(record) for record in records}):
            self._kinds |= kinds
        self._curves.take(records)


class Hub:
    """The runs that pages can watch."""

    def __init__(self) -> None:
        #: distinguishes event ids of this hub from those of an earlier one
        self.nonce = secrets.token_hex(4)
        self._feeds: dict[str, Feed] = {}
        self._news = threading.Condition()
        self._version = 0

    def open(self, info: RunInfo, controls: Controls | None = None) -> Feed:
        """Add a run; it replaces one of the same name. Raises ValueError when the name does not match `NAME`."""
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
        """Return a run, or None."""
        return self._feeds.get(name)

    def runs(self) -> list[dict[str, Any]]:
        """Describe all runs, the newest first."""
        with self._news:
            feeds = list(self._feeds.values())
        return [feed.describe() for feed in reversed(feeds)]

    def stir(self) -> None:
        """Wake all waiting threads."""
        with self._news:
            self._version += 1
            self._news.notify_all()

    def wait(self, version: int, timeout_s: float) -> int:
        """Wait for a change after `version`, up to the timeout; return the present version."""
        with self._news:
            self._news.wait_for(lambda: self._version != version, timeout_s)
            return self._version


class Reader(Closing):
    """Reads some runs for one page. A context manager: while it is open, the runs count as watched."""

    def __init__(
        self,
        hub: Hub,
        names: Sequence[str],
        *,
        history_s: float,
        views: bool,
        comments: bool = False,
        seen: Mapping[str, int] | None = None,
    ) -> None:
        self._hub = hub
        self._history_s = history_s
        self._wants_views = views
        self._wants_comments = comments
        self._comment: Comment | None = None
        self._commented_at = -math.inf
        self._runs = {name: _Seen(batch=(seen or {}).get(name, 0)) for name in dict.fromkeys(names)}

    @override
    def close(self) -> None:
        for run in self._runs.values():
            self._attach(run, None)

    @property
    def seen(self) -> dict[str, int]:
        """The newest batch of each run that was read."""
        return {name: run.batch for name, run in self._runs.items()}

    def frame(self) -> dict[str, Any] | None:
        """Return the data since the last call, or None."""
        found = {name: new for name, run in self._runs.items() if (new := self._new(name, run))}
        if not found and not self._comment_due():
            return None
        comment = self._new_comment()
        if not found and not comment:
            return None
        return {"now_ns": time.time_ns(), "runs": found} | comment

    def _comment_due(self) -> bool:
        return self._wants_comments and time.monotonic() >= self._commented_at + _COMMENT_S

    def _new_comment(self) -> dict[str, Any]:
        """Return the sentence on the runs when it has changed."""
        if not self._comment_due():
            return {}
        self._commented_at = time.monotonic()
        scenes = []
        for name in self._runs:
            if (feed := self._hub.find(name)) is not None:
                with feed.curves() as curves:
                    scenes.append(scene_of(feed.describe(), curves))
        comment = comment_on(scenes)
        if comment == self._comment:
            return {}
        self._comment = comment
        return {"comment": asdict(comment)}

    def _attach(self, run: "_Seen", feed: Feed | None) -> None:
        if run.feed is feed:
            return
        if run.feed is not None:
            if self._wants_views:
                run.feed.watch(-1)
            run.batch = 0
            run.sent.clear()
            run.views.clear()
        if feed is not None and self._wants_views:
            feed.watch(1)
        run.feed = feed

    def _new(self, name: str, run: "_Seen") -> dict[str, Any]:
        feed = self._hub.find(name)
        self._attach(run, feed)
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
                    "links": curves.links(),
                    "hidden": curves.hidden(),
                }
            run.batch = curves.batch
        new = {key: value for key, value in new.items() if value}
        if fresh and new:
            new["fresh"] = True
        for key, now in (("info", feed.describe()), ("controls", feed.describe_controls())):
            if now != run.sent.get(key):
                run.sent[key] = new[key] = now
        if self._wants_views:
            views = {link: view for link, view in feed.views().items() if run.views.get(link) is not view}
            if views:
                run.views.update(views)
                new["views"] = {link: shapes.view(view) for link, view in views.items()}
        return new


@dataclass(slots=True)
class _Seen:
    """The data of one run that a page has read."""

    batch: int
    feed: Feed | None = None
    #: the info and the controls sent last
    sent: dict[str, Any] = field(default_factory=dict)
    views: dict[str, PhyView] = field(default_factory=dict)
