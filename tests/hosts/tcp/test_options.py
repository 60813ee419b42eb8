"""Whole transfers with ELN and SMART, over octets."""

from itertools import pairwise
from random import Random

import pytest

from common.units import MS
from hosts.tcp.config import TcpConfig
from hosts.tcp.profiles import USER_PROFILES
from tcpip.access import Objects
from tcpip.options import ELN, smart_of
from tcpip.segment import ACK, SYN, Segment
from tcpip.wire import emit, parse
from tests.hosts.tcp.pair import Pair, Path

#: a link that loses single segments by corruption, and a window that it can be filled with
LOSSY = TcpConfig().but(mss=1000, timestamps=False, receive_buffer=60_000)
SIZE = 1_000_000


class Wire(Path):
    """A path that carries octets."""

    def receive(self, now: int) -> Segment | None:
        segment = super().receive(now)
        return None if segment is None else parse(emit(segment))


class Corrupting:
    """Loses a share of the data segments, and marks the ACKs for them as a marker that knows does, if it `marks`."""

    def __init__(self, share: float, seed: int, *, marks: bool = True) -> None:
        self._rng, self._share, self._marks = Random(seed), share, marks
        self.known: set[int] = set()
        self.losses = 0
        self.up = Wire(rate_bps=5_000_000, delay_ns=20 * MS, drop=self._drop)
        self.down = _Marking(self)

    def _drop(self, segment: Segment) -> bool:
        self.known.discard(segment.seq)
        if not segment.length or self._rng.random() >= self._share:
            return False
        self.losses += 1
        if self._marks:
            self.known.add(segment.seq)
        return True


class _Marking(Wire):
    def __init__(self, knows: Corrupting) -> None:
        super().__init__(rate_bps=5_000_000, delay_ns=20 * MS)
        self._knows = knows

    def send(self, segment: Segment, now: int) -> None:
        known = segment.flags & ACK and segment.ack in self._knows.known
        super().send((Objects().with_option(segment, ELN) if known else None) or segment, now)


def transfer(config: TcpConfig, lossy: Corrupting) -> Pair:
    pair = Pair(config, up=lossy.up, down=lossy.down, octets=True)
    data = Random(1).randbytes(SIZE)
    pair.send(0, data)
    pair.run_until(lambda: pair.received[1] == SIZE)
    assert pair.octets[1] == data
    return pair


# -- ELN -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recovery", ["reno", "newreno", "sack", "smart"])
def test_a_sender_that_is_told_of_corruption_is_much_faster(recovery: str) -> None:
    plain = transfer(LOSSY.but(recovery=recovery), Corrupting(0.03, seed=5))
    told = transfer(LOSSY.but(recovery=recovery, eln="keep-window"), Corrupting(0.03, seed=5))
    counters = told.client.counters
    assert counters.eln_kept > 10
    assert counters.eln_kept <= counters.fast_retransmits
    assert told.now < 0.7 * plain.now
    assert plain.client.counters.eln_kept == 0


@pytest.mark.parametrize("recovery", ["reno", "newreno", "sack"])
def test_retransmitting_at_once_is_no_slower_with_a_small_window(recovery: str) -> None:
    # four segments: most losses cause fewer than three duplicates
    small = LOSSY.but(recovery=recovery, receive_buffer=4000, limited_transmit=False, eln="keep-window")
    kept = transfer(small, Corrupting(0.03, seed=5))
    at_once = transfer(small.but(eln="retransmit"), Corrupting(0.03, seed=5))
    assert at_once.client.counters.timeouts < kept.client.counters.timeouts
    assert at_once.now < kept.now


# -- SMART ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["smart", "bsd-smart"])
def test_smart_repairs_without_timeouts(name: str) -> None:
    config = USER_PROFILES[name].config.but(mss=1000, receive_buffer=30_000)
    lossy = Corrupting(0.02, seed=3, marks=False)
    pair = transfer(config, lossy)
    counters = pair.client.counters
    # a segment goes again once for each time it was lost, but for retransmissions that were lost with nothing behind
    assert counters.retransmits == lossy.losses
    assert counters.timeouts <= 1
    acks = [segment for _, segment in lossy.down.log if not segment.flags & SYN]
    repeated = [segment for before, segment in pairwise(acks) if segment.ack == before.ack]
    assert len(repeated) > 50
    assert [segment for segment in repeated if smart_of(segment) is None] == []
