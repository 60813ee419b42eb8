"""What every packet filter keeps to; a new one is covered as soon as its file is there.

The harness checks each packet that goes in or comes out of a filter under test (`tests/harness/checked.py`).
"""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.units import MS, SECOND
from hosts.tcp.config import TcpConfig
from linklayer.filters import FILTERS
from linklayer.schemes import SCHEMES
from tcpip.access import Access, Objects, Octets
from tcpip.segment import ACK, Flow, Segment
from tcpip.wire import emit
from testbed.scenario.schema import LINK_PARTS
from testbed.scenario.settings import ScenarioError
from testbed.simulation import simulate
from tests.harness.attack.packet_filters import TARGETS, Target, make_ends
from tests.harness.attacked_network import Network, Victim
from tests.harness.attacker import no_segment
from tests.harness.base_station import BaseStation, by_access, make_filter
from tests.harness.checked import footprint
from tests.harness.model_runs import model
from tests.harness.scenarios import scenario

by_name = pytest.mark.parametrize("name", FILTERS)
by_target = pytest.mark.parametrize("target", TARGETS, ids=str)


# -- packets that are no segments, memory --------------------------------------------------------------------


@by_name
@by_access
def test_packets_that_are_no_segments_pass_untouched_and_leave_nothing(name: str, access: Access) -> None:
    s = BaseStation(access, lambda access: make_filter(name, access))
    # an empty packet, IPv6, anything, and segments that are damaged, cut short, of other protocols or fragments
    rng = Random(1)
    whole = Segment(s.flow, 1, 1, ACK, 500, 1000, bytes(1000))
    spoilt = (no_segment(rng, whole) for _ in range(300))
    before = footprint(s.filter)
    for packet in (b"", b"\x60" + bytes(60), bytes(1500), emit(whole)[:-1], *spoilt):
        if access.view(packet) is None:
            assert bytes(s.from_ip(packet)) == packet
            assert bytes(s.from_link(packet) or b"") == packet
    assert s.filter.next_deadline() is None
    assert footprint(s.filter) == before


@by_name
@pytest.mark.slow
def test_memory_is_bounded(name: str) -> None:
    s = BaseStation(Objects(), lambda access: make_filter(name, access))
    sizes: dict[str, list[int]] = {"many flows": [], "one flow": []}
    for part in range(2):
        # data that is never acknowledged, both ways: of flows without end, and of one flow
        for number in range(5000):
            flow = Flow(part, number, 2, 80)
            s.from_ip(Segment(flow, number, 1, ACK, 500, 1000))
            s.from_link(Segment(flow.reversed(), number, 1, ACK, 500, 1000))
        sizes["many flows"].append(footprint(s.filter))
        for number in range(5000):
            place = (5000 * part + number) * 60
            s.send(place, size=60_000)
            s.from_link(s.acknowledgement(0, size=1000, seq=place))
        sizes["one flow"].append(footprint(s.filter))
    for first, second in sizes.values():
        assert second < 1.2 * first + 100_000


# -- valid flows; test_attacks.py has them under attack ------------------------------------------------------


@st.composite
def configs(draw: st.DrawFn) -> TcpConfig:
    return TcpConfig().but(
        syn_retries=30,
        data_retries=40,
        max_rto_ns=4 * SECOND,
        window_scaling=True,
        recovery=draw(st.sampled_from(["reno", "newreno", "sack", "smart"])),
        initial_window=draw(st.integers(1, 10)),
        limited_transmit=draw(st.booleans()),
        timestamps=draw(st.booleans()),
        ecn=draw(st.booleans()),
        frto=draw(st.booleans()),
        delayed_ack_ns=draw(st.sampled_from([0, 40 * MS, 200 * MS])),
        min_rto_ns=draw(st.sampled_from([200 * MS, SECOND])),
        receive_buffer=draw(st.sampled_from([1200, 20_000, 1 << 20])),
        mss=draw(st.sampled_from([500, 1400, 20_000])),
    )


@by_target
@settings(max_examples=5, deadline=None)
@given(
    config=configs(),
    sized=st.booleans(),
    seed=st.integers(0, 2**32),
    loss=st.sampled_from([0.0, 0.02, 0.1, 0.3]),
    repeat=st.sampled_from([0.0, 0.1, 0.3]),
    jitter_ns=st.sampled_from([0, 5 * MS, 60 * MS]),
    restart_every_ns=st.sampled_from([None, 70 * MS, SECOND]),
)
def test_streams_stay_whole_whatever_the_hop_does_and_whenever_the_filter_forgets(
    target: Target, config: TcpConfig, sized: bool, **options: Any
) -> None:
    victims = (Victim("down", config, 30_000, 3000), Victim("up", config, 3000, 15_000))
    access = Objects() if sized else Octets()
    network = Network(make_ends(target, sized=sized), access, attacked=target.end, victims=victims, **options)
    for _ in range(600):
        network.run_calm(SECOND)
        if all(story.finished_at for story in network.stories.values()):
            break
    assert all(story.finished_at and not story.broken for story in network.stories.values())


#: the filters that repair at a loss of this rate, since schemes are made of them
RESENDING = {each.name for scheme in SCHEMES.values() for each in scheme.filters if each.resends}

# -- scenarios -----------------------------------------------------------------------------------------------


@by_name
def test_a_transfer_behind_it_over_a_lossy_link_repeats_with_its_seed(name: str) -> None:
    run = model(
        link={"scheme": "none", "filters": name},
        channel={"per": 0.03},
        workloads=[{"kind": "bulk", "bytes": 60_000}, {"kind": "bulk", "bytes": 60_000, "direction": "down"}],
        seed=5,
    )
    assert run.link.packet_filters() == (FILTERS[name],)
    first = simulate(run)
    assert first == simulate(run)
    assert (first.finished, first.intact) == (True, True)
    # a lost frame whose packet another frame brings across is no lost packet
    down = first.link["down"]
    if name in RESENDING:
        assert down.residual_losses < down.corruption_losses
    elif FILTERS[name].resends:
        assert down.residual_losses <= down.corruption_losses
    else:
        assert down.residual_losses == down.corruption_losses


@by_name
@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_clean_link_is_left_alone(name: str, direction: str) -> None:
    work = [{"kind": "bulk", "bytes": 60_000, "direction": direction}]
    clean = simulate(model(link={"scheme": "none", "filters": name}, workloads=work))
    assert clean.intact
    for counted in clean.link.values():
        assert (counted.retransmissions, counted.suppressed_dupacks, counted.residual_losses) == (0, 0, 0)


def test_a_filter_that_is_unknown_or_there_twice_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"^sample: link: filters: 'nonsense' is unknown: choose from .*snoop"):
        scenario(link={"filters": ["nonsense"]})
    for link in ({"filters": ["eln-base"], "eln": "base"}, {"scheme": "snoop", "filters": "snoop"}):
        with pytest.raises(ScenarioError, match=r"^sample: link: filters: '\S+' is there twice"):
            scenario(link=link)


def test_plugins_that_share_a_key_share_its_options() -> None:
    by_key = {(scheme.options_key, scheme.options) for scheme in SCHEMES.values()}
    by_key |= {(plugin.options_key, plugin.options) for plugin in FILTERS.values()}
    assert sorted(key for key, _ in by_key if key) == sorted(LINK_PARTS)
