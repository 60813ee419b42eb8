"""RACK (RFC 8985 sections 5 and 6; steps are those of 6.2), rule by rule, and how a reduction is taken back."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from common.units import MS
from hosts.tcp.profiles import USER_PROFILES
from hosts.tcp.recovery.rack import Rack
from tests.hosts.tcp.pair import Chaos, Pair, Path, lose
from tests.hosts.tcp.script import PLAIN, Case, MakeScript, Script, by_script, window_of

RACK = PLAIN.but(recovery="rack")


def window_of_10(make: MakeScript, nbytes: int = 100_000) -> Script:
    """1:10001 left at 100 ms; SRTT is 100 ms."""
    return window_of(10, make, RACK, nbytes)


@by_script(
    """
    a segment is lost a reordering window after a later one has arrived
        # step 5: sent at 100, round trip 100, and a quarter of the least round trip
        200 < ack 1 sack 1001:2001 > nothing
        225 > 1:1001 | fast_retransmits 1, cwnd 9000, ssthresh 5000
    three arrived segments need no reordering window
        # step 4, segs_sacked >= DupThresh
        200 < ack 1 sack 1001:3001 > nothing
        201 < ack 1 sack 1001:4001 > 1:1001 | fast_retransmits 1
    in recovery there is no reordering window
        # step 4; 1 and 6 are lost. With a reordering window 5001:6001 would be lost at 226 only
        200 < ack 1 sack 1001:4001 > 1:1001
        201 < ack 1 sack 6001:7001 1001:5001 > 5001:6001 | fast_retransmits 1, ssthresh 5000
    reordering seen makes later losses wait
        # steps 3 and 4: 1:1001 was late. 2001:3001 is lost: three above have arrived, and yet there is a window
        200 < ack 1 sack 1001:2001 > nothing
        210 < ack 2001 > 10001:11001, 11001:12001, 12001:13001
        220 < ack 2001 sack 3001:7001 > nothing
        # sent at 100, latest round trip 120, a quarter of 100
        245 > 2001:3001 | fast_retransmits 1
        # in recovery, too: the latest round trip is 146
        246 < ack 2001 sack 8001:9001 3001:7001 > nothing
        271 > 7001:8001 | fast_retransmits 1
    a lost retransmission is found by a segment sent after it
        # section 3.1; RFC 6675 would wait for the timer
        200 < ack 1 sack 1001:6001 > 1:1001
        210 < ack 1 sack 1001:10001 > 10001:11001, 11001:12001, 12001:13001, 13001:14001
        310 < ack 1 sack 1001:11001 > 1:1001, 14001:15001 | ssthresh 5000, timeouts 0, fast_retransmits 1
    a receiver that reneges is sent everything again [initial_window=4, nbytes=4000]
        # RFC 2018 section 8
        200 < ack 1 sack 1001:4001 > 1:1001
        300 < ack 1001 > nothing
        1300 > 1001:2001 | timeouts 1
        1400 < ack 2001 > 2001:3001, 3001:4001
        1500 < ack 4001 > nothing | drained
    d sacks of all retransmissions take the reduction back
        # RFC 3708 section 2
        200 < ack 1 sack 2001:6001 > 1:1001 | ssthresh 5000
        201 < ack 1 sack 2001:8001 > 1001:2001, 10001:11001
        220 < ack 10001 > ... | cwnd 5000
        300 < ack 10001 sack 1:1001 > ... | cwnd 5000
        301 < ack 10001 sack 1001:2001 > ... | cwnd 10000, ssthresh none, reductions_taken_back 1
    a spurious timeout leaves the window as it was [frto=True, nbytes=6000, initial_window=6]
        # RFC 5682 section 3.1 finds it; the window is RFC 4015's
        300 > 5001:6001
        write 50000
        1300 > 1:1001 | cwnd 1000, ssthresh 3000
        1400 < ack 1001 > 6001:7001, 7001:8001
        1410 < ack 2001 > ... | spurious_timeouts 1, cwnd 6000, ssthresh none
    without sack it is newreno [peer='mss 1000', initial_window=8]
        200 < ack 1 x3 > 1:1001 | fast_retransmits 1
        300 < ack 2001 > 2001:3001
    nothing but the first segment is sent again beyond the peers window
        200 < ack 1 sack 4001:10001 win 2000 > 1:1001, 1001:2001
        210 < ack 1 sack 4001:10001 win 1900 > nothing
        300 < ack 2001 sack 4001:10001 win 5000 > 2001:3001, 3001:4001
    the first segment is sent again whatever the window
        200 < ack 1 sack 4001:10001 win 500 > 1:1001
    a retransmission late by a segment shows no reordering
        # step 3: an acknowledged retransmission lies below the highest octet arrived, as it must
        200 < ack 1 sack 1001:4001 > 1:1001
        300 < ack 4001 > ...
        301 < ack 10001 > ... | not _reordering_seen
    an ack of an original gives no round trip to its retransmission
        # step 2: a round trip of 5 ms on a path of 100 is none
        200 < ack 1 sack 1001:4001 > 1:1001
        205 < ack 4001 > ... | _rtt_ns 100000000, _sent_at 100000000
    d sacks beyond the retransmissions are not believed
        # the network has doubled a segment
        200 < ack 1001, ack 1001 sack 1:1001 > ... | _multiple 1
    """
)
def test_rack(script: MakeScript, case: Case) -> None:
    case.play(script, RACK, initial_window=10, nbytes=100_000, peer="mss 1000 sackok")


@by_script(
    """
    the echo of an original takes the reduction back
        # RFC 3522: 1:1001 was only late
        200 < ack 1 sack 1001:4001 ts 2/100 > 1:1001 | ssthresh 5000
        # and one segment of slow start
        210 < ack 4001 ts 3/100 > ... | ssthresh none, cwnd 11000
    the echo of a retransmission does not
        200 < ack 1 sack 1001:4001 ts 2/100 > 1:1001 | ssthresh 5000
        300 < ack 4001 ts 3/200 > ... | ssthresh 5000
    nor does an echo of the time between two retransmissions
        200 < ack 1 sack 1001:4001 ts 2/100 > 1:1001 | ssthresh 5000
        210 < ack 1 sack 5001:8001 1001:4001 ts 3/100 > 4001:5001, ...
        300 < ack 4001 sack 5001:8001 ts 4/205 > ... | ssthresh 5000
    echo and f rto together leave the window as it was [initial_window=6, frto=True]
        # the echo alone would give back an ssthresh without bound, which F-RTO makes the window
        300 > 6001:7001
        1300 > 1:1001 | cwnd 1000, ssthresh 3000
        1400 < ack 1001 ts 2/100 > 7001:8001, 8001:9001
        1410 < ack 2001 ts 3/100 > ... | spurious_timeouts 1, cwnd 6000, ssthresh none
    """
)
def test_rack_with_timestamps(script: MakeScript, case: Case) -> None:
    config = RACK.but(mss=1012, timestamps=True)
    case.play(script, config, initial_window=10, nbytes=100_000, peer="mss 1012 sackok ts 1/0")


def test_d_sacks_widen_the_reordering_window_once_a_round(script: MakeScript) -> None:
    # step 4: 1:1001 was late and sent again for nothing, so what is lost later waits for half of the least round trip
    s = window_of_10(script)
    s.inject(200, "ack 1 sack 1001:2001", sends=[])
    s.expect(225, "1:1001")
    s.inject(230, "ack 2001", sends=...)
    recovery = s.connection._sender.recovery
    assert isinstance(recovery, Rack)
    recovery._persist = 1
    s.inject(300, "ack 2001 sack 1:1001", "ack 2001 sack 1:1001", sends=...)
    # for another sixteen recoveries, of which this one was the first
    assert (recovery._multiple, recovery._persist) == (2, 15)
    recovery._reordering_seen = True
    assert recovery._reordering_window_ns() == 50 * MS


def test_the_reordering_window_never_exceeds_the_smoothed_round_trip(script: MakeScript) -> None:
    s = window_of_10(script)
    s.inject(200, "ack 1001", sends=...)
    recovery = s.connection._sender.recovery
    assert isinstance(recovery, Rack)
    recovery._reordering_seen, recovery._multiple = True, 100
    assert recovery._reordering_window_ns() == s.connection.srtt_ns


def test_sixteen_recoveries_without_d_sack_reset_the_reordering_window() -> None:
    # step 4, reo_wnd_persist
    config = RACK.but(limited_transmit=True)
    pair = Pair(config, up=Path(drop=lose(*range(50, 900, 50))))
    pair.send(0, 1_000_000)
    pair.run_until(lambda: pair.client.connected)
    recovery = pair.client._sender.recovery
    assert isinstance(recovery, Rack)
    recovery._multiple = 5
    multiples: dict[int, int] = {}

    def check() -> None:
        if not recovery.active:
            multiples[pair.client.counters.fast_retransmits] = recovery._multiple

    pair.watch = check
    pair.run()
    assert [multiples[number] for number in range(18)] == [5] * 16 + [1, 1]


def test_a_timeout_leaves_what_was_sent_a_moment_ago_in_flight(script: MakeScript) -> None:
    s = script(RACK.but(initial_window=10), peer="mss 1000 sackok")
    s.write(1000, sends=["1:1001"])
    s.inject(200, "ack 1001", sends=[])
    s.write(5000, sends=...)
    # the tail loss probe starts the timer again
    s.expect(400, "5001:6001")
    s.expect(1350)
    s.write(2000, sends=["6001:7001", "7001:8001"])
    s.expect(1400, "1001:2001", timeouts=1, cwnd=1000)
    recovery = s.connection._sender.recovery
    assert isinstance(recovery, Rack)
    # 2001:6001 were sent a round trip and more ago
    assert (recovery.sent.lost, recovery.sent.in_flight) == (4000, 3000)
    s.inject(1440, "ack 2001 sack 6001:8001", sends=["2001:3001", "3001:4001"], cwnd=2000)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    loss=st.sampled_from([0.0, 0.02, 0.1, 0.3]),
    jitter_ms=st.sampled_from([0, 5, 60]),
    frto=st.booleans(),
    timestamps=st.booleans(),
)
def test_every_outstanding_octet_is_in_flight_or_lost(
    seed: int, loss: float, jitter_ms: int, frto: bool, timestamps: bool
) -> None:
    config = USER_PROFILES["modern"].config.but(
        mss=1000, frto=frto, timestamps=timestamps, syn_retries=30, data_retries=40
    )
    ways = [Chaos(Random(seed + way), loss=loss, repeat=loss / 2, jitter_ns=jitter_ms * MS) for way in range(2)]
    pair = Pair(config, up=ways[0], down=ways[1], octets=True)
    data = Random(seed).randbytes(60_000)
    pair.send(0, data)

    def check() -> None:
        sender = pair.client._sender
        if isinstance(sender.recovery, Rack):
            sent = sender.recovery.sent
            assert sent.in_flight >= 0
            # a FIN counts as arrived with the octets in front of it
            assert sender.flight - sender.board.sacked - sent.in_flight - sent.lost in (0, 1)
            assert sender.smss <= sender.growth.cwnd <= 200_000

    pair.watch = check
    pair.run()
    assert pair.octets[1] == data
