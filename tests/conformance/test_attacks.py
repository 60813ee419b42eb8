"""Hostile input at everything that takes it from strangers: no exception, no packet lost, bounded memory.

Each registered packet filter, link ARQ, slacp-adaptive, LT-TCP, accurate ECN and QUIC; `python -m benchmarks.fuzz`
goes on for millions.
"""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.harness.attack.accecn import AccEcnDoor
from tests.harness.attack.door import Door
from tests.harness.attack.doors import doors
from tests.harness.attack.lt_tcp import LtTcpDoor
from tests.harness.attack.packet_filters import FilterDoor, Target
from tests.harness.attack.siege import siege
from tests.harness.attack.tcp import TcpDoor
from tests.harness.attacker import FIXED, MOBILE

#: with the most shots a step; those of filters, with nine connections beside them, take a second
DOORS = [
    pytest.param(
        make,
        50 if name.startswith("quic") else 500,
        id=name,
        marks=[pytest.mark.slow] if name.startswith("filters") else [],
    )
    for name, make in doors()
]
SHORT = settings(
    max_examples=6, stateful_step_count=5, deadline=None, suppress_health_check=list(HealthCheck), print_blob=False
)


@pytest.mark.parametrize(("make", "most"), DOORS)
def test_an_attack_breaks_no_rule_and_no_valid_flow(make: Callable[[int], Door], most: int) -> None:
    run_state_machine_as_test(siege(make, most), settings=SHORT)


@pytest.mark.parametrize("kind", [LtTcpDoor, AccEcnDoor])
def test_flows_under_a_blind_attack_come_to_their_ends(kind: type[TcpDoor]) -> None:
    door, rng, ended = kind(True, 1), Random(1), 0
    for _ in range(5000):
        door.shoot(rng)
        ended += door._shots == 1
    # the attack outlasts the handshake, and so hits the transfers
    assert ended > 2


@pytest.mark.slow
def test_connections_that_the_attack_opens_leave_valid_ones_the_least_share() -> None:
    door, rng = FilterDoor(Target(("window",), "mobile"), "others", 1), Random(5)
    for _ in range(9000):
        door.shoot(rng)
    door.finish()


@pytest.mark.slow
def test_the_attack_opens_connections_beside_the_valid_ones() -> None:
    door, rng = FilterDoor(Target(("window",), "mobile"), "others", 1), Random(1)
    for _ in range(2000):
        door.shoot(rng)
    [window] = door.networks[0].attacked.checked.link.filters  # type: ignore[attr-defined]
    assert len({flow.source for flow in window._open} - {MOBILE, FIXED}) > 1
