"""What every window growth keeps to; a new one is covered as soon as its file is there."""

import pytest

from hosts.tcp.config import TcpConfig
from hosts.tcp.growth import GROWTHS
from hosts.tcp.profiles import USER_PROFILES
from tests.hosts.tcp.growing import SMSS, avoid, grown, lose, sender_of, time_out

#: the profiles in which a growth appears by itself
PROFILES = {name: f"sack-{name}" for name in GROWTHS} | {TcpConfig().growth.name: "sack"}


@pytest.mark.parametrize("name", GROWTHS)
@pytest.mark.parametrize(("acks", "nbytes"), [(10, SMSS), (1, 1)])
def test_slow_start_adds_what_is_acknowledged(name: str, acks: int, nbytes: int) -> None:
    growth = grown(name, sender_of())
    for _ in range(acks):
        growth.handle_ack(nbytes, 0)
    assert growth.cwnd == 10 * SMSS + acks * nbytes


@pytest.mark.parametrize("name", GROWTHS)
def test_a_loss_leaves_two_segments_and_takes_some(name: str) -> None:
    growth = grown(name, sender_of())
    assert growth.handle_loss(2 * SMSS) == 2 * SMSS
    growth.hold(100 * SMSS)
    assert 2 * SMSS < growth.handle_loss(100 * SMSS) < 100 * SMSS


@pytest.mark.parametrize("name", GROWTHS)
def test_congestion_avoidance_never_closes_the_window_nor_doubles_it(name: str) -> None:
    growth = grown(name, sender_of(60))
    lose(growth)
    before = first = growth.cwnd / SMSS
    for _, window in avoid(growth, 20):
        assert before <= window <= 1.6 * before
        before = window
    assert before > first


@pytest.mark.parametrize("name", GROWTHS)
def test_a_timeout_forgets_no_threshold_and_the_window_opens_again(name: str) -> None:
    growth = grown(name, sender_of(40))
    time_out(growth)
    threshold = growth.ssthresh
    assert (growth.cwnd, 20 * SMSS <= threshold < 40 * SMSS) == (SMSS, True)
    assert avoid(growth, 3)[-1][1] > threshold / SMSS


@pytest.mark.parametrize("name", GROWTHS)
def test_it_is_a_profile_of_scenarios(name: str) -> None:
    assert USER_PROFILES[PROFILES[name]].config.growth.name == name
