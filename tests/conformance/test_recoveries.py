"""What every loss recovery keeps to; a new one is covered as soon as its file is there.

`tests/hosts/tcp/test_properties.py` has transfers with each of them among losses, repeats and delays.
"""

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.sequence import MASK
from common.units import MS, SECOND
from hosts.tcp.config import TcpConfig
from hosts.tcp.connection import Connection
from hosts.tcp.options import Eln
from hosts.tcp.recovery import RECOVERIES
from tcpip.options import ELN, SMART_PERMITTED, smart_option
from tcpip.segment import ACK, SYN, Segment, SynOptions
from testbed.simulation import simulate
from tests.harness.model_runs import model
from tests.hosts.tcp.pair import FLOW, Pair, Path, lose

#: so patient that losses never end a connection
PATIENT = TcpConfig().but(
    mss=1000, syn_retries=30, data_retries=40, max_rto_ns=4 * SECOND, timestamps=False, limited_transmit=False
)
ELNS = st.sampled_from(get_args(Eln))
SEEDS = st.integers(0, 2**32 - 1)
#: what the window of `hostile` is at its beginning
WINDOW = 20_000


@pytest.mark.parametrize("name", RECOVERIES)
def test_a_loss_in_a_full_window_reduces_it_and_needs_no_timer(name: str) -> None:
    pair = Pair(PATIENT.but(recovery=name), up=Path(rate_bps=4_000_000, drop=lose(60)))
    pair.send(0, 200_000)
    pair.run()
    counters = pair.client.counters
    assert (counters.fast_retransmits, counters.timeouts) == (1, 0)
    assert pair.client.ssthresh is not None
    assert pair.client.ssthresh < 65_535


def hostile(name: str, eln: Eln) -> Connection:
    """A sender with a window of twenty segments under way, 1000 octets each."""
    config = PATIENT.but(recovery=name, eln=eln, initial_window=20)
    connection = Connection(config, FLOW, 1000)
    connection.connect(0)
    connection.poll_segment(0)
    options = SynOptions(mss=1000, sack_permitted=True)
    syn = Segment(FLOW.reversed(), 5000, 1001, SYN | ACK, 65_535, syn=options, extra=(SMART_PERMITTED,))
    connection.handle_segment(syn, 100 * MS)
    connection.write(1_000_000)
    assert len(polled(connection, 100 * MS)) == 20
    return connection


def polled(connection: Connection, now: int) -> list[Segment]:
    """Everything the connection sends now, which the peer's window and its own buffer allow."""
    found: list[Segment] = []
    while (segment := connection.poll_segment(now)) is not None:
        assert (segment.seq - 1001 & MASK) + segment.length <= 65_535
        assert len(found) < 200
        found.append(segment)
    return found


#: octets from the first one that is not acknowledged: mostly edges of segments, and any others
EDGES = st.one_of(st.integers(-3, 70).map(lambda segment: 1000 * segment), st.integers(-(2**31), 2**31 - 1))


def dupack(sack: list[tuple[int, int]], smart: tuple[int, int] | None, eln: bool, window: int) -> Segment:
    """A duplicate ACK of the first octet; numbers of its options are relative to that octet."""
    extra = [ELN] * eln
    if smart is not None:
        extra.append(smart_option(1001 + smart[0] & MASK, smart[1]))
    blocks = tuple((1001 + left & MASK, 1001 + right & MASK) for left, right in sack)
    return Segment(FLOW.reversed(), 5001, 1001, ACK, window, sack=blocks, extra=tuple(extra))


#: each with the ms until it comes, and how often it comes
DUPACKS = st.tuples(
    st.builds(
        dupack,
        sack=st.lists(st.tuples(EDGES, EDGES), max_size=3),
        smart=st.none() | st.tuples(EDGES, st.integers(0, 65_535)),
        eln=st.booleans(),
        window=st.sampled_from([65_535, 65_535, 30_000]),
    ),
    st.sampled_from([0, 0, 1, 40]),
    st.sampled_from([1, 1, 3, 30]),
)


@pytest.mark.parametrize("name", RECOVERIES)
@given(acks=st.lists(DUPACKS, min_size=1, max_size=20), eln=ELNS)
@settings(max_examples=60, deadline=None)
def test_acks_of_nothing_new_leave_no_larger_window_whatever_their_options_say(
    name: str, acks: list[tuple[Segment, int, int]], eln: Eln
) -> None:
    connection, now = hostile(name, eln), 100 * MS
    for ack, wait_ms, times in acks:
        now += wait_ms * MS
        for _ in range(times):
            connection.handle_segment(ack, now)
            polled(connection, now)
    # an ACK of everything ends each recovery; it is worth one segment
    last = Segment(FLOW.reversed(), 5001, 1001 + connection.flight & MASK, ACK, 65_535)
    connection.handle_segment(last, now)
    assert connection.flight == 0
    assert connection.cwnd <= WINDOW + 1000
    if connection.counters.fast_retransmits > connection.counters.eln_kept:
        assert connection.ssthresh is not None
        assert connection.ssthresh <= WINDOW


@pytest.mark.parametrize("name", RECOVERIES)
def test_an_ack_of_what_was_never_sent_changes_nothing(name: str) -> None:
    connection = hostile(name, "ignore")
    connection.handle_segment(Segment(FLOW.reversed(), 5001, 1001 + WINDOW + 1, ACK, 65_535), 200 * MS)
    assert (connection.bytes_acked, connection.cwnd, connection.ssthresh) == (0, WINDOW, None)


@pytest.mark.parametrize("name", RECOVERIES)
def test_it_is_a_profile_of_scenarios_that_repeats_with_its_seed(name: str) -> None:
    run = model(tcp=name, channel={"per": 0.03}, workloads=[{"kind": "bulk", "bytes": 60_000}], seed=5)
    summary = simulate(run)
    assert summary == simulate(run)
    assert (summary.finished, summary.intact) == (True, True)
