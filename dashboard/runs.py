"""Access to a run in the hub, in its folder, or in both.

The data of a live run comes from the hub; that of an ended run from its folder, if any, which is complete.
"""

from collections.abc import Mapping
from typing import Any

from dashboard import exports
from dashboard.auth import Refused
from dashboard.control import Controls
from dashboard.curves import Picture
from dashboard.hub import Feed, Hub
from dashboard.store import Store, StoreError
from telemetry.records import Record


class Runs:
    """The runs of a hub and a store. Every method raises StoreError for an unknown name."""

    def __init__(self, hub: Hub, store: Store) -> None:
        self._hub = hub
        self._store = store

    def info(self, name: str) -> dict[str, Any]:
        """Return the run's properties and state (RunInfo in README.md)."""
        feed = self._present(name)
        info: dict[str, Any] = self._store.detail(name)["info"] if feed is None else feed.describe()
        return info

    def detail(self, name: str) -> dict[str, Any]:
        """Return the details of a run that are text."""
        feed = self._hub.find(name)
        if feed is None or self._store.find(name) is not None:
            found = self._store.detail(name)
        else:
            found = {"manifest": None, "summary": self.summary(name), "scenario": None, "files": [], "problem": ""}
        if feed is not None and (feed.live or "info" not in found):
            found |= {"info": feed.describe(), "problem": ""}
        return found

    def picture(self, name: str) -> Picture:
        """Return the data to draw."""
        feed = self._present(name)
        if feed is None:
            return self._store.picture(name)
        with feed.curves() as curves:
            return curves.picture()

    def summary(self, name: str) -> Mapping[str, Any] | None:
        """Return the result, or None."""
        found = self.info(name)["ended"]
        summary: Mapping[str, Any] | None = found["summary"] if found else None
        return summary

    def scenario(self, name: str) -> dict[str, Any]:
        """Return the scenario; for a run without a folder, only the properties in the hub."""
        if self._store.find(name) is not None:
            return self._store.scenario(name)
        info = self.info(name)
        return {"name": info["scenario"], "tier": info["tier"], "tcp": info["tcp"], "link": {"scheme": info["scheme"]}}

    def parquet(self, name: str, kind: type[Record]) -> bytes:
        """Return the Parquet file of the records of one kind. Raises StoreError also when there are none."""
        feed = self._present(name)
        if feed is None:
            return self._store.parquet(name, kind.measurement).read_bytes()
        records = feed.records(kind)
        if not records:
            raise StoreError(f"the run has no {kind.measurement} records so far")
        info = feed.describe()
        tags = {"run": name, "tier": info["tier"], "scenario": info["scenario"]}
        return exports.to_parquet(records, tags, info["epoch_ns"])

    def steered(self, name: str) -> tuple[Feed, Controls]:
        """Return a run with its controls. Refuses a run without controls."""
        feed = self._hub.find(name)
        if feed is None:
            self._store.folder(name)
        if feed is None or not feed.live:
            raise Refused(409, "the run is over")
        if feed.controls is None:
            raise Refused(409, "this run cannot be steered from here")
        return feed, feed.controls

    def _present(self, name: str) -> Feed | None:
        """Return the run in the hub, if its data comes from there."""
        feed = self._hub.find(name)
        return feed if feed is not None and (feed.live or self._store.find(name) is None) else None
