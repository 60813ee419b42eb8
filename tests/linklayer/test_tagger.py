"""The mobile end's SMART options."""

from typing import Any

import pytest

from linklayer.filters.tagger import MAX_FLOWS, Tagger
from tcpip.access import Access, Objects
from tcpip.options import smart_of, smart_option
from tcpip.segment import ACK, FIN, RST, SYN, Flow, Option, Segment, SynOptions
from tests.harness.base_station import SIZE, BaseStation, by_first


class MobileEnd(BaseStation):
    """Data comes over the link, ACKs from the host."""

    filter: Tagger

    def __init__(self, access: Access, *, first: int = 1000) -> None:
        super().__init__(access, Tagger, first=first)

    def tagged(self, place: float, *sack: tuple[float, float], **fields: Any) -> Segment:
        """Let an ACK leave; return it as it leaves."""
        return self.view(self.from_ip(self.acknowledgement(place, *sack, **fields)))


@by_first
def test_pure_ack_names_the_latest_data_segment(access: Access, first: int) -> None:
    end = MobileEnd(access, first=first)
    end.play("<< 0 2 3+0")
    assert smart_of(end.tagged(1)) == (end.number(2), end.number(3))


def test_ack_that_has_waited_while_its_segment_came_names_nothing(access: Access) -> None:
    end = MobileEnd(access)
    end.play("<< 0 1 2")
    assert [smart_of(end.tagged(place)) for place in (1, 2)] == [None, None]
    assert smart_of(end.tagged(3)) == (end.number(2), end.number(3))


def test_flows_are_kept_apart_and_a_reset_is_forgotten(access: Access) -> None:
    end = MobileEnd(access)
    end.play("<< 0")
    known, end.flow = end.flow, Flow(5, 6, 7, 8)
    assert smart_of(end.tagged(1)) is None
    end.flow = known
    end.play("<< 1+0(flags=RST|ACK)")
    assert smart_of(end.tagged(1)) is None


@pytest.mark.parametrize(
    "fields",
    [
        *({"flags": flags} for flags in (FIN | ACK, RST, RST | ACK, 0)),
        *({"flags": flags, "syn": SynOptions(1460)} for flags in (SYN, SYN | ACK)),
        {"size": 1},
    ],
    ids=str,
)
def test_only_pure_acks_are_changed(access: Access, fields: dict[str, Any]) -> None:
    end = MobileEnd(access)
    end.play("<< 0")
    assert smart_of(end.tagged(1, **fields)) is None


def test_ack_that_names_its_cause_keeps_it(access: Access) -> None:
    end = MobileEnd(access)
    end.play("<< 2")
    assert end.tagged(1, smart=5).extra == (smart_option(end.number(5), SIZE),)


def test_full_header_loses_its_oldest_block_and_one_without_blocks_stays(access: Access) -> None:
    end = MobileEnd(access)
    end.play("<< 2")
    tagged = end.tagged(1, (7, 8), (5, 6), (3, 4), timestamps=(1, 2))
    assert smart_of(tagged) == (end.number(2), end.number(3))
    assert tagged.sack == ((end.number(7), end.number(8)), (end.number(5), end.number(6)))
    assert smart_of(end.tagged(1, extra=(Option(200, bytes(36)),))) is None


def test_least_recently_used_flow_goes() -> None:
    end = MobileEnd(Objects())
    flows = [Flow(1, port, 2, 80) for port in range(MAX_FLOWS + 1)]
    for end.flow in (*flows[:-1], flows[0], flows[-1]):
        end.play("<< 0")
    assert len(end.filter._flows) == MAX_FLOWS
    for end.flow, known in ((flows[0], True), (flows[1], False), (flows[-1], True)):
        assert (smart_of(end.tagged(1)) is not None) == known
