"""LT-TCP between two connections: what each part does, and who agrees to it."""

from random import Random

import pytest

from common.units import MS, SECOND
from hosts.tcp.config import TcpConfig
from hosts.tcp.profiles import USER_PROFILES
from tcpip.options import LT_PERMITTED, fec_of, fec_option, report_of, report_option
from tcpip.segment import CE, ECT0, SYN, Segment
from tcpip.wire import emit, parse
from tests.harness.endpoints import agreed, bytes_recovered
from tests.hosts.tcp.pair import FLOW, Drop, Pair, Path

LT = USER_PROFILES["lt-tcp"].config
BYTES = 300_000


def lossy(per: float, seed: int = 1) -> Path:
    rng = Random(seed)
    return Path(drop=lambda segment: segment.length > 0 and rng.random() < per, delay_ns=20 * MS)


def transfer(
    config: TcpConfig,
    per: float = 0.0,
    *,
    octets: bool = True,
    server: TcpConfig | None = None,
    drop: Drop | None = None,
) -> Pair:
    """A transfer up over a path that loses data at random, or what `drop` picks."""
    data = Random(9).randbytes(BYTES)
    up = lossy(per) if drop is None else Path(drop=drop, delay_ns=20 * MS)
    # the sequence numbers wrap halfway
    iss = 2**32 - BYTES // 2, 5000
    pair = Pair(config, server_config=server, up=up, down=Path(delay_ns=20 * MS), octets=octets, iss=iss)
    pair.send(0, data if octets else BYTES)
    pair.run()
    assert pair.received[1] == BYTES
    assert not octets or pair.octets[1] == data
    return pair


# -- on the wire ---------------------------------------------------------------------------------------------


def test_options_are_as_documented() -> None:
    fec, report = fec_option(0x01020304, 5, 6, 0x0708, 0x090A), report_option(0x0102, 0x0304, 5)
    assert (fec.kind, fec.data) == (253, b"\xfa\xe0\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a")
    assert (report.kind, report.data) == (253, b"\xfa\xe0\x01\x02\x03\x04\x05")
    segment = Segment(FLOW, 1, 2, 16, 3, 4, b"abcd", extra=(fec,))
    again = parse(emit(segment))
    assert fec_of(again) == (0x01020304, 5, 6, 0x0708, 0x090A)
    assert report_of(again) is None
    ack = parse(emit(Segment(FLOW, 1, 2, 16, 3, extra=(report,))))
    assert (report_of(ack), fec_of(ack)) == ((0x0102, 0x0304, 5), None)
    assert report_of(parse(emit(Segment(FLOW, 1, 2, SYN, 3, extra=(LT_PERMITTED,))))) is None


@pytest.mark.parametrize("timestamps", [True, False])
def test_fec_segments_are_old_data_by_their_numbers_and_fit_the_mtu(timestamps: bool) -> None:
    pair = Pair(LT.but(timestamps=timestamps), up=lossy(0.2), down=Path(delay_ns=20 * MS), octets=True)
    seen: list[Segment] = []

    def look(number: int, segment: Segment) -> None:
        if number == 0 and fec_of(segment) is not None:
            seen.append(segment)
            assert (segment.seq + segment.length - pair.client._sender.una) % 2**32 == 0
        assert len(emit(segment)) <= LT.handshake.mss + 40
        assert sum(2 + len(option.data) for option in segment.extra) <= 40

    pair.sent = look
    pair.send(0, Random(9).randbytes(BYTES))
    pair.run()
    assert len(seen) == pair.client.counters.proactive_sent + pair.client.counters.reactive_sent > 20


@pytest.mark.parametrize("peer", ["sack-ecn", "newreno", "lt-ecn"])
def test_a_peer_without_the_option_sees_a_plain_tcp(peer: str) -> None:
    for configs in ((LT, USER_PROFILES[peer].config), (USER_PROFILES[peer].config, LT)):
        pair = transfer(configs[0], 0.02, server=configs[1])
        assert "fec" not in agreed(pair.client)
        assert "fec" not in agreed(pair.server)
        assert pair.client.counters.proactive_sent == pair.client.counters.reactive_sent == 0
        assert not any(segment.extra for way in pair.ways for _, segment in way.log if not segment.flags & SYN)


def test_without_ecn_losses_reduce_the_window() -> None:
    with_ecn, without = (transfer(LT, 0.1, server=LT.but(ecn=ecn)) for ecn in (True, False))
    assert "fec" in agreed(with_ecn.client)
    assert "fec" in agreed(without.client)
    assert with_ecn.client.ssthresh is None
    assert without.client.ssthresh is not None


# -- its parts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("octets", [True, False])
@pytest.mark.parametrize("per", [0.0, 0.01, 0.1, 0.3])
def test_every_octet_arrives(per: float, octets: bool) -> None:
    pair = transfer(LT, per, octets=octets)
    assert pair.client.counters.timeouts == 0
    assert (bytes_recovered(pair.server) > 0) == (per > 0.005)
    assert pair.client.erasure_rate == pytest.approx(per, abs=0.15)


@pytest.mark.parametrize("seed", [767, 1309, 1638, 1687, 1994, 2161, 4453])
def test_one_timer_runs_when_lost_fec_segments_fill_the_window(seed: int) -> None:
    # with these seeds the persist timer began beside the retransmission timer; both expired at one instant, and the
    # second found its own segment on its way
    rng = Random(seed)
    per, per_of_acks = rng.choice((0.2, 0.3, 0.4)), rng.choice((0, 0.2, 0.4))
    up = Path(drop=lambda segment: rng.random() < per, delay_ns=20 * MS)
    down = Path(drop=lambda segment: rng.random() < per_of_acks, delay_ns=20 * MS)
    pair = Pair(LT, up=up, down=down)
    pair.send(0, 30_000)
    pair.run_until(lambda: pair.received[1] == 30_000)


def test_without_losses_nothing_is_added() -> None:
    pair = transfer(LT, 0.0)
    counters = pair.client.counters
    assert (counters.proactive_sent, counters.reactive_sent, counters.retransmits) == (0, 0, 0)
    assert pair.client.erasure_rate == 0


def test_fec_is_faster_than_sack_that_ignores_losses() -> None:
    names = ("lt-mss", "lt-proactive", "lt-reactive", "lt-tcp")
    times = [transfer(USER_PROFILES[name].config, 0.2).now for name in names]
    assert max(times[1:]) < times[0]
    assert times[3] < 2 * SECOND


def test_later_rounds_of_repairs_do_not_count_on_retransmissions() -> None:
    # 1.1 s; if each round counted on retransmissions under way, as the first one does, 3.9 s
    assert transfer(USER_PROFILES["lt-reactive"].config, 0.3).now < 2 * SECOND


def test_fec_repairs_a_lost_retransmission_before_the_timer() -> None:
    # the tenth segment of data, and its retransmission
    first: list[int] = []

    def drop(segment: Segment) -> bool:
        if not segment.length or fec_of(segment) is not None:
            return False
        if len(first) < 1 and segment.seq - 1001 >= 9 * 1432:
            first.append(segment.seq)
            return True
        return segment.seq in first

    config = USER_PROFILES["lt-reactive"].config.but(initial_window=20)
    pair = transfer(config, drop=drop)
    assert pair.client.counters.reactive_sent >= 1
    assert pair.client.counters.timeouts == 0


def test_holes_wait_for_the_proactive_segments_of_their_block() -> None:
    # most are filled by then: seed 1
    without, with_it = (
        transfer(USER_PROFILES[name].config, 0.1).client.counters for name in ("lt-mss", "lt-proactive")
    )
    assert with_it.retransmits < 0.75 * without.retransmits


def test_segments_get_smaller_with_the_window_and_after_a_timeout() -> None:
    config = USER_PROFILES["lt-mss"].config.but(initial_window=2, mss=1000, timestamps=False)
    sizes = [segment.length for _, segment in transfer(config, octets=False).ways[0].log if segment.length]
    # a window of 2000 octets is ten segments of 200
    assert sizes[:10] == [200] * 10
    assert max(sizes) == 1000


def test_all_segments_with_payload_are_ecn_capable() -> None:
    pair = transfer(LT, 0.2, octets=False)
    assert pair.client.counters.retransmits > 0
    assert {segment.ecn for way in pair.ways for _, segment in way.log if segment.length} == {ECT0}


def test_losses_do_not_reduce_the_window_and_ecn_does() -> None:
    first = iter([CE])

    def mark(segment: Segment) -> bool:
        if segment.length and segment.seq > 200_000:
            segment.ecn = next(first, segment.ecn)
        return False

    config = USER_PROFILES["lt-ecn"].config
    assert transfer(config, 0.01).client.ssthresh is None
    pair = transfer(config, octets=False, drop=mark)
    assert pair.client.counters.ecn_reductions == 1
    assert pair.client.ssthresh is not None


def duplicates_and_repairs(name: str) -> tuple[int, int]:
    pair = transfer(USER_PROFILES[name].config, 0.1)
    return pair.client.counters.dupacks, pair.client.counters.reactive_sent


def test_each_duplicate_ack_permits_reactive_segments_in_2005_and_ours_counts_them() -> None:
    # up to 25 % losses R is 1 or 2; a duplicate of a block that is still being sent permits none
    dupacks, reactive = duplicates_and_repairs("lt-reactive-2005")
    assert dupacks / 2 < reactive <= 3 * dupacks
    dupacks, reactive = duplicates_and_repairs("lt-reactive")
    assert reactive < dupacks / 2


def test_window_stays_in_recovery_in_2005() -> None:
    # ECN only: a loss has no effect on the window, and repairs do not open it
    config = USER_PROFILES["lt-ecn-2005"].config
    pair = transfer(config, 0.01)
    assert pair.client.counters.fast_retransmits > 0
    assert pair.client.counters.ecn_reductions == 0
    grown = transfer(config.but(grow_in_recovery=True), 0.01)
    assert pair.client.cwnd < grown.client.cwnd
