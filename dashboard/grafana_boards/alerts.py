"""Grafana's alert rules, as a provisioning file: records that stop, a session that is lost, little goodput.

Read first: Grafana's documentation, "Use configuration files to provision alerting resources", and classic conditions.

Rules kept
- A rule is of the runs that go on, all together: the list of runs has "now" as the end of those.
- Queries keep to what `influxql.py` does, and look at the last minute or less.
- Conditions are Grafana's classic ones, which 9.4 and 12 evaluate alike, and which can ask whether there is no value.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.grafana_boards.influxql import DATASOURCE, SHORT_MS
from telemetry.records import FlowRecord, LinkRecord, RunRecord

#: how often Grafana looks
INTERVAL = "10s"
#: below this goodput (Mbit/s) of all flows over `GOODPUT_S` there is an alert
LOW_MBPS, GOODPUT_S = 0.05, 60

_TIME = "$timeFilter"


@dataclass(frozen=True, slots=True)
class Condition:
    """A query over the last seconds, and which of its newest values fulfils the condition."""

    query: str
    seconds: int
    #: Grafana's evaluator: "gt", "lt", or "no_value"
    kind: str
    bound: float | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """An alert rule; all conditions hold for `for_s` seconds."""

    uid: str
    title: str
    summary: str
    conditions: Sequence[Condition]
    for_s: int


def _live(seconds: int) -> Condition:
    """Whether a run goes on that began within a day and before the last seconds."""
    asked = f'SELECT count("seed") FROM "{RunRecord.measurement}" WHERE "ends" = \'now\' AND time > now() - 1d'
    return Condition(f"{asked} AND time < now() - {seconds}s", seconds, "gt", 0)


def _goodput() -> str:
    """Mbit/s of all flows of all runs."""
    counter = "bytes_received"
    each = f'SELECT non_negative_difference("{counter}") AS "part", elapsed("{counter}", 1ms) AS "whole"'
    each += f' FROM "{FlowRecord.measurement}" WHERE {_TIME} GROUP BY "run", "host", "flow"'
    sums = f'SELECT sum("part") AS "part", sum("whole") AS "whole" FROM ({each})'
    sums += f' WHERE {_TIME} GROUP BY "run", "host", "flow"'
    # bytes in a millisecond, as a float first
    rate = f'SELECT 0.008 * "part" / "whole" AS "one" FROM ({sums}) WHERE "whole" >= {SHORT_MS}'
    return f'SELECT sum("one") FROM ({rate} GROUP BY "run", "host", "flow") WHERE {_TIME}'


RULES = (
    Rule(
        "fadelab-records-stopped",
        "Records have stopped",
        "A run goes on, but the database has had no record of a link for 30 s.",
        (
            _live(30),
            Condition(f'SELECT count("frames") FROM "{LinkRecord.measurement}" WHERE {_TIME}', 30, "no_value"),
        ),
        10,
    ),
    Rule(
        "fadelab-session-lost",
        "A session is lost",
        "For half a minute a station has told that it has no session with its peer: no packet can cross.",
        (
            Condition(
                f'SELECT count("frames") FROM "{LinkRecord.measurement}" WHERE "established" = false AND {_TIME}',
                10,
                "gt",
                0,
            ),
        ),
        # a run's first records, and a station that starts anew, have none for a moment
        30,
    ),
    Rule(
        "fadelab-goodput-low",
        "Little goodput",
        f"All flows together have had less than {LOW_MBPS} Mbit/s for a minute, while a run goes on.",
        (_live(GOODPUT_S), Condition(_goodput(), GOODPUT_S, "lt", LOW_MBPS)),
        30,
    ),
)


def alerting() -> str:
    """Return the provisioning file: JSON, which is YAML, too."""
    group = {
        "orgId": 1,
        "name": "fadelab",
        "folder": "fadelab",
        "interval": INTERVAL,
        "rules": [_rule(rule) for rule in RULES],
    }
    head = "# Written by ./fadelab docs --write; docs/grafana.md says what the rules are.\n"
    return head + json.dumps({"apiVersion": 1, "groups": [group]}, indent=2) + "\n"


def _rule(rule: Rule) -> dict[str, Any]:
    letters = "ABC"[: len(rule.conditions)]
    queries = [_query(letter, each) for letter, each in zip(letters, rule.conditions, strict=True)]
    conditions = [
        {
            "type": "query",
            "query": {"params": [letter]},
            "reducer": {"type": "last", "params": []},
            "evaluator": {"type": each.kind, "params": [] if each.bound is None else [each.bound]},
            "operator": {"type": "and"},
        }
        for letter, each in zip(letters, rule.conditions, strict=True)
    ]
    verdict = {
        "refId": "Z",
        "relativeTimeRange": {"from": 0, "to": 0},
        "datasourceUid": "__expr__",
        "model": {
            "refId": "Z",
            "type": "classic_conditions",
            "datasource": {"type": "__expr__", "uid": "__expr__"},
            "conditions": conditions,
        },
    }
    return {
        "uid": rule.uid,
        "title": rule.title,
        "condition": "Z",
        "data": [*queries, verdict],
        "for": f"{rule.for_s}s",
        # without any run there is nothing to tell
        "noDataState": "OK",
        "execErrState": "Error",
        "annotations": {"summary": rule.summary},
        "labels": {"program": "fadelab"},
        "isPaused": False,
    }


def _query(letter: str, condition: Condition) -> dict[str, Any]:
    return {
        "refId": letter,
        "relativeTimeRange": {"from": condition.seconds, "to": 0},
        "datasourceUid": DATASOURCE,
        "model": {
            "refId": letter,
            "datasource": {"type": "influxdb", "uid": DATASOURCE},
            "query": condition.query,
            "rawQuery": True,
            "resultFormat": "time_series",
        },
    }
