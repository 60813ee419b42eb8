"""The mobile end's SMART options."""

from typing import Any

import pytest

from linklayer.filters.tagger import MAX_FLOWS, Tagger
from tcpip.access import Access, Objects, Octets
from tcpip.options import smart_of, smart_option
from tcpip.segment import ACK, FIN, RST, SYN, Flow, Option, Segment, SynOptions
from tcpip.wire import emit
from tests.linklayer.base_station import ACCESSES, DATA

by_access = pytest.mark.parametrize("access", ACCESSES, ids=lambda access: type(access).__name__)
#: a timestamp option and three SACK blocks: the header is full
FULL: dict[str, Any] = {"timestamps": (1, 2), "sack": ((1000, 1020), (1030, 1040), (1050, 1060))}


def packet(access: Access, flow: Flow, seq: int, flags: int = ACK, length: int = 0, **fields: Any) -> Any:
    octets = None if isinstance(access, Objects) else bytes(length)
    segment = Segment(flow, seq, 9, flags, 500, length, octets, **fields)
    return segment if isinstance(access, Objects) else emit(segment)


def to_host(tagger: Tagger, made: Any) -> None:
    tagger.handle_from_link(made, 0, 0)
    delivery = tagger.poll_from_link()
    assert delivery is not None
    assert delivery[0] is made
    assert tagger.poll_from_link() is None


def to_link(tagger: Tagger, made: Any) -> Any:
    tagger.handle_to_link(made, 0, 0)
    delivery = tagger.poll_to_link()
    assert delivery is not None
    assert tagger.poll_to_link() is None
    return delivery[0]


@by_access
def test_a_pure_ack_names_the_latest_data_segment(access: Access) -> None:
    tagger = Tagger(access)
    to_host(tagger, packet(access, DATA, 2**32 - 91, length=50))
    to_host(tagger, packet(access, DATA, 2**32 - 41, length=50))
    to_host(tagger, packet(access, DATA, 9, length=0))
    tagged = access.view(to_link(tagger, packet(access, DATA.reversed(), 3)))
    assert tagged is not None
    assert smart_of(tagged) == (2**32 - 41, 9)
    assert (tagged.seq, tagged.ack, tagged.window, tagged.length) == (3, 9, 500, 0)


@by_access
def test_an_ack_that_has_waited_while_more_came_names_nothing(access: Access) -> None:
    tagger = Tagger(access)
    to_host(tagger, packet(access, DATA, 4, length=5))
    to_host(tagger, packet(access, DATA, 9, length=5))
    ack = packet(access, DATA.reversed(), 3)
    assert to_link(tagger, ack) is ack


@by_access
def test_flows_are_told_apart_and_a_reset_is_forgotten(access: Access) -> None:
    tagger = Tagger(access)
    other = Flow(5, 6, 7, 8)
    to_host(tagger, packet(access, DATA, 100, length=50))
    ack = packet(access, other.reversed(), 3)
    assert to_link(tagger, ack) is ack
    to_host(tagger, packet(access, DATA, 150, flags=RST | ACK))
    ack = packet(access, DATA.reversed(), 3)
    assert to_link(tagger, ack) is ack


@by_access
@pytest.mark.parametrize("flags", [SYN, SYN | ACK, FIN | ACK, RST, RST | ACK, 0])
def test_no_other_segment_is_changed(access: Access, flags: int) -> None:
    tagger = Tagger(access)
    to_host(tagger, packet(access, DATA, 100, length=50))
    syn = SynOptions(1460) if flags & SYN else None
    made = packet(access, DATA.reversed(), 3, flags=flags, syn=syn)
    assert to_link(tagger, made) is made


@by_access
def test_data_is_not_changed(access: Access) -> None:
    tagger = Tagger(access)
    to_host(tagger, packet(access, DATA, 100, length=50))
    made = packet(access, DATA.reversed(), 3, length=1)
    assert to_link(tagger, made) is made


@by_access
def test_an_ack_that_names_its_cause_keeps_it(access: Access) -> None:
    tagger = Tagger(access)
    to_host(tagger, packet(access, DATA, 100, length=50))
    made = packet(access, DATA.reversed(), 3, extra=(smart_option(40, 10),))
    assert to_link(tagger, made) is made


@by_access
def test_a_full_header_loses_its_oldest_block_and_one_without_blocks_goes_as_it_is(access: Access) -> None:
    tagger = Tagger(access)
    to_host(tagger, packet(access, DATA, 100, length=50))
    tagged = access.view(to_link(tagger, packet(access, DATA.reversed(), 3, **FULL)))
    assert tagged is not None
    assert smart_of(tagged) == (100, 150)
    assert tagged.sack == FULL["sack"][:2]
    full = packet(access, DATA.reversed(), 3, extra=(Option(200, bytes(36)),))
    assert to_link(tagger, full) is full


def test_what_is_no_segment_passes() -> None:
    for access, made in ((Octets(), b"nothing"), (Objects(), object())):
        tagger = Tagger(access)
        to_host(tagger, made)
        assert to_link(tagger, made) is made
        assert tagger.next_deadline() is None
        tagger.handle_deadline(5)
        tagger.handle_given_up(made, 5)
        assert tagger.poll_guess() is None


@by_access
def test_the_least_recently_used_flow_goes(access: Access) -> None:
    tagger = Tagger(access)
    flows = [Flow(1, number, 2, 80) for number in range(MAX_FLOWS + 1)]
    for flow in flows[:MAX_FLOWS]:
        to_host(tagger, packet(access, flow, 100, length=50))
    to_host(tagger, packet(access, flows[0], 150, length=50))
    to_host(tagger, packet(access, flows[-1], 100, length=50))
    assert len(tagger._flows) == MAX_FLOWS
    for flow, known in ((flows[0], True), (flows[1], False), (flows[-1], True)):
        made = packet(access, flow.reversed(), 3)
        assert (to_link(tagger, made) is made) != known
