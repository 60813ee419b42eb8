"""Whole transfers with ELN and SMART: over octets, beside peers that know nothing of them, among wrong options."""

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.sequence import MASK
from hosts.tcp.config import MS, SECOND, TcpConfig
from hosts.tcp.profiles import USER_PROFILES
from tcpip.options import ELN, SMART_PERMITTED, smart_of, smart_option
from tcpip.segment import ACK, SYN, Segment
from tcpip.wire import emit, parse
from tests.hosts.tcp.pair import Chaos, Pair, Path, with_options

#: a link that loses single segments by corruption, and a window that it can be filled with
LOSSY = TcpConfig(mss=1000, timestamps=False, receive_buffer=60_000)
SIZE = 1_000_000


class Wire(Path):
    """A path that carries octets."""

    def receive(self, now: int) -> Segment | None:
        segment = super().receive(now)
        return None if segment is None else parse(emit(segment))


class Corrupting:
    """Loses a share of the data segments, and marks the ACKs for them as a marker that knows does.

    `marked` is the share of losses it knows.
    """

    def __init__(self, share: float, marked: float, seed: int) -> None:
        self._rng, self._share, self._marked = Random(seed), share, marked
        self.known: set[int] = set()
        self.losses = 0
        self.up = Wire(rate_bps=5_000_000, delay_ns=20 * MS, drop=self._drop)
        self.down = _Marking(self)

    def _drop(self, segment: Segment) -> bool:
        self.known.discard(segment.seq)
        if not segment.length or self._rng.random() >= self._share:
            return False
        self.losses += 1
        if self._rng.random() < self._marked:
            self.known.add(segment.seq)
        return True


class _Marking(Wire):
    def __init__(self, knows: Corrupting) -> None:
        super().__init__(rate_bps=5_000_000, delay_ns=20 * MS)
        self._knows = knows

    def send(self, segment: Segment, now: int) -> None:
        known = segment.flags & ACK and segment.ack in self._knows.known
        super().send(with_options(segment, ELN) if known else segment, now)


def transfer(config: TcpConfig, lossy: Corrupting, server: TcpConfig | None = None) -> Pair:
    pair = Pair(config, server_config=server, up=lossy.up, down=lossy.down, octets=True)
    data = Random(1).randbytes(SIZE)
    pair.send(0, data)
    pair.run_until(lambda: pair.received[1] == SIZE)
    assert pair.octets[1] == data
    return pair


# -- ELN -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recovery", ["reno", "newreno", "sack", "smart"])
def test_a_sender_that_is_told_of_corruption_is_much_faster(recovery: str) -> None:
    plain = transfer(replace(LOSSY, recovery=recovery), Corrupting(0.03, 1.0, seed=5))
    told = transfer(replace(LOSSY, recovery=recovery, eln="keep-window"), Corrupting(0.03, 1.0, seed=5))
    counters = told.client.counters
    assert counters.eln_kept > 10
    assert counters.eln_kept <= counters.fast_retransmits
    assert told.now < 0.7 * plain.now
    assert plain.client.counters.eln_kept == 0


@pytest.mark.parametrize("recovery", ["reno", "newreno", "sack"])
def test_retransmitting_at_once_is_no_slower_with_a_small_window(recovery: str) -> None:
    # four segments: most losses cause fewer than three duplicates
    small = replace(LOSSY, recovery=recovery, receive_buffer=4000, limited_transmit=False, eln="keep-window")
    kept = transfer(small, Corrupting(0.03, 1.0, seed=5))
    at_once = transfer(replace(small, eln="retransmit"), Corrupting(0.03, 1.0, seed=5))
    assert at_once.client.counters.timeouts < kept.client.counters.timeouts
    assert at_once.now < kept.now


@pytest.mark.parametrize("recovery", ["reno", "newreno", "sack", "smart"])
def test_losses_of_which_nobody_knows_reduce_the_window(recovery: str) -> None:
    lossy = Corrupting(0.02, 0.0, seed=7)
    pair = transfer(replace(LOSSY, recovery=recovery, eln="keep-window"), lossy)
    assert lossy.losses > 10
    assert pair.client.counters.eln_kept == 0
    assert pair.client.ssthresh is not None


def test_congestion_reduces_the_window_beside_corruption() -> None:
    # a short queue overflows; only the link's own losses are marked
    lossy = Corrupting(0.01, 1.0, seed=7)
    lossy.up.hop._buffer_bytes = 15_000
    pair = transfer(replace(LOSSY, recovery="sack", eln="keep-window"), lossy)
    assert pair.client.counters.eln_kept > 0
    assert pair.client.ssthresh is not None
    assert pair.client.ssthresh < 40_000


# -- SMART ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["smart", "bsd-smart"])
def test_smart_repairs_without_timeouts(name: str) -> None:
    config = replace(USER_PROFILES[name].config, mss=1000, receive_buffer=30_000)
    lossy = Corrupting(0.02, 0.0, seed=3)
    pair = transfer(config, lossy)
    counters = pair.client.counters
    # a segment goes again once for each time it was lost, but for retransmissions that were lost with nothing behind
    assert counters.retransmits == lossy.losses
    assert counters.timeouts <= 1
    acks = [segment for _, segment in lossy.down.log if not segment.flags & SYN]
    repeated = [segment for before, segment in pairwise(acks) if segment.ack == before.ack]
    assert len(repeated) > 50
    assert [segment for segment in repeated if smart_of(segment) is None] == []


@pytest.mark.parametrize("other", ["reno", "sack", "newreno", "bsd"])
@pytest.mark.parametrize("smart_sends", [True, False])
def test_smart_gets_along_with_who_knows_nothing_of_it(other: str, smart_sends: bool) -> None:
    smart, theirs = (replace(USER_PROFILES[name].config, mss=1000) for name in ("smart", other))
    configs = (smart, theirs) if smart_sends else (theirs, smart)
    lossy = Corrupting(0.02, 0.0, seed=3)
    transfer(configs[0], lossy, server=configs[1])
    carried = [segment for path in (lossy.up, lossy.down) for _, segment in path.log]
    assert not [segment for segment in carried if smart_of(segment) is not None]
    permitted = [segment for segment in carried if SMART_PERMITTED in segment.extra]
    assert len(permitted) == (1 if smart_sends else 0)


# -- whatever comes ------------------------------------------------------------------------------------------


class Meddling(Chaos):
    """Adds options to ACKs that may be wrong in every way."""

    def send(self, segment: Segment, now: int) -> None:
        options = []
        if segment.flags & ACK and not segment.flags & SYN and len(segment.sack) < 2:
            if self.rng.random() < 0.3:
                options.append(ELN)
            if self.rng.random() < 0.3:
                left = segment.ack + self.rng.choice((0, 500, 1500, -3000, self.rng.getrandbits(32))) & MASK
                options.append(smart_option(left, self.rng.choice((0, 1, 500, 1000, 65_535))))
        super().send(with_options(segment, *options), now)


_PATIENT = TcpConfig(
    mss=500, syn_retries=30, data_retries=40, max_rto_ns=4 * SECOND, time_wait_ns=3600 * SECOND, timestamps=False
)
_CONFIGS = st.builds(
    lambda recovery, eln, ecn, bsd: replace(
        _PATIENT,
        recovery=recovery,
        eln=eln,
        ecn=ecn,
        limited_transmit=not bsd,
        one_reduction_per_window=not bsd,
        halve_window=bsd,
        tick_ns=500 * MS * bsd,
    ),
    st.sampled_from(["reno", "newreno", "sack", "smart"]),
    st.sampled_from(["ignore", "keep-window", "retransmit"]),
    st.booleans(),
    st.booleans(),
)


def chaos(seed: int, loss: float, kind: type[Chaos] = Chaos) -> Chaos:
    return kind(Random(seed), loss=loss, repeat=loss / 2, jitter_ns=10 * MS if loss else 0)


@settings(max_examples=150, deadline=None)
@given(_CONFIGS, st.integers(0, 2**32), st.sampled_from([0.0, 0.05, 0.2]))
def test_wrong_options_spoil_nothing(config: TcpConfig, seed: int, loss: float) -> None:
    # an option may claim what has not arrived to have: then it takes the timer, which believes nobody
    down = chaos(seed + 1, loss, Meddling)
    pair = Pair(config, up=chaos(seed, loss), down=down, iss=(seed % 2**32, 2**32 - 5), octets=True)
    data = Random(seed).randbytes(30_000)
    pair.send(0, data)
    pair.run()
    assert pair.octets[1] == data
    assert pair.client.error is pair.server.error is None
    assert pair.client.cwnd >= pair.client.smss


def log_of(config: TcpConfig, seed: int, loss: float, server: TcpConfig) -> list[tuple[int, str]]:
    ways = [chaos(seed + way, loss) for way in range(2)]
    pair = Pair(config, server_config=server, up=ways[0], down=ways[1], iss=(seed % 2**32, 7))
    pair.send(0, 30_000)
    pair.run()
    return [(at, repr(segment)) for way in ways for at, segment in way.log if not segment.flags & SYN]


@settings(max_examples=80, deadline=None)
@given(_CONFIGS, st.integers(0, 2**32), st.sampled_from([0.02, 0.1, 0.3]))
def test_without_a_notification_eln_changes_nothing(config: TcpConfig, seed: int, loss: float) -> None:
    logs = [log_of(replace(config, eln=eln), seed, loss, config) for eln in ("ignore", "keep-window", "retransmit")]
    assert logs[0] == logs[1] == logs[2]


@settings(max_examples=80, deadline=None)
@given(_CONFIGS, st.integers(0, 2**32), st.sampled_from([0.02, 0.1, 0.3]))
def test_smart_without_its_options_is_newreno(config: TcpConfig, seed: int, loss: float) -> None:
    peer = replace(config, recovery="newreno")
    smart, newreno = (log_of(replace(config, recovery=name), seed, loss, peer) for name in ("smart", "newreno"))
    assert smart == newreno
