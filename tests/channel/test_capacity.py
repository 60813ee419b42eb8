"""DAMA invariants: ceilings, volumes, timeouts, and nothing left behind."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channel.capacity.rbdc import Rbdc, RbdcOptions
from channel.capacity.superframes import DamaOptions, Superframe
from channel.capacity.vbdc import Vbdc, VbdcOptions
from channel.framing import aal5
from channel.hop import Hop
from tests.harness.hop_driving import MS, SECOND, Traffic, drain, drive_punctually, make_hop

CEILING = 128_000
FULL_PACKET = 1_450

superframes_ms = st.sampled_from([53, 265, 530, 100])
traffic = st.lists(
    st.tuples(st.one_of(st.just(0), st.integers(0, 3 * SECOND)), st.integers(1, 1_450)), min_size=1, max_size=40
)


def saturate(hop: Hop[int], until: int) -> None:
    """Keep the MAC buffer as full as whole packets make it."""
    now = 0
    while now < until:
        while hop.room() >= FULL_PACKET:
            hop.handle_frame(0, FULL_PACKET, now)
        deadline = hop.next_deadline()
        assert deadline is not None
        now = deadline
        hop.handle_deadline(now)
        drain(hop, now)


vbdc_options = st.builds(VbdcOptions, superframe_ms=superframes_ms, wait_ms=st.tuples(st.just(0), st.integers(0, 800)))
rbdc_options = st.builds(
    RbdcOptions, superframe_ms=superframes_ms, timeout_ms=st.integers(1, 3_000), drain_ms=st.integers(1, 3_000)
)


@given(traffic, st.integers(20_000, 300_000), vbdc_options | rbdc_options, st.integers(0, 2**32))
@settings(max_examples=160, deadline=None)
def test_all_is_served_within_the_ceiling(
    frames: Traffic, ceiling: int, options: VbdcOptions | RbdcOptions, seed: int
) -> None:
    """VBDC serves never more than was asked for."""
    capacity = (
        Rbdc(ceiling, options) if isinstance(options, RbdcOptions) else Vbdc(ceiling, options, random.Random(seed))
    )
    hop = make_hop(capacity, aal5, propagation_ns=0, buffer_bytes=28_800)

    def check(now: int) -> None:
        assert hop.wire_bits * SECOND <= ceiling * now
        assert capacity.rate_bps() <= ceiling
        if isinstance(capacity, Vbdc):
            assert hop.wire_bits <= capacity.granted_bits <= capacity.requested_bits

    _, accepted = drive_punctually(hop, frames, check)
    assert hop.wire_bits == sum(aal5(nbytes) for (_, nbytes), taken in zip(frames, accepted, strict=True) if taken)
    if isinstance(capacity, Vbdc):
        # What was asked for beyond the traffic is at most the rounding of each request to whole slots.
        assert capacity.granted_bits == capacity.requested_bits
    assert hop.next_deadline() is None


@given(superframes_ms, st.integers(1, 10**6), st.integers(1, 10**12))
def test_superframe_arithmetic_is_exact(superframe_ms: int, slots: int, at: int) -> None:
    superframe = Superframe(superframe_ms * MS)
    rate = superframe.rate_bps(slots)
    assert rate * superframe.length_ns == slots * superframe.slot_bits * SECOND
    assert superframe.slots_within(rate) == slots
    start = superframe.at_or_after(at)
    assert start % superframe.length_ns == 0
    assert at <= start < at + superframe.length_ns


def test_defaults_make_the_papers_rate_exactly() -> None:
    superframe = DamaOptions().superframe()
    assert superframe.rate_bps(superframe.slots_within(CEILING)) == CEILING


def test_a_lone_packet_takes_one_vbdc_cycle() -> None:
    """Round trips of such packets, with 250 ms each way, are what the paper calls typical: 1.3 to 2 s."""
    for phase, sent_at in ((0, 795 * MS), (1, 1_060 * MS), (265 * MS, 1_060 * MS)):
        hop = make_hop(Vbdc(CEILING, VbdcOptions(), random.Random(0)), aal5)
        assert hop.handle_frame(0, FULL_PACKET, phase)
        hop.handle_deadline(sent_at - 1)
        assert hop.frames == 0
        hop.handle_deadline(sent_at)
        assert hop.frames == 1


def granted(capacity: Rbdc | Vbdc, backlog: dict[int, int], superframes: int) -> dict[int, int]:
    """Report these slots at superframes of 265 ms; return the slots granted in each superframe, where there are any.

    What VBDC grants is served at once.
    """
    found = {}
    for n in range(superframes):
        if n in backlog:
            capacity.handle_backlog(backlog[n] * 424, n * 265 * MS)
        capacity.handle_deadline(n * 265 * MS)
        if capacity.rate_bps():
            found[n] = capacity.rate_bps() // 1_600
            if isinstance(capacity, Vbdc):
                capacity.handle_backlog(0, n * 265 * MS + 1)
    return found


def test_vbdc_waits_for_other_terminals() -> None:
    capacity = Vbdc(CEILING, VbdcOptions(wait_ms=(1000, 1000)), random.Random(0))
    # 0.5 s of signalling and 1 s of waiting end in the sixth superframe
    assert granted(capacity, {0: 1}, 20) == {6: 1}


def test_vbdc_requests_stay_in_order() -> None:
    class Waits(random.Random):
        def __init__(self) -> None:
            super().__init__(0)
            self.waits = [5 * SECOND, 0]

        def randint(self, a: int, b: int) -> int:
            return self.waits.pop(0)

    capacity = Vbdc(CEILING, VbdcOptions(wait_ms=(0, 5000)), Waits())
    # the first is due at 5.5 s, in superframe 21; the second, sent without a wait, comes with it
    assert granted(capacity, {0: 10, 1: 30}, 25) == {21: 30}


@pytest.mark.parametrize("packets", [1, 2, 7])
def test_vbdc_asks_once_for_what_waits(packets: int) -> None:
    capacity = Vbdc(CEILING, VbdcOptions(), random.Random(0))
    drive_punctually(make_hop(capacity, aal5, buffer_bytes=28_800), [(0, FULL_PACKET)] * packets)
    # The first packet wakes the terminal; the others are new at the next superframe.
    assert capacity.requested_bits == packets * aal5(FULL_PACKET)


def test_the_papers_mac_buffer_lets_vbdc_fill_the_link() -> None:
    """SLACP section 4 found 14400 bytes enough; a third of it must not be."""
    until = 60 * SECOND
    shares = {}
    for buffer_bytes in (14_400, 4_800):
        hop = make_hop(
            Vbdc(CEILING, VbdcOptions(), random.Random(0)), aal5, propagation_ns=0, buffer_bytes=buffer_bytes
        )
        saturate(hop, until)
        shares[buffer_bytes] = hop.wire_bits * SECOND / (CEILING * until)
    assert shares[14_400] > 0.95
    assert shares[4_800] < 0.5


def test_rbdc_reaches_its_ceiling_and_keeps_it() -> None:
    assert granted(Rbdc(CEILING, RbdcOptions()), {0: 10**7}, 50) == dict.fromkeys(range(2, 50), 80)


@pytest.mark.parametrize("timeout_ms", [796, 1_000, 1_060])
def test_rbdc_rate_outlives_its_backlog_until_the_timeout(timeout_ms: int) -> None:
    capacity = Rbdc(CEILING, RbdcOptions(timeout_ms=timeout_ms, drain_ms=265))
    capacity.handle_backlog(31 * 424, 0)
    capacity.handle_deadline(0)
    capacity.handle_backlog(0, 1)
    rates = {}
    while (at := capacity.next_deadline()) is not None:
        capacity.handle_deadline(at)
        rates[at // MS] = capacity.rate_bps()
    # In force from 530 ms; timed out by 1590 ms and not by 1325 ms, so the superframe at 1590 ms is without it.
    assert rates == {265: 0, 530: 49_600, 795: 49_600, 1060: 49_600, 1325: 49_600, 1590: 0}


def test_rbdc_updates_replace_earlier_requests() -> None:
    capacity = Rbdc(CEILING, RbdcOptions(drain_ms=265))
    assert granted(capacity, {0: 10, 1: 80, 2: 3, 3: 200}, 6) == {2: 10, 3: 80, 4: 3, 5: 80}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Superframe(7), "whole number of bit/s"),
        (lambda: Rbdc(1_599, RbdcOptions()), "rate_bps is 1599; one slot per superframe already takes 1600 bit/s"),
        (lambda: RbdcOptions(timeout_ms=1e-9), "timeout_ms is 1e-09"),
        (lambda: RbdcOptions(drain_ms=1e-9), "drain_ms is 1e-09"),
        (lambda: Vbdc(0, VbdcOptions(), random.Random(0)), "rate_bps is 0; one slot"),
        (lambda: DamaOptions(signalling_ms=1e-9), "signalling_ms is 1e-09"),
        (lambda: VbdcOptions(superframe_ms=7), "superframe_ms is 7: .* whole number of bit/s"),
    ],
)
def test_a_wrong_parameter_is_named(make: Callable[[], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()
