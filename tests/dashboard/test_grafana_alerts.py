"""Grafana's alert rules on a real InfluxDB: each is told of its fault, and of nothing else."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboard.grafana_boards.alerts import RULES
from dashboard.grafana_boards.boards import files
from dashboard.grafana_boards.influxql import DATASOURCE
from telemetry.influx import Influx, InfluxSink
from telemetry.records import FlowRecord, LinkRecord, Record, RunRecord
from tests.harness.grafana import SECOND, database
from tests.harness.records import recorded

BEGAN_S = 200
[GROUP] = yaml.safe_load(files()["provisioning/alerting/fadelab.yaml"])["groups"]


def records(until_s: int, lost_s: int, idle_s: int) -> Iterator[Record]:
    """A run of 1 Mbit/s that began 200 s ago; from some second on it has no records, no session, or no goodput."""
    for second in range(1, until_s):
        at, carried = second * SECOND, 125_000 * min(second, idle_s)
        yield recorded(FlowRecord, time_ns=at, host="h2", flow="bulk", bytes_received=carried)
        for link in ("up", "down"):
            yield recorded(LinkRecord, time_ns=at, link=link, frames=second, established=second < lost_s)


def firing(influx: Influx) -> set[str]:
    """Evaluate the rules as Grafana's classic conditions do: each by the last value of its query."""
    return {rule["uid"] for rule in GROUP["rules"] if all(_conditions(influx, rule))}


def _conditions(influx: Influx, rule: dict[str, Any]) -> Iterator[bool]:
    *queries, verdict = rule["data"]
    assert (rule["condition"], verdict["datasourceUid"]) == (verdict["refId"], "__expr__")
    asked = {query["refId"]: query for query in queries}
    for condition in verdict["model"]["conditions"]:
        query = asked.pop(condition["query"]["params"][0])
        assert query["datasourceUid"] == DATASOURCE
        span = query["relativeTimeRange"]
        text = query["model"]["query"].replace("$timeFilter", f"time > now() - {span['from']}s and time < now()")
        assert "$" not in text
        values = [row[1] for series in influx.query(text) for row in series.values if row[1] is not None]
        yield _fulfilled(condition["evaluator"], values)
    assert not asked


def _fulfilled(evaluator: dict[str, Any], values: list[float]) -> bool:
    if evaluator["type"] == "no_value":
        return not values
    [bound] = evaluator["params"]
    return bool(values) and {"gt": values[-1] > bound, "lt": values[-1] < bound}[evaluator["type"]]


@pytest.mark.parametrize(
    ("until_s", "lost_s", "idle_s", "over", "alerts"),
    [
        (BEGAN_S, BEGAN_S, BEGAN_S, False, set()),
        (BEGAN_S - 90, BEGAN_S, BEGAN_S, False, {"fadelab-records-stopped"}),
        (BEGAN_S, BEGAN_S - 30, BEGAN_S, False, {"fadelab-session-lost"}),
        (BEGAN_S, BEGAN_S, BEGAN_S - 90, False, {"fadelab-goodput-low"}),
        (BEGAN_S - 90, BEGAN_S, BEGAN_S - 120, True, set()),
    ],
    ids=["all well", "no records", "no session", "no goodput", "over"],
)
def test_an_alert_tells_of_its_fault_alone(
    until_s: int, lost_s: int, idle_s: int, over: bool, alerts: set[str], tmp_path: Path
) -> None:
    with database(tmp_path / "influxdb") as influx:
        sink = InfluxSink(influx, {"run": "a-run", "tier": "vusrp", "scenario": "sample"}, tmp_path, flush_s=30)
        sink.begin(time.time_ns() - BEGAN_S * SECOND)
        sink.write(recorded(RunRecord, scheme="slacp", seed=1, begins="0", ends="1" if over else "now"))
        for record in records(until_s, lost_s, idle_s):
            sink.write(record)
        sink.close()
        assert firing(influx) == alerts


def test_rules_have_what_grafana_asks_of_them() -> None:
    assert (GROUP["orgId"], GROUP["folder"], GROUP["interval"]) == (1, "fadelab", "10s")
    assert len({rule["uid"] for rule in GROUP["rules"]}) == len(RULES) == 3
    for rule in GROUP["rules"]:
        # Grafana looks at whole intervals only
        assert int(rule["for"].removesuffix("s")) % 10 == 0
        assert rule["noDataState"] in {"NoData", "OK", "Alerting"}
        assert rule["annotations"]["summary"]
