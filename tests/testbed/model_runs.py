"""What the tests of tier `model` share: small scenarios, and runs that are kept."""

from pathlib import Path
from typing import Any

from testbed.results import Summary
from testbed.running import run_once
from testbed.scenario import Scenario
from tests.testbed.samples import scenario


def model(**changes: Any) -> Scenario:
    """A small scenario on tier model."""
    return scenario(**{"tier": "model", "tcp": "sack", "trace": False, **changes})


def kept(run: Scenario, folder: Path) -> tuple[Summary, Path]:
    """The result of a run, and its folder."""
    summary = run_once(run, folder, lambda progress: None)
    return summary, Path(str(summary.folder))
