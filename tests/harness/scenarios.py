"""Hand-made scenarios and results."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from testbed.results.summary import FlowSummary, LinkSummary, Summary
from testbed.scenario.file import validate
from testbed.scenario.schema import Scenario


def raw_scenario() -> dict[str, Any]:
    return {
        "name": "sample",
        "channel": {"rate_bps": 2_000_000, "delay_ms": 25},
        "workloads": [{"kind": "bulk", "bytes": 100_000}],
    }


def scenario(**changes: Any) -> Scenario:
    raw = raw_scenario()
    for key, value in changes.items():
        raw[key] = {**raw.get(key, {}), **value} if key in ("channel", "link") else value
    return validate(raw, "sample")


def written(path: Path, made: Scenario) -> Path:
    path.write_text(yaml.safe_dump(made.model_dump(mode="json", exclude_none=True)))
    return path


FLOW = FlowSummary("bulk", "bulk", "up", 1_000_000, 4.0, 0.0, 4.0, 2e6, True, True, 12, 1)
LINK = LinkSummary(2.1e6, 800, 700, 50, 48, 4, 1, 2, 80, 0.1, 0.0014)


def summary(**changes: Any) -> Summary:
    made = Summary(
        run="20260101-000000-sample-emulated-slacp-s1",
        scenario="sample",
        tier="emulated",
        scheme="slacp",
        tcp="cubic",
        seed=1,
        duration_s=4.0,
        goodput_bps=2e6,
        throughput_bps=2.1e6,
        capacity_bps=2_200_000,
        retransmissions=12,
        timeouts=1,
        late_events=0,
        events=1000,
        max_late_ms=0.4,
        on_time=True,
        changes=0,
        finished=True,
        intact=True,
        flows=(FLOW,),
        link={"up": LINK, "down": LINK},
        folder="runs/sample",
    )
    return replace(made, **changes)
