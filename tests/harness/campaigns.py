"""Small campaigns on tier `model`, and their result files."""

import math
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import testbed.sources
from testbed.campaigns.file import parse_campaign
from testbed.campaigns.folder import CampaignFolder
from testbed.campaigns.plan import CampaignPlan, make_plan
from testbed.campaigns.processes import Workers
from testbed.campaigns.rows import MANIFEST, Row
from testbed.paths import root
from testbed.sources import sources

#: files of a campaign's folder that depend on time and place
_OF_THE_SESSION = {"index.jsonl", "lock", MANIFEST}

#: a claim of the campaign below, and the opposite
CLAIMS = [
    {"claim": "slower", "metric": "duration_s", "greater": {"link.scheme": "none"}, "than": {"link.scheme": "slacp"}},
    {"claim": "faster", "metric": "duration_s", "greater": {"link.scheme": "slacp"}, "than": {"link.scheme": "none"}},
]


def raw_campaign(**changes: Any) -> dict[str, Any]:
    """A campaign of two points and three runs of each, as a file has it."""
    raw = {
        "name": "small",
        "scenario": {
            "name": "sample",
            "tier": "model",
            "tcp": "sack",
            "trace": False,
            "channel": {"rate_bps": 2_000_000, "delay_ms": 25, "per": 0.05},
            "workloads": [{"kind": "bulk", "bytes": 20_000}],
        },
        "sweep": {"grid": {"link.scheme": ["none", "slacp"]}},
        "seeds": {"count": 3},
        "metrics": ["duration_s", "goodput_bps"],
    }
    return {key: value for key, value in {**raw, **changes}.items() if value is not None}


def campaign_file(folder: Path, **changes: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "campaign.yaml"
    path.write_text(yaml.safe_dump(raw_campaign(**changes), sort_keys=False))
    return path


def plan(**changes: Any) -> CampaignPlan:
    return make_plan(parse_campaign(raw_campaign(**changes), "campaign.yaml"), Path("campaign.yaml"))[0]


def opened(folder: Path, file: Path) -> CampaignFolder:
    """The folder of the campaign in a file, for writing."""
    from testbed.campaigns.file import load_campaign

    made, files = make_plan(load_campaign(file), file)
    return CampaignFolder(folder, made, file, files)


def done(run: str, **metrics: float | None) -> Row:
    """The row of a run that is whole."""
    row = Row(run, "done", metrics, {"summary.json": "0" * 64})
    return replace(row, finished=True, intact=True, on_time=True, late_events=0, events=100, lost_s=0.0)


def result_files(folder: Path) -> dict[str, bytes]:
    """The files that every execution of a campaign on tier `model` must repeat, by their paths."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in _OF_THE_SESSION
    }


def edited_sources(patched: pytest.MonkeyPatch) -> None:
    """Let this process have sources with one edit."""
    began = sources()
    edited = replace(began, files={**began.files, "channel/mine.py": "0" * 64})
    patched.setitem(testbed.sources._seen, root(), (edited, {}, math.inf))


class InProcess(Workers):
    """Workers that make each call at once, in this process."""

    room = 1

    def submit(self, call: "Callable[[Any], Any]", task: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        future.set_result(call(task))
        return future

    def revive(self) -> None: ...

    def close(self) -> None: ...
