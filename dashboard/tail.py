"""Runs of other programs: copies their records from the database into the hub.

Read first: `telemetry/influx/tail.py`.

Rules kept
- A run of this program is already in the hub, and is not copied.
- The database does not have a run's time 0; the time of the first record is used.
- A run without records for `QUIET_S` has ended; with further records it begins again.
- An unreachable database is queried again until it answers.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from dashboard.control import Controls
from dashboard.hub import Feed, Hub, RunInfo
from dashboard.run_folders import NAME
from telemetry.influx import InfluxError, InfluxTail
from telemetry.influx.tail import Arrival
from telemetry.records import LinkRecord

POLL_S = 0.2
QUIET_S = 10.0
_AWAY_S = 2.0
#: most runs of other programs at once
_RUNS = 16


class Tail:
    """Feeds the hub from a thread; a context manager.

    `controls` returns the controls of a new run from its tags, or None; `radio` whether its link has radios.
    """

    def __init__(
        self,
        hub: Hub,
        tail: InfluxTail,
        controls: Callable[[dict[str, str]], Controls | None] = lambda tags: None,
        radio: Callable[[dict[str, str]], bool] = lambda tags: True,
        *,
        quiet_s: float = QUIET_S,
    ) -> None:
        self._hub = hub
        self._tail = tail
        self._controls = controls
        self._radio = radio
        self._quiet_s = quiet_s
        self._runs: dict[str, _Run] = {}
        #: runs opened here that the hub still remembers
        self._opened: dict[str, Feed] = {}
        #: why no data comes, in one line; empty: no problem
        self.problem = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="tail")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        for run in self._runs.values():
            run.feed.close()

    def _follow(self) -> None:
        wait_s = 0.0
        while not self._stop.wait(wait_s):
            try:
                arrivals = self._tail.poll()
            except InfluxError as error:
                self.problem, wait_s = str(error), _AWAY_S
            else:
                self.problem, wait_s = "", POLL_S
                self._pass_on(arrivals)

    def _pass_on(self, arrivals: list[Arrival]) -> None:
        now = time.monotonic()
        schemes = {
            arrival.tags.get("run"): arrival.record.scheme
            for arrival in arrivals
            if isinstance(arrival.record, LinkRecord)
        }
        for arrival in arrivals:
            name = arrival.tags.get("run", "")
            run = self._runs.get(name) or self._meet(arrival, schemes.get(name, ""))
            if run is not None:
                run.heard_at = now
                run.feed.write(replace(arrival.record, time_ns=arrival.time_ns - run.epoch_ns))
        for name in [name for name, run in self._runs.items() if now > run.heard_at + self._quiet_s]:
            self._runs.pop(name).feed.close()

    def _meet(self, arrival: Arrival, scheme: str) -> "_Run | None":
        """Open a run in the hub, unless it is a run of this program."""
        tags = arrival.tags
        name = tags.get("run", "")
        known = self._hub.find(name)
        of_this_program = known is not None and known is not self._opened.get(name)
        if of_this_program or not NAME.fullmatch(name) or len(self._runs) >= _RUNS:
            return None
        scenario = tags.get("scenario", "")
        title = ", ".join(word for word in (scenario or name, scheme) if word)
        info = RunInfo(name, title, scenario, scheme, tags.get("tier", ""), tcp="", seed=None, radio=self._radio(tags))
        feed = self._hub.open(info, self._controls(tags))
        feed.begin(arrival.time_ns)
        self._opened = {name: old for name, old in self._opened.items() if self._hub.find(name) is old} | {name: feed}
        run = self._runs[name] = _Run(feed, arrival.time_ns)
        return run


@dataclass(slots=True)
class _Run:
    """A run of another program."""

    feed: Feed
    epoch_ns: int
    heard_at: float = 0.0
