"""RFC 9768: the tables of the handshake, the counters and their safety, the options, both ends against the truth."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.units import SECOND
from hosts.tcp.accecn import (
    ACCECN0,
    ACCECN1,
    Echo,
    Feedback,
    ace_flags,
    ace_of,
    counters_of,
)
from hosts.tcp.config import TcpConfig
from hosts.tcp.connection import Connection
from hosts.tcp.growth import Growth
from hosts.tcp.send_state import SendState
from tcpip.segment import ACK, CE, CWR, ECT0, ECT1, NOT_ECT, RST, SYN, Option, Segment, SynOptions
from tcpip.wire import emit, parse
from tests.hosts.tcp.pair import FLOW, Pair, Path

CONFIG = TcpConfig().but(mss=1000, accecn=True, recovery="sack", receive_buffer=1 << 20)
MODES = {0b000: "none", 0b011: "ecn"}


def syn(ace: int, ecn: int = NOT_ECT, seq: int = 5000) -> Segment:
    return Segment(
        FLOW.reversed(),
        seq,
        0,
        SYN | ace_flags(ace),
        65_535,
        syn=SynOptions(1000, None, True),
        ecn=ecn,
        timestamps=(1, 0),
    )


def mode(end: Connection) -> str:
    return "accecn" if end._sender.accecn is not None else "ecn" if end._sender.ecn else "none"


def server_for(first: Segment, config: TcpConfig = CONFIG) -> tuple[Connection, Segment]:
    """A server that has got a SYN, and its SYN-ACK."""
    end = Connection(config, FLOW, 1000)
    end.listen()
    end.handle_segment(first, 0)
    answer = end.poll_segment(0)
    assert answer is not None
    return end, answer


def client_for(ace: int, ecn: int = NOT_ECT, extra: tuple[Option, ...] = ()) -> tuple[Connection, Segment]:
    """A client that has got a SYN-ACK, and its ACK."""
    end = Connection(CONFIG, FLOW, 1000)
    end.connect(0)
    asked = end.poll_segment(0)
    assert asked is not None
    assert (ace_of(asked), asked.ecn, asked.extra) == (0b111, NOT_ECT, ())
    answer = syn(ace, ecn)
    answer.ack, answer.extra = 1001, extra
    answer.flags |= ACK
    end.handle_segment(answer, 0)
    reply = end.poll_segment(0)
    assert reply is not None
    return end, reply


@pytest.mark.parametrize(("ecn", "ace"), [(NOT_ECT, 0b010), (ECT1, 0b011), (ECT0, 0b100), (CE, 0b110)])
def test_table_2_a_server_feeds_the_ecn_field_of_the_syn_back(ecn: int, ace: int) -> None:
    end, answer = server_for(syn(0b111, ecn))
    assert (ace_of(answer), mode(end)) == (ace, "accecn")
    # 3.2.2.2: a mark on a SYN is not counted
    assert end._receiver.accecn is not None
    assert end._receiver.accecn.cep == 5
    # 3.2.3.2.1: the SYN-ACK has an option
    assert counters_of(answer) == (0, 1, 1)


@pytest.mark.parametrize(("ace", "answered"), [(0b011, 0b001), (0b000, 0b000)])
def test_table_2_a_server_falls_back_to_what_the_client_has(ace: int, answered: int) -> None:
    end, answer = server_for(syn(ace))
    assert (ace_of(answer), mode(end)) == (answered, MODES[ace])


@pytest.mark.parametrize("ace", [0b001, 0b010, 0b100, 0b101, 0b110])
def test_a_server_takes_other_flags_as_a_request(ace: int) -> None:
    # section 3.1.3
    assert mode(server_for(syn(ace))[0]) == "accecn"


def test_table_2_a_server_with_ecn_alone_agrees_to_that() -> None:
    end, answer = server_for(syn(0b111), CONFIG.but(accecn=False, ecn=True))
    assert (ace_of(answer), mode(end)) == (0b001, "ecn")


@pytest.mark.parametrize(
    ("ace", "found"),
    [
        *((ace, "accecn") for ace in (0b010, 0b011, 0b100, 0b110)),
        # reserved: section 3.1.3; then ECN, none, and a broken server that reflects the SYN
        (0b101, "accecn"),
        (0b001, "ecn"),
        (0b000, "none"),
        (0b111, "none"),
    ],
)
def test_table_2_a_client_enters_the_mode_of_the_syn_ack(ace: int, found: str) -> None:
    end, _ = client_for(ace)
    assert mode(end) == found


@pytest.mark.parametrize(
    ("ecn", "ace", "cep"), [(NOT_ECT, 0b010, 5), (ECT1, 0b011, 5), (ECT0, 0b100, 5), (CE, 0b110, 6)]
)
def test_table_3_a_client_feeds_the_ecn_field_of_the_syn_ack_back(ecn: int, ace: int, cep: int) -> None:
    end, reply = client_for(0b010, ecn)
    assert (ace_of(reply), reply.length, reply.sack) == (ace, 0, ())
    assert end._receiver.accecn is not None
    assert end._receiver.accecn.cep == cep


def test_a_client_with_data_sends_the_pure_ack_first() -> None:
    # section 3.2.2.1
    pair = Pair(CONFIG, octets=False)
    pair.client.write(3000)
    pair.run_until(lambda: pair.server.connected)
    segments = [segment for _, segment in pair.ways[0].log]
    assert [(segment.flags & SYN, segment.length) for segment in segments[:3]] == [(SYN, 0), (0, 0), (0, 988)]
    assert [ace_of(segment) for segment in segments[:3]] == [0b111, 0b010, 5]


@pytest.mark.parametrize(
    ("ace", "cep", "heeds", "may"),
    [
        (0b000, 5, False, False),
        (0b001, 5, True, True),
        (0b010, 5, True, True),
        (0b101, 5, True, True),
        (0b111, 5, True, True),
        (0b110, 6, True, False),
        # our SYN-ACK was not ECN-capable: other values are invalid transitions (3.2.2.3)
        (0b011, 5, True, False),
        (0b100, 5, True, False),
    ],
)
def test_table_4_a_server_infers_the_ecn_field_of_its_syn_ack(ace: int, cep: int, heeds: bool, may: bool) -> None:
    end, _ = server_for(syn(0b111))
    reply = Segment(FLOW.reversed(), 5001, 1001, ACK | ace_flags(ace), 65_535, timestamps=(2, 0))
    end.handle_segment(reply, 0)
    feedback = end._sender.accecn
    assert feedback is not None
    assert (end.connected, feedback.cep, feedback.heeds, feedback.may_send_ect) == (True, cep, heeds, may)


def test_a_client_that_sees_its_syn_mangled_sends_nothing_ecn_capable() -> None:
    # section 3.2.2.3
    for ace, ecn in ((0b010, ECT0), (0b100, NOT_ECT)):
        end, _ = client_for(ace)
        end.write(1000)
        data = end.poll_segment(0)
        assert data is not None
        assert data.ecn == ecn


def test_the_third_syn_asks_for_no_ecn_and_has_the_same_number() -> None:
    # section 3.1.4.1
    end = Connection(CONFIG, FLOW, 1000)
    end.connect(0)
    sent: list[tuple[int, int]] = []
    while len(sent) < 4:
        segment = end.poll_segment(end.next_deadline() or 0)
        assert segment is not None
        sent.append((ace_of(segment), segment.seq))
        at = end.next_deadline()
        assert at is not None
        end.handle_deadline(at)
    assert sent == [(0b111, 1000), (0b111, 1000), (0, 1000), (0, 1000)]


def test_the_second_syn_ack_has_no_option_and_the_third_no_ecn() -> None:
    # section 3.2.3.2.2; then section 3.1.5: no ECT
    end, answer = server_for(syn(0b111, ECT1))
    sent = [answer]
    for _ in range(2):
        at = end.next_deadline()
        assert at is not None
        end.handle_deadline(at)
        again = end.poll_segment(at)
        assert again is not None
        sent.append(again)
    assert [(ace_of(each), counters_of(each) is not None) for each in sent] == [(3, True), (3, False), (0, False)]
    assert mode(end) == "accecn"
    assert end._sender.accecn is not None
    assert not end._sender.accecn.may_send_ect


def test_a_repeated_syn_is_answered_by_its_own_ecn_field() -> None:
    # section 3.1.5: "MUST feed back the IP-ECN field on the latest valid SYN"
    end, _ = server_for(syn(0b111))
    end.handle_segment(syn(0b111, CE), 0)
    again = end.poll_segment(0)
    assert again is not None
    assert ace_of(again) == 0b110


def test_a_repeated_syn_without_ecn_is_answered_and_no_data_is_ecn_capable() -> None:
    # section 3.1.5: the client has given ECN up, and reads no ECN field
    end, _ = server_for(syn(0b111))
    end.handle_segment(syn(0b000), 0)
    again = end.poll_segment(0)
    assert again is not None
    assert again.flags & (SYN | ACK | RST) == SYN | ACK
    end.handle_segment(Segment(FLOW.reversed(), 5001, 1001, ACK | ace_flags(0b010), 65_535, timestamps=(2, 0)), 0)
    end.write(1000)
    data = end.poll_segment(0)
    assert data is not None
    assert (data.length > 0, data.ecn) == (True, NOT_ECT)


@pytest.mark.parametrize("marked", [False, True])
def test_a_repeated_syn_ack_is_fed_back_by_its_own_ecn_field(marked: bool) -> None:
    # section 3.2.2.1; a mark of a SYN-ACK counts once
    end, reply = client_for(0b010, CE if marked else NOT_ECT)
    assert ace_of(reply) == (0b110 if marked else 0b010)
    again = syn(0b010, CE)
    again.ack, again.flags = 1001, again.flags | ACK
    end.handle_segment(again, 0)
    answer = end.poll_segment(0)
    assert answer is not None
    assert (ace_of(answer), answer.length) == (0b110, 0)
    assert end._receiver.accecn is not None
    assert end._receiver.accecn.cep == 6


@pytest.mark.parametrize(("first", "second"), [(0b111, 0b011), (0b011, 0b111)])
def test_syns_that_ask_for_two_kinds_of_ecn_are_reset(first: int, second: int) -> None:
    # section 3.1.5
    end, _ = server_for(syn(first))
    end.handle_segment(syn(second), 0)
    reset = end.poll_segment(0)
    assert reset is not None
    assert reset.flags & RST


def feedback_of(cep: int = 5, ceb: int = 0) -> Feedback:
    found = Feedback()
    found.cep, found.ceb = cep, ceb
    return found


def acked(ace: int, *extra: Option) -> Segment:
    return Segment(FLOW.reversed(), 1, 1, ACK | ace_flags(ace), 700, extra=extra)


def test_appendix_a1_the_octets_of_an_option() -> None:
    # s.ceb 33,554,433 and ECEB 1461 give 33,555,893
    feedback = feedback_of(ceb=33_554_433)
    option = Option(ACCECN0, (1).to_bytes(3) + (1461).to_bytes(3))
    assert feedback.handle_ack(acked(6, option), 1460, 1460)[1] == 1460
    assert feedback.ceb == 33_555_893


@pytest.mark.parametrize(("packets", "expected"), [(9, 2), (10, 10)])
def test_appendix_a21_the_safest_case_without_an_option(packets: int, expected: int) -> None:
    feedback = feedback_of()
    assert feedback.handle_ack(acked(7), packets * 1460, 1460)[0] == expected
    assert feedback.cep == 5 + expected


def test_appendix_a21_segments_of_five_percent_are_safe_while_five_percent_are_marked() -> None:
    for segments in range(20, 2000):
        marks = segments // 20
        assert feedback_of().handle_ack(acked((5 + marks) % 8), segments * 73, 1460)[0] >= marks
    # but not beyond: 16 segments of half the size, all marked, are 8 by their octets
    assert feedback_of().handle_ack(acked(5), 16 * 730, 1460)[0] == 8


@pytest.mark.parametrize(
    ("delta", "safer", "octets", "expected"), [(0, 8, 1460, 8), (2, 10, 1460, 2), (7, 15, 10_200, 7)]
)
def test_appendix_a22_an_option_tells_whether_ace_has_wrapped(
    delta: int, safer: int, octets: int, expected: int
) -> None:
    without, feedback = feedback_of(), feedback_of()
    newly = safer * 1460
    assert without.handle_ack(acked((5 + delta) % 8), newly, 1460)[0] == safer
    option = Option(ACCECN0, (1).to_bytes(3) + octets.to_bytes(3))
    assert feedback.handle_ack(acked((5 + delta) % 8, option), newly, 1460)[0] == expected


def ceb_option(octets: int) -> Option:
    return Option(ACCECN0, (1).to_bytes(3) + octets.to_bytes(3))


def test_octets_that_were_estimated_are_not_told_of_again() -> None:
    # two packets of 1000 octets with CE, told of by ACE first and then by an option; then a third, by both
    feedback = feedback_of()
    assert feedback.handle_ack(acked(7), 2000, 1000) == (2, 2000)
    assert feedback.handle_ack(acked(7, ceb_option(2000)), 0, 1000) == (0, 0)
    assert feedback.handle_ack(acked(0, ceb_option(3000)), 1000, 1000) == (1, 1000)
    # an estimate that was too low: three packets, of which one was acknowledged
    assert feedback.handle_ack(acked(3), 1000, 1000) == (3, 1000)
    assert feedback.handle_ack(acked(3, ceb_option(6000)), 2000, 1000) == (0, 2000)
    # and one that was too high, 1000 octets that were 400: the next mark is congestion again
    assert feedback.handle_ack(acked(4), 1000, 1000) == (1, 1000)
    assert feedback.handle_ack(acked(4, ceb_option(6400)), 0, 1000) == (0, 0)
    assert feedback.handle_ack(acked(5, ceb_option(7400)), 1000, 1000) == (1, 1000)


def test_packets_told_of_before_an_option_count_in_its_safety() -> None:
    # appendix A.2.2 compares what lies between two options: these 9 packets had 7 marks, not 15
    feedback = feedback_of()
    assert feedback.handle_ack(acked(4), 7000, 1000)[0] == 7
    assert feedback.handle_ack(acked(4, ceb_option(7000)), 9000, 1000)[0] == 0
    assert feedback.cep == 5 + 7


@pytest.mark.parametrize(("octets", "expected"), [(2000, 2), (2001, 10), (10_000, 10), (10_001, 18)])
def test_ace_has_wrapped_where_fewer_packets_would_be_larger_than_a_full_one(octets: int, expected: int) -> None:
    # section 3.2.3.2.5: an endpoint "MUST always reconcile" the ACE field with any option
    feedback = feedback_of()
    assert feedback.handle_ack(acked(7, ceb_option(octets)), 2000, 1000) == (expected, octets)


def test_more_marks_than_packets_are_believed() -> None:
    # section 3.2.2.5.2
    assert feedback_of().handle_ack(acked(0), 1460, 1460)[0] == 3


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        # table 5: ECEB, EE0B, EE1B
        (ACCECN0, b"\0\0\1\0\0\2\0\0\3", (2, 1, 3)),
        (ACCECN0, b"\0\0\1\0\0\2", (2, 1, None)),
        (ACCECN0, b"\0\0\1", (None, 1, None)),
        (ACCECN0, b"", (None, None, None)),
        (ACCECN1, b"\0\0\1\0\0\2\0\0\3", (2, 3, 1)),
        (ACCECN1, b"\0\0\1\0\0\2", (2, None, 1)),
        (ACCECN1, b"\0\0\1", (None, None, 1)),
        (ACCECN1, b"", (None, None, None)),
        # other lengths: "those whole 3-octet fields that fit"
        (ACCECN0, b"\0\0\1\7", (None, 1, None)),
        (ACCECN0, b"\0\0\1\0\0\2\0\0\3\7\7\7", (2, 1, 3)),
    ],
)
def test_table_5_the_fields_of_an_option(
    kind: int, data: bytes, expected: tuple[int | None, int | None, int | None]
) -> None:
    assert counters_of(acked(0, Option(kind, data))) == expected


def test_options_have_what_has_changed_in_the_shorter_order() -> None:
    # section 3.2.3.3, both examples
    echo = Echo()
    echo.handle_packet(ECT0, 1000, True)
    assert echo.option() == Option(ACCECN0, (1001).to_bytes(3))
    echo.handle_packet(CE, 500, True)
    assert echo.option() == Option(ACCECN0, (1001).to_bytes(3) + (500).to_bytes(3))
    other = Echo()
    other.handle_packet(ECT1, 1000, True)
    other.handle_packet(CE, 500, True)
    assert other.option() == Option(ACCECN1, (1001).to_bytes(3) + (500).to_bytes(3))


def test_acks_are_due_at_changes_and_at_marks() -> None:
    # section 3.2.2.5.1: at a change to CE; at the second mark with unacknowledged data, the third without
    echo = Echo()
    assert [echo.handle_packet(ecn, 1000, True) for ecn in (ECT0, CE, CE, CE)] == [False, True, True, True]
    echo.acknowledged()
    assert [echo.handle_packet(CE, 1000, True) for _ in range(2)] == [False, True]
    quiet = Echo()
    assert [quiet.handle_packet(CE, 0, False) for _ in range(3)] == [False, False, True]


def test_flags_and_options_are_on_the_wire() -> None:
    for ace in range(8):
        option = Option(ACCECN1, bytes(range(9)))
        segment = Segment(
            FLOW, 1, 2, ACK | ace_flags(ace), 700, 3, b"abc", timestamps=(1, 2), extra=(option,), ecn=ECT1
        )
        octets = emit(segment)
        # figure 3: AE is the last bit of the octet of the data offset
        assert (octets[32] & 1, octets[33] >> 6) == (ace >> 2, ace & 3)
        again = parse(octets)
        assert (ace_of(again), again.extra, again.ecn) == (ace, (option,), ECT1)


def test_the_window_is_reduced_once_a_round_and_no_cwr_is_sent() -> None:
    # section 3.1.5: "MUST NOT set CWR"
    rng = Random(3)

    def mark(segment: Segment) -> bool:
        if segment.ecn == ECT0 and rng.random() < 0.02:
            segment.ecn = CE
        return False

    pair = Pair(CONFIG.but(timestamps=False), up=Path(rate_bps=4_000_000, drop=mark))
    pair.send(0, 500_000)
    pair.run()
    counters, feedback = pair.client.counters, pair.client._sender.accecn
    assert feedback is not None
    assert 0 < counters.ecn_reductions <= feedback.cep - 5
    assert counters.fast_retransmits == 0
    sent = [segment for _, segment in pair.ways[0].log if not segment.flags & SYN]
    # the client has received no marks: its ACE stays as it was, behind the handshake's
    assert {ace_of(segment) for segment in sent[1:]} == {5}
    assert not any(segment.flags & CWR for segment in sent[1:])


class Told(Growth):
    """Reno's window, but for marks, whose octets it adds up."""

    def __init__(self, sender: SendState) -> None:
        super().__init__(sender)
        self.scales = True
        self.octets = 0

    def handle_ack(self, acked: int, now: int) -> None:
        self.cwnd += acked if self.cwnd < self.ssthresh else 1000 * acked // self.cwnd

    def handle_marks(self, acked: int, marked: int, now: int) -> None:
        self.octets += marked

    def threshold(self, flight: int) -> int:
        return max(flight // 2, 2000)


@given(
    seed=st.integers(0, 2**32),
    marked=st.sampled_from([0.0, 0.05, 0.5, 1.0]),
    lost=st.sampled_from([0.0, 0.03]),
    acks_lost=st.sampled_from([0.0, 0.2, 0.9]),
    timestamps=st.booleans(),
    recovery=st.sampled_from(["sack", "rack", "newreno"]),
    replies=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_the_senders_counters_follow_the_truth(
    seed: int, marked: float, lost: float, acks_lost: float, timestamps: bool, recovery: str, replies: bool
) -> None:
    """Marks, losses of data and losses of ACKs by chance, and data the other way, which tells of marks by ACE alone;
    the truth is what has passed the path.
    """
    rng = Random(seed)
    #: packets and octets that arrive with CE, and octets with ECT(0); the first transmission of each only
    truth = {"cep": 0, "ceb": 0, "e0b": 0}
    stopped = False

    def forward(segment: Segment) -> bool:
        if segment.flags & SYN:
            return False
        if not stopped and segment.length and rng.random() < lost:
            return True
        if segment.ecn != NOT_ECT and rng.random() < marked:
            segment.ecn = CE
        truth["cep"] += segment.ecn == CE
        truth["ceb"] += segment.length * (segment.ecn == CE)
        truth["e0b"] += segment.length * (segment.ecn == ECT0)
        return False

    def backward(segment: Segment) -> bool:
        return not stopped and not segment.flags & SYN and rng.random() < acks_lost

    # of ten ACKs nine are lost: 300 in a row are not
    config = CONFIG.but(recovery=recovery, timestamps=timestamps, data_retries=300, max_rto_ns=SECOND)
    pair = Pair(config, up=Path(rate_bps=4_000_000, drop=forward), down=Path(drop=backward))
    told = pair.client._sender.growth = Told(pair.client._sender)
    pair.run_until(lambda: pair.client.connected and pair.server.connected)
    pair.backlog[0] = 120_000
    if replies:
        answered = 0

        def answer() -> None:
            nonlocal answered
            if pair.received[1] >= answered + 3000:
                answered = pair.received[1]
                pair.server.write(500)

        pair.watch = answer
    pair.run_until(lambda: pair.received[1] == 120_000)
    pair.watch = lambda: None
    pair.run_until(lambda: pair.client.drained and pair.server.drained)
    stopped = True
    # one more segment, which arrives, as does its ACK
    pair.backlog[0] = 1000
    pair.run_until(lambda: pair.client.drained and pair.received[1] == 121_000)
    echo, feedback = pair.server._receiver.accecn, pair.client._sender.accecn
    assert echo is not None
    assert feedback is not None
    # section 3.2: the receiver counts what arrives; what is sent again is not ECN-capable, and so comes once
    assert (echo.cep - 5, echo.ceb, echo.e0b - 1) == (truth["cep"], truth["ceb"], truth["e0b"])
    # section 3.2.3.1: with its option the sender has the same octets
    assert (feedback.ceb, feedback.e0b) == (truth["ceb"], truth["e0b"] + 1)
    # and has told its window of all of them once, but where ACKs were lost and the safest case was too many
    assert told.octets >= truth["ceb"]
    if not acks_lost and not lost:
        assert told.octets == truth["ceb"]
    # section 3.2.2: packets modulo 8 always; never less, but where many ACKs were lost and segments are small
    assert (feedback.cep - echo.cep) % 8 == 0
    if not acks_lost and not lost:
        assert feedback.cep == echo.cep
    assert feedback.cep >= echo.cep or acks_lost
