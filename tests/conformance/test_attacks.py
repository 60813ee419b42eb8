"""Hostile input at everything that takes it from strangers: no exception, no packet lost, bounded memory.

Each registered packet filter, link ARQ and LT-TCP; `python -m benchmarks.fuzz` goes on for millions.
"""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tcpip.access import Octets
from tests.harness.attack import Door, WindowDoor, doors, siege

#: those of filters, with nine connections beside them, take a second
DOORS = [
    pytest.param(make, id=name, marks=[pytest.mark.slow] if name.startswith("filters") else [])
    for name, make in doors()
]
SHORT = settings(
    max_examples=6, stateful_step_count=5, deadline=None, suppress_health_check=list(HealthCheck), print_blob=False
)


@pytest.mark.parametrize("make", DOORS)
def test_an_attack_breaks_no_rule_and_no_valid_flow(make: Callable[[int], Door]) -> None:
    run_state_machine_as_test(siege(make, most=500), settings=SHORT)


def test_the_attack_on_windows_opens_connections_and_changes_their_windows() -> None:
    door, rng = WindowDoor(Octets(), 1), Random(1)
    for _ in range(3000):
        door.shoot(rng)
    door.check()
    assert door.checked.volume["changed"] > 300
