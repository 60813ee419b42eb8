"""What Grafana would do with a board, done by hand: put its queries together and ask a real InfluxDB.

Variables come from their own queries, one after the other; then the time range and the interval go in.
"""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboard.grafana_boards.boards import OF_RUN, files
from telemetry.influx import Influx, InfluxServer, InfluxSink
from telemetry.records import CampaignPointRecord, CampaignRecord, CampaignRunRecord, Record, RunRecord
from tests.harness.records import full, recorded

BOARDS: dict[str, dict[str, Any]] = {
    Path(name).stem: json.loads(text) for name, text in files().items() if name.endswith(".json")
}
#: the boards of one run
OF_RUN_BOARDS = [uid.removeprefix("fadelab-") for uid in OF_RUN]

MS = 1_000_000
SECOND = 1_000_000_000


@contextmanager
def database(folder: Path) -> Iterator[Influx]:
    with InfluxServer(folder, port=0) as server:
        influx = Influx(server.url)
        influx.create_database(retention_days=36500)
        yield influx


@dataclass(frozen=True)
class Filled:
    """A run in a database, and when it was (Unix, ms)."""

    influx: Influx
    run: str
    from_ms: int
    to_ms: int

    def variables(self, board: dict[str, Any]) -> dict[str, list[str]]:
        """The board's variables: of this run, and otherwise all there is."""
        chosen: dict[str, list[str]] = {}
        for variable in board["templating"]["list"]:
            query = self.interpolate(variable["query"], chosen)
            found = sorted({row[1] for series in self.influx.query(query) for row in series.values})
            if variable["name"] == "other":
                assert self.run not in found
                # of one run alone, every figure is there twice
                found = [self.run]
            if variable["name"] in ("run", "runs"):
                assert self.run in found
                found = [self.run]
            assert found, query
            chosen[variable["name"]] = found
        return chosen

    def interpolate(
        self, query: str, chosen: dict[str, list[str]], interval: str = "1s", time_ms: tuple[int, int] | None = None
    ) -> str:
        """Put values for variables and macros into a query; the time range is that of the run unless said."""
        from_ms, to_ms = time_ms or (self.from_ms, self.to_ms)
        for name, values in chosen.items():
            escaped = [re.sub(r"[\\^$*+?.()|[\]{}/]", r"\\\g<0>", value) for value in values]
            query = query.replace(f"${{{name}:regex}}", escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})")
        query = query.replace("$timeFilter", f"time >= {from_ms}ms and time <= {to_ms}ms")
        query = query.replace("$__interval", interval)
        assert "$" not in query.replace("$/", ""), query
        return query

    def rows(
        self, query: str, board: dict[str, Any], interval: str = "1s", time_ms: tuple[int, int] | None = None
    ) -> list[tuple[dict[str, str], list[Any]]]:
        """Every series of a query's answer: its tags and its values, the first of each row after the time.

        Series without a value are left out: Grafana draws nothing of them.
        """
        answer = self.influx.query(self.interpolate(query, self.variables(board), interval, time_ms))
        found = [(series.tags, [row[1] for row in series.values]) for series in answer]
        return [(tags, values) for tags, values in found if any(value is not None for value in values)]


def asking(board: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def panel_of(board: str, title: str) -> dict[str, Any]:
    [panel] = [panel for panel in asking(BOARDS[board]) if panel["title"] == title]
    return panel


#: panels of two runs that begin at zero
FROM_ZERO = [panel for panel in asking(BOARDS["compare"]) if panel["type"] == "xychart"]


def targets(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for panel in asking(board):
        yield from panel["targets"]
    for annotation in board["annotations"]["list"]:
        yield annotation["target"]


def keep(influx: Influx, run: str, epoch_ns: int, records: Iterable[Record], spool: Path) -> Filled:
    sink = InfluxSink(influx, {"run": run, "tier": "vusrp", "scenario": "sample"}, spool, flush_s=30)
    sink.begin(epoch_ns)
    begins, last_ns = str(epoch_ns // MS), 0
    sink.write(recorded(RunRecord, scheme="slacp", tcp="cubic", seed=1, begins=begins, ends="now"))
    for record in records:
        sink.write(record)
        last_ns = max(last_ns, record.time_ns)
    ends_ms = (epoch_ns + last_ns) // MS + 1
    whole = {"goodput_bps": 1.6e6, "duration_s": last_ns / SECOND}
    sink.write(recorded(RunRecord, scheme="slacp", tcp="cubic", seed=1, begins=begins, ends=str(ends_ms), **whole))
    sink.close()
    assert sink.status().waiting == 0
    return Filled(influx, run, epoch_ns // MS, ends_ms)


def keep_campaign(influx: Influx, campaign: str, epoch_ns: int, spool: Path) -> None:
    """Write a campaign with one point and one run."""
    sink = InfluxSink(influx, {"campaign": campaign}, spool, flush_s=30)
    sink.begin(epoch_ns)
    for kind in (CampaignRecord, CampaignPointRecord, CampaignRunRecord):
        sink.write(full(kind, time_ns=0))
    sink.close()
    assert sink.status().waiting == 0
