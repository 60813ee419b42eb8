"""ELN and SMART options, on the wire and off it."""

import pytest

from tcpip.options import ELN, SMART_PERMITTED, has_eln, is_smart, permits_smart, smart_of, smart_option
from tcpip.segment import ACK, SYN, Flow, Option, Segment
from tcpip.wire import emit, parse

FLOW = Flow(1, 2, 3, 4)


def segment(*extra: Option, flags: int = ACK) -> Segment:
    return parse(emit(Segment(FLOW, 5, 6, flags, 7, extra=extra)))


def test_options_are_on_the_wire_as_documented() -> None:
    octets = emit(Segment(FLOW, 5, 6, ACK, 7, extra=(ELN, smart_option(0x01020304, 1400))))
    assert bytes.fromhex("fd04fade") in octets
    assert bytes.fromhex("fd0afadf 01020304 0578") in octets
    assert bytes.fromhex("fd04fadf") in emit(Segment(FLOW, 5, 0, SYN, 7, extra=(SMART_PERMITTED,)))


def test_eln_is_found() -> None:
    assert has_eln(segment(ELN))
    assert has_eln(segment(smart_option(1, 2), ELN))
    assert not has_eln(segment())
    assert not has_eln(segment(Option(253, b"\xfa\xde\0")))
    assert not has_eln(segment(Option(254, b"\xfa\xde")))


@pytest.mark.parametrize(("seq", "length", "right"), [(0, 0, 0), (7, 1400, 1407), (2**32 - 1, 65_535, 65_534)])
def test_smart_names_a_segment_whose_end_wraps(seq: int, length: int, right: int) -> None:
    assert smart_of(segment(smart_option(seq, length))) == (seq, right)
    assert smart_of(segment(ELN, smart_option(seq, length))) == (seq, right)


@pytest.mark.parametrize(
    "option",
    [
        ELN,
        SMART_PERMITTED,
        Option(253, b"\xfa\xdf12345"),
        Option(253, b"\xfa\xdf1234567"),
        Option(254, b"\xfa\xdf123456"),
    ],
)
def test_no_other_option_names_a_segment(option: Option) -> None:
    assert not is_smart(option)
    assert smart_of(segment(option)) is None


@pytest.mark.parametrize(("seq", "length"), [(-1, 5), (2**32, 5), (0, -1), (0, 65_536)])
def test_numbers_that_fit_no_field_are_refused(seq: int, length: int) -> None:
    with pytest.raises(OverflowError):
        smart_option(seq, length)


def test_smart_is_permitted_by_a_syn_alone() -> None:
    assert permits_smart(segment(SMART_PERMITTED, flags=SYN))
    assert permits_smart(segment(SMART_PERMITTED, flags=SYN | ACK))
    assert not permits_smart(segment(SMART_PERMITTED))
    assert not permits_smart(segment(flags=SYN))
