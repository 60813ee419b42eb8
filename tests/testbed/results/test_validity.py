"""Which results may be used."""

from dataclasses import replace

import pytest

from testbed.results.validity import CorruptError, LateError, require_intact, require_valid
from tests.harness.scenarios import FLOW, summary

CORRUPT = summary(run="r2", intact=False, flows=(FLOW, replace(FLOW, flow="web", intact=False)))
LATE = summary(run="r3", on_time=False, late_events=30, max_late_ms=44.0)


def test_corrupt_run_is_an_error_that_names_run_scenario_and_flow() -> None:
    require_intact([summary()])
    with pytest.raises(CorruptError) as error:
        require_valid([summary(), CORRUPT], allow_late=True)
    assert str(error.value).startswith(
        "r2: scenario sample, flow web: what arrived is not what was sent: this is a bug"
    )
    assert "\n" not in str(error.value)


def test_late_run_is_an_error_unless_that_is_allowed() -> None:
    with pytest.raises(LateError, match="r3: 30 of 1000 events were late"):
        require_valid([summary(), LATE], allow_late=False)
    require_valid([summary(), LATE], allow_late=True)
    # corruption is the graver fault
    with pytest.raises(CorruptError):
        require_valid([LATE, CORRUPT], allow_late=False)


def test_flow_that_cannot_tell_is_intact() -> None:
    require_intact([summary(flows=(replace(FLOW, intact=None),))])
