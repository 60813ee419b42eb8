"""What every window growth keeps to; a new one is covered as soon as its file is there.

Those with a window and a threshold keep to RFC 5681's outline; those that sample have a model in its place.
"""

import pytest

from common.units import SECOND
from hosts.tcp.config import TcpConfig
from hosts.tcp.growth import GROWTHS
from hosts.tcp.profiles import USER_PROFILES
from testbed.simulation import simulate
from tests.harness.model_runs import model
from tests.hosts.tcp import growing
from tests.hosts.tcp.growing import SMSS, avoid, grown, sender_of, time_out
from tests.hosts.tcp.pair import Pair, Path, lose

#: those with a threshold
OF_THRESHOLDS = [name for name in GROWTHS if not GROWTHS[name].samples]
#: the profiles in which a growth appears by itself
PROFILES = {name: f"sack-{name}" for name in GROWTHS} | {TcpConfig().growth.name: "sack"}


@pytest.mark.parametrize("name", OF_THRESHOLDS)
@pytest.mark.parametrize(("acks", "nbytes"), [(10, SMSS), (1, 1)])
def test_slow_start_adds_what_is_acknowledged(name: str, acks: int, nbytes: int) -> None:
    growth = grown(name, sender_of())
    for _ in range(acks):
        growth.handle_ack(nbytes, 0)
    assert growth.cwnd == 10 * SMSS + acks * nbytes


@pytest.mark.parametrize("name", OF_THRESHOLDS)
def test_a_loss_leaves_two_segments_and_takes_some(name: str) -> None:
    growth = grown(name, sender_of())
    assert growth.handle_loss(2 * SMSS) == 2 * SMSS
    growth.hold(100 * SMSS)
    assert 2 * SMSS < growth.handle_loss(100 * SMSS) < 100 * SMSS


@pytest.mark.parametrize("name", OF_THRESHOLDS)
def test_congestion_avoidance_never_closes_the_window_nor_doubles_it(name: str) -> None:
    growth = grown(name, sender_of(60))
    growing.lose(growth)
    before = first = growth.cwnd / SMSS
    for _, window in avoid(growth, 20):
        assert before <= window <= 1.6 * before
        before = window
    assert before > first


@pytest.mark.parametrize("name", OF_THRESHOLDS)
def test_a_timeout_forgets_no_threshold_and_the_window_opens_again(name: str) -> None:
    growth = grown(name, sender_of(40))
    time_out(growth)
    threshold = growth.ssthresh
    assert (growth.cwnd, 20 * SMSS <= threshold < 40 * SMSS) == (SMSS, True)
    assert avoid(growth, 3)[-1][1] > threshold / SMSS


@pytest.mark.parametrize("name", GROWTHS)
@pytest.mark.parametrize("losses", [(), (40, 41, 90)])
def test_a_link_is_filled_and_the_window_is_a_segment_at_least(name: str, losses: tuple[int, ...]) -> None:
    config = TcpConfig().but(mss=SMSS, growth=name, initial_window=10, receive_buffer=1 << 20)
    pair = Pair(config, up=Path(rate_bps=2_000_000, delay_ns=25_000_000, drop=lose(*losses)))
    least: list[int] = []
    pair.watch = lambda: least.append(pair.client.cwnd if pair.client.connected else SMSS)
    pair.send(0, 1_000_000)
    pair.run()
    assert min(least) >= SMSS - 12
    assert pair.client.counters.timeouts == 0
    # 988 octets in 1040; the beginning takes its time, and losses in it take half of the rate at most
    patience = 1.5 if losses else 1.15
    assert pair.now < 8_000_000 * 1040 / 988 / 2_000_000 * patience * SECOND


@pytest.mark.parametrize("name", GROWTHS)
def test_it_repeats_with_its_seed(name: str) -> None:
    run = model(tcp=PROFILES[name], channel={"per": 0.02}, workloads=[{"kind": "bulk", "duration_s": 8}], seed=5)
    summary = simulate(run)
    assert summary == simulate(run)
    assert (summary.finished, summary.intact) == (True, True)


@pytest.mark.parametrize("name", GROWTHS)
def test_it_is_a_profile_of_scenarios(name: str) -> None:
    assert USER_PROFILES[PROFILES[name]].config.growth.name == name
