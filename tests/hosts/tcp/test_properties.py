"""Whatever is lost, repeated or reordered, a transfer completes, intact, and within the rules."""

from dataclasses import fields
from itertools import pairwise
from random import Random
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.sequence import MASK
from common.units import MS, SECOND
from hosts.tcp.config import TcpConfig
from hosts.tcp.growth import GROWTHS
from hosts.tcp.options import Eln
from hosts.tcp.recovery import RECOVERIES
from tcpip.access import Objects
from tcpip.options import ELN, smart_option
from tcpip.segment import ACK, SYN, Option, Segment
from tests.hosts.tcp.pair import Chaos, Pair

#: so patient that 30 % of losses each way never end a connection
_PATIENT = TcpConfig().but(
    mss=500, syn_retries=30, data_retries=40, max_rto_ns=4 * SECOND, time_wait_ns=3600 * SECOND, window_scaling=True
)
_NUMBERS = st.one_of(st.integers(0, 2**32 - 1), st.integers(2**32 - 30_000, 2**32 - 1))
_SIZES = st.integers(0, 40_000)


@st.composite
def configs(draw: st.DrawFn) -> TcpConfig:
    tick_ns = draw(st.sampled_from([0, 0, 500 * MS]))
    delayed_ack_ns = draw(st.sampled_from([0, 40 * MS, 200 * MS]))
    recovery, growth = draw(st.sampled_from(list(RECOVERIES))), draw(st.sampled_from(list(GROWTHS)))
    options = (*fields(RECOVERIES[recovery].options), *fields(GROWTHS[growth].options))
    return _PATIENT.but(
        recovery=recovery,
        growth=growth,
        **{option.name: draw(st.booleans()) for option in options if isinstance(option.default, bool)},
        eln=draw(st.sampled_from(get_args(Eln))),
        ack_at_tick=delayed_ack_ns > 0 and draw(st.booleans()),
        clock_phase_ns=draw(st.integers(0, SECOND)),
        initial_window=draw(st.integers(1, 10)),
        limited_transmit=draw(st.booleans()),
        timestamps=not tick_ns and draw(st.booleans()),
        ecn=draw(st.booleans()),
        frto=draw(st.booleans()),
        nagle=draw(st.booleans()),
        daass=draw(st.booleans()),
        delayed_ack_ns=delayed_ack_ns,
        min_rto_ns=draw(st.sampled_from([200 * MS, SECOND])),
        tick_ns=tick_ns,
        receive_buffer=draw(st.sampled_from([1200, 20_000, 1 << 20])),
    )


@st.composite
def ways(draw: st.DrawFn, kind: type[Chaos] = Chaos) -> Chaos:
    return kind(
        Random(draw(st.integers(0, 2**32))),
        loss=draw(st.sampled_from([0.0, 0.02, 0.1, 0.3])),
        repeat=draw(st.sampled_from([0.0, 0.1, 0.3])),
        jitter_ns=draw(st.sampled_from([0, 5 * MS, 60 * MS])),
    )


class Rules:
    """What must hold of every segment sent, seen from outside the connections. Numbers are relative to the SYNs'."""

    def __init__(self, pair: Pair, config: TcpConfig, iss: tuple[int, int]) -> None:
        self.pair, self.iss = pair, iss
        #: FlightSize is the congestion window's business alone
        self.by_window = config.recovery.name in ("reno", "newreno") and not config.loss.frto
        self.shift = [0, 0]
        #: the right edge of the largest window that each end's peer has offered
        self.edge = [0, 0]
        #: the octet behind the last that each end has sent
        self.furthest = [0, 0]

    def check(self, number: int, segment: Segment) -> None:
        """Look at a segment as end `number` sends it."""
        end, other = self.pair.ends[number], 1 - number
        seq = segment.seq - self.iss[number] & MASK
        if segment.syn is not None and segment.syn.window_scale is not None:
            self.shift[number] = segment.syn.window_scale
        if segment.flags & ACK:
            acked = segment.ack - self.iss[other] & MASK
            window = segment.window << (0 if segment.flags & SYN else self.shift[number])
            # what was offered is never taken back, but for what scaling cuts off
            assert acked + window + (1 << self.shift[number]) > self.edge[other]
            self.edge[other] = max(self.edge[other], acked + window)
            self.check_blocks(segment, acked, other)
        if not end.connected:
            return
        assert end.cwnd >= end.smss
        assert end.ssthresh is None or end.ssthresh >= 2 * end.smss
        assert segment.length <= end.smss
        if segment.length:
            # one octet more: a probe
            assert seq + segment.length <= self.edge[number] + 1
            if seq + segment.length > self.furthest[number] and self.by_window:
                # limited transmit, and the FIN
                assert end.flight <= end.cwnd + 2 * end.smss + 1
            self.furthest[number] = max(self.furthest[number], seq + segment.length)

    def check_blocks(self, segment: Segment, acked: int, other: int) -> None:
        """SACK blocks are apart, above what is acknowledged, and of what was sent."""
        blocks = sorted((left - self.iss[other] & MASK, right - self.iss[other] & MASK) for left, right in segment.sack)
        edges = [acked, *(edge for block in blocks for edge in block)]
        assert all(low < high for low, high in pairwise(edges))
        assert edges[-1] <= max(self.furthest[other], acked)


def run(config: TcpConfig, up: Chaos, down: Chaos, sizes: tuple[int, int], iss: tuple[int, int], octets: bool) -> Pair:
    pair = Pair(config, up=up, down=down, iss=iss, octets=octets)
    pair.sent = Rules(pair, config, iss).check
    for end, size in enumerate(sizes):
        pair.send(end, Random(size).randbytes(size) if octets else size)
    return pair.run()


@settings(max_examples=150, deadline=None)
@given(configs(), ways(), ways(), st.tuples(_SIZES, st.integers(0, 5000)), st.tuples(_NUMBERS, _NUMBERS))
def test_a_transfer_completes_intact(
    config: TcpConfig, up: Chaos, down: Chaos, sizes: tuple[int, int], iss: tuple[int, int]
) -> None:
    pair = run(config, up, down, sizes, iss, octets=True)
    for end, way, sent, received in zip(pair.ends, pair.ways, sizes, reversed(pair.octets), strict=True):
        assert received == Random(sent).randbytes(sent)
        assert end.error is None
        assert end.bytes_acked == sent
        counters = end.counters
        log = [segment for _, segment in way.log]
        assert counters.segments_sent == len(log)
        assert counters.data_segments_sent == sum(segment.length > 0 for segment in log)
        assert counters.bytes_sent == sum(segment.length for segment in log)
        assert counters.bytes_sent >= sent
        assert counters.bytes_sent - sent <= counters.bytes_retransmitted + counters.zero_window_probes
        # SMART and RACK may find the next gap in an ACK of new data
        assert counters.fast_retransmits <= counters.dupacks or config.recovery.name in ("smart", "rack")
        assert counters.spurious_timeouts <= counters.timeouts <= counters.retransmits + counters.spurious_timeouts


@settings(max_examples=60, deadline=None)
@given(configs(), st.integers(0, 2**32), st.integers(0, 30_000), st.sampled_from([0.0, 0.05, 0.3]))
def test_sizes_alone_make_the_same_segments(config: TcpConfig, seed: int, size: int, loss: float) -> None:
    def log(octets: bool) -> list[list[tuple[int, str]]]:
        ways = [Chaos(Random(seed + way), loss=loss, repeat=loss, jitter_ns=10 * MS) for way in range(2)]
        run(config, ways[0], ways[1], (size, 1000), (seed % 2**32, 7), octets)
        return [[(at, repr(segment)) for at, segment in way.log] for way in ways]

    assert log(octets=True) == log(octets=False)


@settings(max_examples=40, deadline=None)
@given(configs(), st.integers(0, 2**32))
def test_a_clean_path_needs_nothing_twice(config: TcpConfig, seed: int) -> None:
    clean = [Chaos(Random(seed), loss=0, repeat=0, jitter_ns=0) for _ in range(2)]
    pair = run(config, clean[0], clean[1], (60_000, 3000), (seed % 2**32, 0), octets=False)
    for end in pair.ends:
        assert end.counters.retransmits == end.counters.timeouts == end.counters.fast_retransmits == 0
        assert end.counters.zero_window_probes == 0


# -- ELN and SMART -------------------------------------------------------------------------------------------


class Meddling(Chaos):
    """Adds options to ACKs that may be wrong in every way."""

    def send(self, segment: Segment, now: int) -> None:
        options: list[Option] = []
        if segment.flags & ACK and not segment.flags & SYN and len(segment.sack) < 2:
            if self.rng.random() < 0.3:
                options.append(ELN)
            if self.rng.random() < 0.3:
                left = segment.ack + self.rng.choice((0, 500, 1500, -3000, self.rng.getrandbits(32))) & MASK
                options.append(smart_option(left, self.rng.choice((0, 1, 500, 1000, 65_535))))
        for option in options:
            segment = Objects().with_option(segment, option) or segment
        super().send(segment, now)


@settings(max_examples=100, deadline=None)
@given(configs(), ways(Chaos), ways(Meddling), _SIZES)
def test_wrong_options_spoil_nothing(config: TcpConfig, up: Chaos, down: Chaos, size: int) -> None:
    # an option may claim that octets have arrived which have not: then it takes the timer, which believes no option
    pair = Pair(config, up=up, down=down, iss=(size, 2**32 - 5), octets=True)
    pair.send(0, Random(size).randbytes(size))
    pair.run()
    assert pair.octets[1] == Random(size).randbytes(size)
    assert pair.client.error is pair.server.error is None
    assert pair.client.cwnd >= pair.client.smss


def log_of(config: TcpConfig, seed: int, loss: float, server: TcpConfig) -> list[tuple[int, str]]:
    ways = [Chaos(Random(seed + way), loss=loss, repeat=loss / 2, jitter_ns=10 * MS) for way in range(2)]
    pair = Pair(config, server_config=server, up=ways[0], down=ways[1], iss=(seed % 2**32, 7))
    pair.send(0, 30_000)
    pair.run()
    return [(at, repr(segment)) for way in ways for at, segment in way.log if not segment.flags & SYN]


#: what a sender is given in turn, and its peer
ELN_ALONE: tuple[list[dict[str, Any]], dict[str, Any]] = ([{"eln": eln} for eln in get_args(Eln)], {})
SMART_ALONE = ([{"recovery": name} for name in ("smart", "newreno")], {"recovery": "newreno"})


@pytest.mark.slow
@pytest.mark.parametrize(("changes", "peer"), [ELN_ALONE, SMART_ALONE], ids=["ELN", "SMART"])
@settings(max_examples=60, deadline=None)
@given(configs(), st.integers(0, 2**32), st.sampled_from([0.02, 0.1, 0.3]))
def test_without_their_options_eln_changes_nothing_and_smart_is_newreno(
    changes: list[dict[str, Any]], peer: dict[str, Any], config: TcpConfig, seed: int, loss: float
) -> None:
    first, *others = (log_of(config.but(**each), seed, loss, config.but(**peer)) for each in changes)
    assert others == [first] * len(others)
