"""The base station's filter, rule by rule, with packets as octets and as objects."""

from typing import Any

import pytest

from linklayer.filters.snoop import Limits
from tcpip.access import Access, Objects, Octets
from tcpip.options import SMART_PERMITTED, has_eln, smart_of, smart_option
from tcpip.segment import ACK, ECE, FIN, PSH, RST, SYN, Flow, Segment, SynOptions
from tests.linklayer.base_station import ACCESSES, DATA, MS, SIZE, Base

SCHEMES = ("ll", "ll-smart", "snoop", "snoop-smart")
AWARE = ("snoop", "snoop-smart")
#: segments after the first one, which gives the round-trip time
S = [SIZE * number for number in range(12)]

by_access = pytest.mark.parametrize("access", ACCESSES, ids=lambda access: type(access).__name__)
by_scheme = pytest.mark.parametrize("scheme", SCHEMES)
by_aware = pytest.mark.parametrize("scheme", AWARE)
#: where numbers begin: one of them has the wrap in the middle of the window
by_first = pytest.mark.parametrize("first", [0, 2**32 - 3500], ids=["0", "wrap"])


def base(access: Access, scheme: str, **options: Any) -> Base:
    """A station whose first segment is acknowledged after 20 ms."""
    made = Base(access, scheme, **options)
    made.measure()
    return made


# -- local retransmission ------------------------------------------------------------------------------------


@by_access
@by_scheme
@by_first
def test_the_second_dupack_brings_the_very_packet_again_once(access: Access, scheme: str, first: int) -> None:
    station = base(access, scheme, first=first)
    lost, *_ = station.window(*S[1:7])
    assert station.up(station.ack(S[1]))[1] == []
    again = station.up(station.ack(S[1]))[1]
    assert len(again) == 1
    assert again[0] is lost
    for _ in range(3):
        assert station.up(station.ack(S[1]))[1] == []
    assert station.filter.counters.retransmissions == 1
    assert station.filter.counters.retransmitted_bytes == len(lost)


@by_access
@pytest.mark.parametrize("scheme", ["ll", "ll-smart"])
def test_ll_passes_every_dupack(access: Access, scheme: str) -> None:
    station = base(access, scheme)
    station.window(*S[1:7])
    for _ in range(5):
        dupack = station.ack(S[1])
        assert station.up(dupack)[0] == [dupack]
    assert station.filter.counters.suppressed_dupacks == 0


@by_access
@by_aware
def test_snoop_passes_none_for_what_it_repairs(access: Access, scheme: str) -> None:
    station = base(access, scheme)
    station.window(*S[1:7])
    assert [station.up(station.ack(S[1]))[0] for _ in range(5)] == [[]] * 5
    assert station.filter.counters.suppressed_dupacks == 5
    new = station.ack(S[7])
    assert station.up(new) == ([new], [])


@by_access
@by_scheme
def test_a_partial_new_ack_brings_the_next_hole_at_once(access: Access, scheme: str) -> None:
    station = base(access, scheme)
    packets = station.window(*S[1:8])
    for _ in range(2):
        station.up(station.ack(S[1]))
    # the third one is lost, too
    station.wait(20 * MS)
    partial = station.ack(S[3])
    passed, again = station.up(partial)
    assert passed == [partial]
    assert again == [packets[2]]


@by_access
@pytest.mark.parametrize("scheme", ["ll-smart", "snoop-smart"])
@pytest.mark.parametrize(("ns", "lost"), [(19 * MS, False), (20 * MS, True)])
def test_with_smart_an_ack_too_soon_for_a_repair_was_caused_by_the_first_copy(
    access: Access, scheme: str, ns: int, lost: bool
) -> None:
    station = base(access, scheme)
    packets = station.window(*S[1:5])
    assert station.up(station.ack(S[1], extra=(smart(S[2]),)))[1] == [packets[0]]
    (last,) = station.window(S[5])
    # the third may have arrived, and the ACK that named it be lost
    assert station.up(station.ack(S[1], extra=(smart(S[4]),)))[1] == [packets[2]]
    station.wait(ns)
    # what went between is lost if the second copy has arrived, else it is on its way
    assert station.up(station.ack(S[5]))[1] == ([last] if lost else [])


@by_access
@by_scheme
def test_a_new_ack_behind_which_all_was_sent_after_the_repair_brings_nothing(access: Access, scheme: str) -> None:
    station = base(access, scheme)
    station.window(*S[1:4])
    for _ in range(2):
        station.up(station.ack(S[1]))
    station.window(*S[4:6])
    assert station.up(station.ack(S[4]))[1] == []


@by_access
@by_scheme
def test_new_acks_without_dupacks_bring_nothing(access: Access, scheme: str) -> None:
    station = base(access, scheme)
    station.window(*S[1:9])
    for at in (S[2], S[3], S[6], S[9]):
        passed, again = station.up(station.ack(at))
        assert len(passed) == 1
        assert again == []
    assert station.wait(10_000 * MS) == []
    assert station.filter.held_bytes == 0


@by_access
@by_scheme
def test_a_segment_nobody_acknowledges_is_repaired_after_the_least_timeout(access: Access, scheme: str) -> None:
    station = base(access, scheme)
    (lost,) = station.window(S[1])
    assert station.wait(200 * MS - 1) == []
    assert station.wait(1) == [lost]
    assert station.guesses() == [(S[1], "corruption")]
    assert station.wait(200 * MS) == [lost]
    assert station.guesses() == []


@by_access
def test_the_timeout_follows_the_round_trip_time(access: Access) -> None:
    station = Base(access)
    station.measure(400 * MS)
    station.window(S[1])
    # srtt + 4 * (srtt / 2)
    assert station.wait(1200 * MS - 1) == []
    assert len(station.wait(1)) == 1


@by_access
def test_before_the_first_sample_the_timeout_is_a_second(access: Access) -> None:
    station = Base(access)
    station.window(0)
    assert station.wait(1000 * MS - 1) == []
    assert len(station.wait(1)) == 1


@by_access
def test_round_trips_of_segments_sent_again_are_no_samples(access: Access) -> None:
    station = base(access, "snoop")
    for number in (1, 2, 3):
        station.window(S[number])
        assert len(station.wait(390 * MS)) == 1
        station.up(station.ack(S[number + 1]))
    station.window(S[4])
    # still the least: 390 ms were never taken for a round trip
    assert len(station.wait(200 * MS)) == 1


@by_access
@by_scheme
def test_after_so_many_tries_a_segment_is_its_senders(access: Access, scheme: str) -> None:
    station = base(access, scheme, limits=Limits(tries=3))
    packets = station.window(*S[1:5])
    assert station.wait(10_000 * MS) == [packets[0]] * 3
    dupack = station.ack(S[1])
    assert station.up(dupack) == ([dupack], [])
    # it is not the wired network's loss, and nobody says so
    assert station.guesses() == [(S[1], "corruption")]
    # the sender's own goes through, and is looked after again
    again = station.data(S[1])
    assert station.down(again) == [again]
    assert station.wait(200 * MS * 8) != []


@by_access
def test_local_timers_expire_at_ticks_of_a_clock(access: Access) -> None:
    station = Base(access, "snoop", limits=Limits(tick_ns=200 * MS))
    # the first round trip ends at 20 ms
    station.measure()
    station.now = 250 * MS
    packets = station.window(S[1])
    # 450 ms is no tick
    assert station.wait(349 * MS) == []
    assert station.wait(MS) == packets
    assert station.now == 600 * MS


@by_access
def test_many_expiries_in_a_row_wait_longer_and_longer_up_to_a_limit(access: Access) -> None:
    limits = Limits(tries=12)
    station = base(access, "snoop", limits=limits)
    station.window(S[1])
    times = []
    for _ in range(12):
        while not station.wait(MS):
            pass
        times.append(station.now)
    gaps = [(later - sooner) // MS for sooner, later in zip([20 * MS, *times], times, strict=False)]
    assert gaps == [200] * 6 + [400, 800] + [1600] * 4


# -- selective ACKs ------------------------------------------------------------------------------------------


def smart(at: int, first: int = 0) -> Any:
    return smart_option((at + first) % 2**32, SIZE)


@by_access
@pytest.mark.parametrize("scheme", ["ll-smart", "snoop-smart"])
@by_first
@pytest.mark.parametrize("how", ["SMART", "SACK"])
def test_all_holes_below_what_has_arrived_are_repaired_at_the_first_dupack(
    access: Access, scheme: str, first: int, how: str
) -> None:
    station = base(access, scheme, first=first)
    packets = station.window(*S[1:8])
    says: dict[str, Any] = {"extra": (smart(S[4], first),)} if how == "SMART" else {"sack": ((S[4], S[5]),)}
    passed, again = station.up(station.ack(S[1], **says))
    assert len(passed) == (scheme == "ll-smart")
    assert again == packets[:3]
    # once each: until their timer expires, further news bring the new hole alone
    says = {"extra": (smart(S[6], first),)} if how == "SMART" else {"sack": ((S[6], S[7]), (S[4], S[5]))}
    assert station.up(station.ack(S[1], **says))[1] == [packets[4]]
    assert station.guesses() == [(S[number], "corruption") for number in (1, 2, 3, 5)]


@by_access
@pytest.mark.parametrize("scheme", ["ll-smart", "snoop-smart"])
def test_holes_repaired_in_vain_are_repaired_again_by_the_timer(access: Access, scheme: str) -> None:
    station = base(access, scheme)
    packets = station.window(*S[1:6])
    station.up(station.ack(S[1], sack=((S[4], S[5]),)))
    assert station.wait(200 * MS) == packets[:3]


@by_access
@pytest.mark.parametrize("scheme", ["ll-smart", "snoop-smart"])
def test_a_repair_that_is_lost_waits_for_its_timer(access: Access, scheme: str) -> None:
    station = base(access, scheme)
    lost, _ = station.window(*S[1:3])
    assert station.up(station.ack(S[1], sack=((S[2], S[3]),)))[1] == [lost]
    station.window(S[3], S[4])
    # dupacks of what was sent behind the repair
    for right in (S[4], S[5]):
        assert station.up(station.ack(S[1], sack=((S[2], right),)))[1] == []
    assert station.wait(200 * MS - 1) == []
    assert station.wait(1) == [lost]


@by_access
def test_what_has_arrived_is_not_sent_again(access: Access) -> None:
    station = base(access, "snoop-smart")
    packets = station.window(*S[1:6])
    station.up(station.ack(S[1], sack=((S[2], S[4]), (S[5], S[6]))))
    assert station.up(station.ack(S[4], sack=((S[5], S[6]),)))[1] == []
    # of what is left only the hole is here
    assert station.wait(200 * MS) == [packets[3]]
    station.up(station.ack(S[6]))
    assert station.filter.held_bytes == 0


@by_access
@pytest.mark.parametrize("scheme", ["ll-smart", "snoop-smart"])
@pytest.mark.parametrize("how", ["dupacks", "timer"])
def test_what_its_receiver_has_dropped_again_is_repaired(access: Access, scheme: str, how: str) -> None:
    station = base(access, scheme)
    packets = station.window(*S[1:4])
    station.up(station.ack(S[1], sack=((S[2], S[4]),)))
    station.wait(20 * MS)
    # a kernel short of memory prunes what came out of order
    assert station.up(station.ack(S[2]))[1] == []
    if how == "timer":
        assert station.wait(200 * MS) == [packets[1]]
    else:
        assert station.up(station.ack(S[2]))[1] == []
        assert station.up(station.ack(S[2]))[1] == [packets[1]]


@by_access
def test_plain_snoop_takes_no_advice(access: Access) -> None:
    station = base(access, "snoop")
    packets = station.window(*S[1:8])
    assert station.up(station.ack(S[1], sack=((S[4], S[5]),)))[1] == []
    assert station.up(station.ack(S[1], sack=((S[4], S[6]),)))[1] == [packets[0]]


@by_access
@by_scheme
def test_the_answer_to_a_duplicate_is_no_dupack(access: Access, scheme: str) -> None:
    station = base(access, scheme)
    station.window(*S[1:5])
    station.up(station.ack(S[3]))
    # RFC 2883: the first block lies below the acknowledgement; SMART names it likewise
    for ack in (station.ack(S[3], sack=((S[1], S[2]),)), station.ack(S[3], extra=(smart(S[1]),))):
        for _ in range(3):
            passed, again = station.up(ack)
            assert len(passed) == 1
            assert again == []
    assert station.guesses() == []


@by_access
@pytest.mark.parametrize("block", [(S[9], S[11]), (S[4], S[4]), (S[5], S[4]), (S[1] + 2**31, S[1] + 2**31 + 5)])
def test_blocks_of_what_was_never_sent_say_nothing(access: Access, block: tuple[int, int]) -> None:
    station = base(access, "snoop-smart")
    station.window(*S[1:6])
    ack = station.ack(S[1], sack=(block,))
    assert station.up(ack) == ([ack], [])


@by_access
def test_what_the_tagger_added_is_taken_away(access: Access) -> None:
    for scheme, stripped in (("snoop-smart", True), ("ll-smart", True), ("snoop", False), ("ll", False)):
        station = base(access, scheme)
        station.window(S[1])
        ack = station.ack(S[2], extra=(smart(S[1]),))
        (passed,) = station.up(ack)[0]
        segment = access.view(passed)
        assert segment is not None
        assert (smart_of(segment) is None) == stripped
        assert (passed is ack) != stripped
        assert segment.ack == S[2]
        assert not has_eln(segment)


@by_access
def test_a_fixed_host_that_asked_for_smart_options_gets_them(access: Access) -> None:
    station = Base(access, "snoop-smart")
    syn = station.data(-1 % 2**32, 0, SYN, syn=SynOptions(1460), extra=(SMART_PERMITTED,))
    assert station.down(syn) == [syn]
    station.window(0, S[1])
    ack = station.ack(S[1], extra=(smart(0),))
    assert station.up(ack) == ([ack], [])
    assert station.filter.poll_from_link() is None


# -- what passes ---------------------------------------------------------------------------------------------


@by_access
@by_aware
def test_what_is_no_dupack_passes_during_a_repair(access: Access, scheme: str) -> None:
    station = base(access, scheme)
    station.window(*S[1:7])
    for _ in range(2):
        station.up(station.ack(S[1]))
    for packet in (
        station.ack(S[1], length=10, payload=None if isinstance(access, Objects) else bytes(10)),
        station.ack(S[1], flags=ACK | FIN),
        station.ack(S[1], window=700),
        station.ack(S[1], window=0),
        station.ack(S[1], window=700),
        station.ack(0),
    ):
        assert station.up(packet) == ([packet], [])
    rst = station.ack(S[1], flags=RST | ACK)
    assert station.up(rst) == ([rst], [])
    assert station.filter.held_bytes == 0


@by_access
@by_aware
def test_data_of_the_mobile_host_acknowledges_and_asks_for_nothing(access: Access, scheme: str) -> None:
    station = base(access, scheme)
    packets = station.window(*S[1:5])
    carried: dict[str, Any] = {"length": 10, "payload": None if isinstance(access, Objects) else bytes(10)}
    for _ in range(4):
        packet = station.ack(S[1], **carried)
        assert station.up(packet) == ([packet], [])
    for _ in range(2):
        station.up(station.ack(S[1]))
    station.wait(20 * MS)
    partial = station.ack(S[3], **carried)
    assert station.up(partial) == ([partial], [packets[2]])


@by_access
@by_scheme
def test_dupacks_for_what_is_not_cached_pass_and_blame_the_wired_network_once(access: Access, scheme: str) -> None:
    station = base(access, scheme)
    # the second one was lost on its way here
    station.window(S[1], *S[3:7])
    assert len(station.up(station.ack(S[2]))[0]) == 1
    for _ in range(4):
        dupack = station.ack(S[2], sack=((S[3], S[4]),))
        assert station.up(dupack) == ([dupack], [])
    assert station.guesses() == [(S[2], "congestion")]
    # none of the others is sent again, though nobody has acknowledged it
    assert station.wait(5_000 * MS) == []


@by_access
@by_aware
def test_what_its_sender_sends_again_is_left_to_it_and_starts_anew(access: Access, scheme: str) -> None:
    station = base(access, scheme)
    station.window(*S[1:5])
    for _ in range(3):
        station.up(station.ack(S[1]))
    again = station.data(S[1], flags=ACK | PSH)
    station.wait(150 * MS)
    assert station.down(again) == [again]
    dupack = station.ack(S[1])
    assert station.up(dupack) == ([dupack], [])
    # its time begins with it, and a retransmission is the newest packet
    assert station.wait(199 * MS) == []
    (packet,) = station.wait(MS)
    assert packet is again


@by_access
@by_scheme
def test_a_closed_window_stops_the_timer(access: Access, scheme: str) -> None:
    station = base(access, scheme)
    station.window(S[1])
    station.up(station.ack(S[1], window=0))
    probe = station.data(S[1], 1)
    assert station.down(probe) == [probe]
    for _ in range(4):
        answer = station.ack(S[1], window=0)
        assert station.up(answer) == ([answer], [])
    assert station.wait(60_000 * MS) == []
    # what the probe replaced is gone, it itself is repaired when the window opens
    opening = station.ack(S[1], window=500)
    assert station.up(opening) == ([opening], [])
    assert station.wait(200 * MS) == [probe]


@by_access
@by_aware
def test_acks_that_pass_do_not_show_what_is_being_repaired(access: Access, scheme: str) -> None:
    station = base(access, scheme)
    # the third was lost on its way here, the second and the sixth on the hop
    station.window(S[1], S[2], *S[4:9])
    for _ in range(2):
        station.up(station.ack(S[2], sack=((S[4], S[6]),)))
    station.wait(20 * MS)
    carried: dict[str, Any] = {"length": 10, "payload": None if isinstance(access, Objects) else bytes(10)}
    for at, blocks, passing in (
        # a hole at the acknowledgement: nothing beyond is shown, an answer to a duplicate is
        (S[2], ((S[4], S[6]),), ()),
        (S[2], ((S[1], S[2]), (S[4], S[6])), ((S[1], S[2]),)),
        # now the wired network's hole is first: what lies between it and the next hole is shown
        (S[3], ((S[4], S[6]),), ((S[4], S[6]),)),
        (S[3], ((S[7], S[8]), (S[4], S[6])), ((S[4], S[6]),)),
        (S[6], (), ()),
    ):
        ack = station.ack(at, sack=blocks, **carried)
        (passed,) = station.up(ack)[0]
        view = access.view(passed)
        assert view is not None
        assert view.sack == passing
        assert (passed is ack) == (blocks == passing)


@by_access
@by_scheme
def test_a_mobile_host_that_never_answers_is_left_alone(access: Access, scheme: str) -> None:
    station = Base(access, scheme)
    station.window(*S)
    assert len(station.wait(600_000 * MS)) == Limits().tries
    assert station.filter.held_bytes == 0


@by_access
@pytest.mark.parametrize("scheme", ["ll-smart", "snoop-smart"])
def test_no_hole_is_repaired_more_often_than_its_tries(access: Access, scheme: str) -> None:
    station = base(access, scheme, limits=Limits(tries=3))
    packets = station.window(*S[1:5])
    again = station.up(station.ack(S[1], sack=((S[4], S[5]),)))[1]
    for _ in range(9):
        # the head's sender does not give it up
        station.down(packets[0])
        again += station.wait(250 * MS)
    assert again.count(packets[1]) == 3


@by_access
@by_scheme
def test_keepalives_and_old_segments_pass(access: Access, scheme: str) -> None:
    station = base(access, scheme)
    station.window(*S[1:3])
    station.up(station.ack(S[3]))
    for packet in (station.data(S[3] - 1, 1), station.data(S[3] - 1, 0), station.data(S[1])):
        assert station.down(packet) == [packet]
    assert station.filter.held_bytes == 0
    answer = station.ack(S[3])
    assert station.up(answer) == ([answer], [])


@by_access
@by_scheme
def test_a_fin_is_repaired_and_ends_what_is_known(access: Access, scheme: str) -> None:
    station = base(access, scheme)
    fin = station.data(S[1], 0, ACK | FIN)
    assert station.down(fin) == [fin]
    assert station.wait(200 * MS) == [fin]
    last = station.ack(S[1] + 1)
    assert station.up(last) == ([last], [])
    assert station.filter.held_bytes == 0
    # a late retransmission is data of a flow nobody knows
    late = station.ack(S[1])
    assert station.up(late) == ([late], [])


@by_access
@by_scheme
def test_a_flow_whose_fin_is_acknowledged_leaves_its_place_to_others(access: Access, scheme: str) -> None:
    station = Base(access, scheme, limits=Limits(flows=2))
    closing, open_flow, new = (Flow(1, port, 2, 80) for port in (1, 2, 3))
    station.flow = open_flow
    packets = station.window(0)
    station.flow = closing
    station.down(station.data(0, SIZE, ACK | FIN))
    station.up(station.ack(SIZE + 1))
    station.flow = new
    packets += station.window(0)
    # both are still looked after
    assert station.wait(1000 * MS) == packets


@by_access
@by_scheme
@pytest.mark.parametrize("flags", [SYN, RST | ACK, SYN | ACK])
def test_a_new_connection_or_a_reset_forgets_the_flow(access: Access, scheme: str, flags: int) -> None:
    station = base(access, scheme)
    station.window(*S[1:5])
    packet = station.data(7, 0, flags)
    assert station.down(packet) == [packet]
    assert station.filter.held_bytes == 0
    assert station.wait(60_000 * MS) == []


@by_access
@by_aware
def test_a_syn_from_the_mobile_host_forgets_the_flow(access: Access, scheme: str) -> None:
    station = base(access, scheme)
    station.window(*S[1:5])
    syn = station.ack(0, flags=SYN)
    assert station.up(syn) == ([syn], [])
    assert station.filter.held_bytes == 0


@by_access
@by_scheme
def test_ecn_passes_as_it_is(access: Access, scheme: str) -> None:
    station = base(access, scheme)
    packets = station.window(*S[1:5])
    echo = station.ack(S[2], flags=ACK | ECE)
    assert station.up(echo)[0] == [echo]
    for _ in range(2):
        station.up(station.ack(S[2], flags=ACK | ECE))
    assert station.filter.counters.retransmissions == 1
    station.up(station.ack(S[3], flags=ACK | ECE))
    view = access.view(packets[1])
    assert view is not None
    assert view.ecn == 2


# -- what cannot be read -------------------------------------------------------------------------------------


def _ipv4(protocol: int, fragment: int = 0) -> bytes:
    whole = Base(Octets()).data(0)
    head = bytearray(whole[:20])
    head[9] = protocol
    head[6:8] = fragment.to_bytes(2, "big")
    head[10:12] = b"\0\0"
    words = int.from_bytes(head, "big") % 0xFFFF
    head[10:12] = (-words % 0xFFFF).to_bytes(2, "big")
    return bytes(head) + whole[20:]


@by_scheme
@pytest.mark.parametrize(
    "packet",
    [
        b"",
        b"\x60" + bytes(60),
        _ipv4(50),
        _ipv4(17),
        _ipv4(6, 0x2000),
        _ipv4(6, 100),
        Base(Octets()).data(0)[:-1] + b"x",
        Base(Octets()).data(0)[:-1],
    ],
    ids=["empty", "IPv6", "ESP", "UDP", "first fragment", "later fragment", "damaged", "short"],
)
def test_what_is_no_segment_passes_both_ways_untouched(scheme: str, packet: bytes) -> None:
    station = Base(Octets(), scheme)
    assert station.down(packet)[0] is packet
    passed, sent = station.up(packet)
    assert passed[0] is packet
    assert sent == []
    assert station.filter.held_bytes == 0
    assert station.filter.next_deadline() is None


@by_scheme
def test_datagrams_of_virtual_time_pass(scheme: str) -> None:
    station = Base(Objects(), scheme)
    datagram = object()
    assert station.down(datagram) == [datagram]
    assert station.up(datagram) == ([datagram], [])


# -- cutting anew, forgetting, limits ------------------------------------------------------------------------


@by_access
@by_scheme
def test_octets_cut_anew_replace_what_they_overlap(access: Access, scheme: str) -> None:
    station = base(access, scheme)
    station.window(*S[1:5])
    # the sender puts two and a half into one (as segmentation offload does)
    large = station.data(S[1], 2500)
    assert station.down(large) == [large]
    assert station.wait(200 * MS)[0] is large
    station.up(station.ack(S[1] + 2500))
    # the half that was cut away is not here
    dupack = station.ack(S[1] + 2500)
    assert station.up(dupack) == ([dupack], [])
    assert station.up(dupack) == ([dupack], [])
    station.up(station.ack(S[5]))
    assert station.filter.held_bytes == 0


@by_access
@by_scheme
def test_a_segment_of_64_kb_is_cached_and_repaired(access: Access, scheme: str) -> None:
    station = base(access, scheme)
    large = station.data(S[1], 60_000)
    assert station.down(large) == [large]
    station.window(S[1] + 60_000, S[2] + 60_000)
    station.up(station.ack(S[1]))
    assert station.up(station.ack(S[1]))[1] == [large]


@by_access
@by_scheme
def test_a_station_that_has_forgotten_everything_goes_on_with_what_it_sees(access: Access, scheme: str) -> None:
    station = base(access, scheme)
    station.window(*S[1:5])
    station.restart()
    station.window(*S[5:8])
    # an older hole is not its business
    for _ in range(3):
        dupack = station.ack(S[2])
        assert station.up(dupack) == ([dupack], [])
    station.up(station.ack(S[5]))
    station.up(station.ack(S[5]))
    assert len(station.up(station.ack(S[5]))[1]) == 1


@by_access
@by_scheme
def test_a_station_that_has_forgotten_everything_believes_the_first_ack(access: Access, scheme: str) -> None:
    station = base(access, scheme)
    station.window(*S[1:5])
    station.restart()
    # the sender's timer
    station.window(S[1])
    station.up(station.ack(S[5]))
    assert station.filter.held_bytes == 0
    (lost, _) = station.window(S[5], S[6])
    assert len(station.up(station.ack(S[5]))[0]) == scheme.startswith("ll")
    assert station.up(station.ack(S[5]))[1] == [lost]


@by_access
@by_scheme
def test_acks_of_flows_never_seen_pass_and_leave_nothing(access: Access, scheme: str) -> None:
    station = Base(access, scheme)
    for number in range(100):
        station.flow = Flow(DATA.source, number + 1, DATA.destination, DATA.destination_port)
        ack = station.ack(number)
        assert station.up(ack) == ([ack], [])
    assert station.filter.next_deadline() is None
    assert len(station.filter._flows) == 0


@by_access
def test_an_ack_of_what_was_never_sent_changes_nothing(access: Access) -> None:
    station = base(access, "snoop")
    station.window(*S[1:5])
    wild = station.ack(S[9])
    assert station.up(wild) == ([wild], [])
    station.up(station.ack(S[1]))
    assert len(station.up(station.ack(S[1]))[1]) == 1


@by_access
@by_scheme
def test_the_cache_has_limits_per_flow_and_in_all(access: Access, scheme: str) -> None:
    limits = Limits(flows=3, flow_bytes=5000, total_bytes=8000, packet_overhead_bytes=100)
    station = Base(access, scheme, limits=limits)
    for port in range(1, 6):
        station.flow = Flow(DATA.source, port, DATA.destination, DATA.destination_port)
        for number in range(10):
            packet = station.data(S[number])
            assert station.down(packet) == [packet]
            assert station.filter.held_bytes <= limits.total_bytes
            assert len(station.filter._flows) <= limits.flows
    held = {flow.flow.source_port: flow.nbytes for flow in station.filter._flows.values()}
    # four of 1140 each fit into 5000; the latest is there
    assert held[5] == 4 * 1140
    assert station.filter.held_bytes == sum(held.values())
    # the oldest segments are kept: they are asked for first
    flow = next(reversed(station.filter._flows.values()))
    assert [each.left for each in flow.held] == S[:4]


@by_access
def test_silent_flows_go_when_another_one_comes(access: Access) -> None:
    station = base(access, "snoop")
    station.now += Limits().idle_ns
    station.flow = Flow(DATA.source, 99, DATA.destination, DATA.destination_port)
    station.window(0)
    assert list(station.filter._flows) == [station.flow]


@by_access
def test_a_flow_poisoned_by_others_comes_to_itself(access: Access) -> None:
    station = base(access, "snoop")
    # somebody has sent data far ahead, and an ACK of it
    station.down(station.data(S[1] + 900_000))
    station.up(station.ack(S[1] + 900_000))
    at = S[1]
    for _ in range(Limits().misfits):
        assert len(station.down(station.data(at))) == 1
        at += SIZE
    lost = station.data(at)
    station.down(lost)
    station.window(at + SIZE, at + 2 * SIZE)
    station.up(station.ack(at))
    station.up(station.ack(at))
    assert station.up(station.ack(at))[1] == [lost]


@by_access
def test_timers_of_many_flows_expire_each_at_its_time(access: Access) -> None:
    station = Base(access, "snoop", limits=Limits(flows=50))
    expected = []
    for port in range(1, 200):
        station.flow = Flow(DATA.source, port, DATA.destination, DATA.destination_port)
        packet = station.data(0)
        station.down(packet)
        expected.append((station.now + 1000 * MS, packet))
        station.now += 3 * MS
    seen = []
    end = station.now + 1000 * MS
    while station.now < end:
        seen += [(station.now, packet) for packet in station.wait(MS)]
    # those of the flows that are still known, in order
    assert seen == expected[-50:]
    assert len(station.filter._wakeups) <= 100


# -- octets and objects --------------------------------------------------------------------------------------


@by_scheme
def test_one_script_has_one_outcome_for_octets_and_objects(scheme: str) -> None:
    outcomes = []
    for access in ACCESSES:
        station = base(access, scheme, first=2**32 - 4000)
        log: list[Any] = []
        for number in range(1, 9):
            station.wait(3 * MS)
            log.append(len(station.window(S[number])))
        for at, sack in ((1, ((4, 5),)), (1, ((4, 7),)), (3, ((4, 7),)), (3, ((8, 9), (4, 7))), (9, ())):
            station.wait(5 * MS)
            blocks = tuple((S[left], S[right]) for left, right in sack)
            passed, again = station.up(station.ack(S[at], sack=blocks))
            log.append((len(passed), [view.seq for packet in again if (view := access.view(packet)) is not None]))
        log.append((station.guesses(), station.filter.counters, station.filter.held_bytes))
        outcomes.append(log)
    assert outcomes[0] == outcomes[1]


def test_the_module_is_told_apart_by_its_view_only() -> None:
    segment = Segment(DATA, 0, 0, ACK, 0, 5)
    assert Objects().view(segment) is segment
    assert Objects().view(b"octets") is None
