"""The base station's filters held to COMPARISON section 2.3, to RFC 5681 and to their contract, by scripts.

Read first: COMPARISON sections 2.3 and 3.3, "Reaction to burst errors"; RFC 5681 section 2 (what a dupack is); RFC 9293
section 3.8.6.1 (zero-window probes) and section 3.8.4 (keep-alives); `linklayer/filters/filter.py`.

Segment n of a script has the octets from n * 1000 on, behind an initial number at which the numbers wrap after a while.
The mobile host's ACKs come over the link, the fixed host's data from the IP side. Everything goes through
`fuzz.Checked`, so that every script holds the filters to the general rules as well.
"""

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import pytest

from common.sequence import MASK
from common.sides import Side
from linklayer.filters.filter import End, Guess
from linklayer.link import Link
from linklayer.schemes import SCHEMES
from tcpip.access import Access, Objects, Octets
from tcpip.options import has_eln, smart_of, smart_option
from tcpip.segment import ACK, ECE, FIN, PSH, RST, SYN, Flow, Option, Segment, SynOptions
from tcpip.wire import emit
from testbed.scenario.file import validate
from testbed.scenario.link_ends import make_link
from tests.linklayer.fuzz import Checked, Passed, footprint, tagged

MS = 1_000_000
SECOND = 1_000_000_000
SIZE = 1000
DOWN = Flow(0x0A000002, 80, 0x0A000001, 40_000)
UP = DOWN.reversed()
#: first numbers: in the middle, before the wrap, before the sign changes
ISNS = (1000, (1 << 32) - 2500, (1 << 31) - 2500)
LOCAL = ("ll", "ll-smart", "snoop", "snoop-smart")
SNOOPS = ("snoop", "snoop-smart")


class Script:
    """One end of a link, packets by their numbers; a millisecond passes before each."""

    def __init__(
        self, scheme: str, access: Access, *, isn: int = 1000, eln: str = "none", end: End = "base", down: Flow = DOWN
    ) -> None:
        scenario = validate(
            {
                "name": "script",
                "channel": {"rate_bps": 2_000_000, "delay_ms": 5},
                "link": {"scheme": scheme, "eln": eln},
                "workloads": [{"kind": "bulk", "bytes": 1}],
            },
            "script",
        )
        side: Side = "up" if end == "mobile" else "down"

        def make_end() -> Link:
            return make_link(scenario, side, Random(1), 0, sized=isinstance(access, Objects))

        self._make = make_end
        self.access = access
        self.checked = Checked(self._make(), access, probe=1)
        self.isn = isn
        self.now = SECOND
        self.down = down
        #: what was put on the link again
        self.repaired: list[int] = []
        self.guesses: list[Guess] = []

    def forget(self) -> None:
        """Put a fresh end in place of this one."""
        self.checked.link = self._make()

    def octet(self, number: float) -> int:
        """The number on the wire of segment `number`'s first octet."""
        return self.isn + round(number * SIZE) & MASK

    def data(self, *numbers: float, size: int = SIZE, flags: int = ACK, flow: Flow | None = None) -> list[Passed]:
        """The fixed host's segments."""
        return [
            self._from_ip(Segment(flow or self.down, self.octet(n), 77, flags, 60_000, size, bytes(size) or None))
            for n in numbers
        ]

    def ack(
        self,
        number: float,
        *,
        times: int = 1,
        window: int = 30_000,
        sack: Iterable[tuple[float, float]] = (),
        smart: float | None = None,
        flags: int = ACK,
        size: int = 0,
        timestamps: tuple[int, int] | None = None,
        flow: Flow | None = None,
    ) -> list[bool]:
        """The mobile host's ACKs; return which of them passed."""
        passed = []
        extra: tuple[Option, ...] = () if smart is None else (smart_option(self.octet(smart), SIZE),)
        blocks = tuple((self.octet(left), self.octet(right)) for left, right in sack)
        for _ in range(times):
            segment = Segment(
                flow or self.down.reversed(), 77, self.octet(number), flags, window, size, bytes(size) or None, blocks,
                timestamps, extra=extra,
            )  # fmt: skip
            passed.append(bool(self._from_link(segment).to_ip))
        return passed

    def wait(self, ms: int) -> list[int]:
        """Let time pass; return what was put on the link again meanwhile."""
        before = len(self.repaired)
        until = self.now + ms * MS
        while (at := self.checked.link.next_deadline()) is not None and at <= until:
            self.now = max(at, self.now)
            self._note(self.checked.expire(self.now), None)
        self.now = until
        return self.repaired[before:]

    def from_ip(self, segment: Segment) -> Segment:
        """Any segment of the IP side; return it as it leaves."""
        passed = self._from_ip(segment)
        found = self.access.view(passed.to_link[-1])
        assert found is not None
        return found

    def from_link(self, segment: Segment) -> Segment | None:
        """Any segment of the link; return it as it leaves."""
        passed = self._from_link(segment)
        return self.access.view(passed.to_ip[0]) if passed.to_ip else None

    def _from_ip(self, segment: Segment) -> Passed:
        self.now += MS
        packet = self._packet(segment, "ip")
        return self._note(self.checked.from_ip(packet, self.now), packet)

    def _from_link(self, segment: Segment) -> Passed:
        self.now += MS
        return self._note(self.checked.from_link(self._packet(segment, "link"), self.now), None)

    def _packet(self, segment: Segment, side: Any) -> Any:
        return tagged(segment if isinstance(self.access, Objects) else emit(segment), side)

    def _note(self, passed: Passed, own: Any) -> Passed:
        for packet in passed.to_link:
            view = self.access.view(packet)
            if packet is not own and getattr(packet, "again", 0) > 0:
                assert view is not None
                self.repaired.append(round(((view.seq - self.isn & MASK) ^ 1 << 31) - (1 << 31)) // SIZE)
        self.guesses += passed.guesses
        return passed


Make = Callable[..., Script]


@pytest.fixture(params=["objects", "octets"])
def make(request: pytest.FixtureRequest) -> Make:
    access: Access = Objects() if request.param == "objects" else Octets()
    return lambda scheme, **options: Script(scheme, access, **options)


snoops = pytest.mark.parametrize("scheme", SNOOPS)
local = pytest.mark.parametrize("scheme", LOCAL)
wrapping = pytest.mark.parametrize("isn", ISNS)


def flowing(s: Script) -> Script:
    """Segment 0 is sent and acknowledged 20 ms later: the filter knows the flow and about its round trip."""
    s.data(0)
    s.wait(18)
    assert s.ack(1) == [True]
    return s


# -- Snoop: local repair and what TCP's sender is spared -----------------------------------------------------


@local
@wrapping
def test_what_is_acknowledged_is_never_sent_again(make: Make, scheme: str, isn: int) -> None:
    s = flowing(make(scheme, isn=isn))
    s.data(1, 2, 3, 4)
    assert s.ack(3) == [True]
    assert s.ack(5) == [True]
    assert s.wait(3_600_000) == []
    assert s.checked.link.next_deadline() is None


@snoops
@wrapping
def test_the_second_dupack_at_the_latest_repairs_once_and_all_dupacks_of_the_loss_are_held_back(
    make: Make, scheme: str, isn: int
) -> None:
    s = flowing(make(scheme, isn=isn))
    s.data(1, 2, 3, 4, 5)
    # 1 was lost, 2 to 5 arrive
    assert s.ack(1, times=2) == [False] * 2
    assert s.repaired == [1]
    assert s.ack(1, times=2) == [False] * 2
    assert s.repaired == [1]
    assert s.ack(6) == [True]
    assert s.wait(60_000) == []


@local
def test_what_is_repaired_is_the_packet_that_was_sent(make: Make, scheme: str) -> None:
    s = flowing(make(scheme))
    sent = Segment(DOWN, s.octet(1), 99, ACK | PSH | ECE, 123, SIZE, b"x" * SIZE, timestamps=(5, 6), ecn=2, number=9)
    s.from_ip(sent)
    s.data(2, 3, 4)
    s.ack(1, times=3)
    s.wait(3000)
    # fuzz.Checked compares them
    assert set(s.repaired) == {1}


@snoops
@wrapping
def test_a_new_ack_before_all_expected_dupacks_repairs_the_next_loss_at_once(make: Make, scheme: str, isn: int) -> None:
    s = flowing(make(scheme, isn=isn))
    # 1 and 3 are lost: 2, 4, 5 and 6 make four dupacks, five segments were behind 1
    s.data(1, 2, 3, 4, 5, 6)
    assert s.ack(1, times=4) == [False] * 4
    assert s.repaired == [1]
    s.wait(20)
    assert s.ack(3) == [True]
    assert s.repaired == [1, 3]
    assert s.ack(7) == [True]
    assert s.wait(60_000) == []


@snoops
def test_a_burst_is_repaired_segment_by_segment(make: Make, scheme: str) -> None:
    s = flowing(make(scheme))
    s.data(*range(1, 11))
    # 1 to 4 are lost, 5 to 10 arrive
    assert s.ack(1, times=6) == [False] * 6
    for n in (2, 3, 4):
        # each repair takes a round trip
        s.wait(20)
        assert s.ack(n) == [True]
    assert s.repaired == [1, 2, 3, 4]
    assert s.ack(11) == [True]
    assert s.wait(60_000) == []


@snoops
def test_a_repair_that_is_lost_is_repaired(make: Make, scheme: str) -> None:
    s = flowing(make(scheme))
    s.data(1, 2, 3, 4)
    assert s.ack(1, times=3) == [False] * 3
    assert s.repaired == [1]
    # it is lost, too, and segments sent after it make further dupacks
    s.wait(15)
    s.data(5, 6, 7)
    held_back = s.ack(1, times=3)
    s.wait(2000)
    assert s.repaired.count(1) >= 2
    assert held_back == [False] * 3, "a dupack of a loss that is being repaired reached the sender"


@local
def test_with_no_acks_at_all_a_timeout_repairs(make: Make, scheme: str) -> None:
    s = flowing(make(scheme))
    s.data(1, 2, 3)
    assert s.wait(150) == [], "the paper's least timeout is 200 ms"
    assert s.wait(1000)[:1] == [1]


@local
def test_a_flow_that_has_fallen_silent_is_left_alone_in_the_end(make: Make, scheme: str) -> None:
    s = flowing(make(scheme))
    s.data(1, 2, 3)
    s.wait(3_600_000)
    assert s.checked.link.next_deadline() is None
    assert max(s.repaired.count(n) for n in (1, 2, 3)) <= 20


@local
def test_a_mobile_host_that_never_answers_is_left_alone_in_the_end(make: Make, scheme: str) -> None:
    """It has gone; what is cached for it may not load the link for the hours that 8 tries for each would take."""
    s = make(scheme)
    s.data(*range(300))
    s.wait(1_800_000)
    assert s.checked.link.next_deadline() is None
    assert max(s.repaired.count(n) for n in range(300)) <= 16


@snoops
def test_dupacks_of_a_loss_that_cannot_be_repaired_reach_the_sender_in_the_end(make: Make, scheme: str) -> None:
    s = flowing(make(scheme))
    s.data(*range(1, 30))
    for _ in range(600):
        if s.ack(1) == [True]:
            break
        s.wait(1000)
    else:
        pytest.fail("no dupack has passed in ten minutes")


@snoops
@wrapping
def test_dupacks_of_what_never_reached_the_base_station_all_pass(make: Make, scheme: str, isn: int) -> None:
    s = flowing(make(scheme, isn=isn))
    s.data(1, 3, 4, 5, 6)
    assert s.ack(2) == [True]
    assert s.ack(2, times=4) == [True] * 4
    assert s.repaired == []


@snoops
def test_the_senders_own_retransmission_passes_and_is_repaired_when_it_is_lost(make: Make, scheme: str) -> None:
    s = flowing(make(scheme))
    s.data(1, 3, 4, 5, 6)
    s.ack(2, times=5)
    s.data(2)
    # lost on the air; 7 arrives
    s.data(7, 8, 9)
    s.ack(2, times=3)
    s.wait(3000)
    assert 2 in s.repaired
    assert s.ack(10) == [True]


@snoops
def test_the_senders_retransmission_of_a_cached_segment_passes(make: Make, scheme: str) -> None:
    s = flowing(make(scheme))
    s.data(1, 2, 3, 4)
    s.ack(1, times=3)
    (passed,) = s.data(1)
    assert len(passed.to_link) >= 1
    assert s.ack(5) == [True]
    assert s.wait(60_000) == []


@snoops
def test_a_wired_and_a_wireless_loss_in_one_window(make: Make, scheme: str) -> None:
    s = flowing(make(scheme))
    # 2 is lost on the air, 5 never reached the base station
    s.data(1, 2, 3, 4, 6, 7)
    assert s.ack(2) == [True]
    assert s.ack(2, times=4) == [False] * 4
    assert s.repaired == [2]
    assert s.ack(5) == [True]
    s.data(8, 9, 10)
    assert s.ack(5, times=3) == [True] * 3
    assert s.repaired == [2]


@snoops
@pytest.mark.parametrize("window", [0, 29_999, 60_000])
def test_a_window_that_changes_is_no_dupack(make: Make, scheme: str, window: int) -> None:
    s = flowing(make(scheme))
    s.data(1, 2, 3, 4, 5)
    s.ack(1, times=2)
    assert s.ack(1, window=window) == [True]


@local
@pytest.mark.parametrize("flags", [ACK | FIN, ACK | RST, RST, ACK | SYN, SYN, 0])
def test_what_is_more_than_an_ack_passes(make: Make, scheme: str, flags: int) -> None:
    s = flowing(make(scheme))
    s.data(1, 2, 3, 4, 5)
    s.ack(1, times=2)
    assert s.ack(1, flags=flags) == [True]


@local
@pytest.mark.parametrize("size", [1, 1000])
def test_an_ack_with_data_passes(make: Make, scheme: str, size: int) -> None:
    s = flowing(make(scheme))
    s.data(1, 2, 3, 4, 5)
    s.ack(1, times=2)
    assert s.ack(1, size=size) == [True]
    s.ack(1)
    assert s.ack(1, size=size) == [True]


@snoops
def test_a_fresh_filter_in_mid_recovery_lets_dupacks_pass(make: Make, scheme: str) -> None:
    s = flowing(make(scheme))
    s.data(1, 2, 3, 4, 5)
    s.ack(1, times=2)
    s.forget()
    assert s.ack(1, times=4) == [True] * 4
    s.data(1, 6)
    assert s.ack(7) == [True]
    assert s.wait(60_000) == []


@snoops
def test_flows_do_not_disturb_each_other(make: Make, scheme: str) -> None:
    s = flowing(make(scheme))
    other = Flow(DOWN.source, DOWN.source_port, DOWN.destination, DOWN.destination_port + 1)
    s.data(1, 2, 3, 4)
    s.data(1, 2, 4, 5, flow=other)
    assert s.ack(3, flow=other.reversed()) == [True]
    assert s.ack(1) == [False]
    assert s.ack(3, times=2, flow=other.reversed()) == [True] * 2
    assert s.ack(1) == [False]
    assert s.repaired == [1]
    assert s.ack(5) == [True]
    assert s.ack(6, flow=other.reversed()) == [True]
    assert s.wait(60_000) == []


@local
@pytest.mark.parametrize("side", ["ip", "link"])
def test_after_a_reset_nothing_is_repaired(make: Make, scheme: str, side: str) -> None:
    s = flowing(make(scheme))
    s.data(1, 2, 3)
    if side == "ip":
        s.from_ip(Segment(DOWN, s.octet(4), 77, RST | ACK, 0))
    else:
        s.from_link(Segment(UP, 77, s.octet(1), RST | ACK, 0))
    assert s.wait(60_000) == []
    assert s.checked.link.next_deadline() is None


@local
def test_a_new_connection_of_the_same_name_begins_anew(make: Make, scheme: str) -> None:
    s = flowing(make(scheme))
    s.data(1, 2, 3)
    s.from_ip(Segment(DOWN, 0x5000_0000, 0, SYN, 60_000, syn=SynOptions(1460, 7, True)))
    assert s.from_link(Segment(UP, 77, 0x5000_0001, SYN | ACK, 60_000, syn=SynOptions(1460, 7, True))) is not None
    assert s.wait(60_000) == []
    s.isn = 0x5000_0001
    s.data(0)
    assert s.ack(1) == [True]
    s.data(1, 2, 3, 4)
    s.ack(1, times=3)
    s.wait(2000)
    assert set(s.repaired) == {1}


@snoops
def test_a_forged_syn_makes_no_dupack_of_a_new_ack(make: Make, scheme: str) -> None:
    s = flowing(make(scheme))
    s.data(1, 2, 3)
    s.from_ip(Segment(DOWN, s.octet(2) - 1 & MASK, 0, SYN, 60_000, syn=SynOptions(1460)))
    s.data(4, 5)
    assert s.ack(2) == [True]


@snoops
def test_the_first_dupacks_of_a_connection_are_held_back(make: Make, scheme: str) -> None:
    """The window of a SYN-ACK is of another scale: what repeats its number repeats all that is known."""
    s = make(scheme)
    s.from_ip(Segment(DOWN, s.octet(0) - 1 & MASK, 0, SYN, 60_000, syn=SynOptions(1460, 7)))
    assert s.ack(0, flags=SYN | ACK, window=65_535) == [True]
    s.data(0, 1, 2, 3)
    assert s.ack(0, times=3) == [False] * 3
    assert s.repaired == [0]
    assert s.ack(4) == [True]


@local
def test_after_both_fins_nothing_is_repaired(make: Make, scheme: str) -> None:
    s = flowing(make(scheme))
    s.data(1)
    s.from_ip(Segment(DOWN, s.octet(2), 77, FIN | ACK, 60_000))
    assert s.from_link(Segment(UP, 77, s.octet(2) + 1 & MASK, FIN | ACK, 30_000)) is not None
    s.from_ip(Segment(DOWN, s.octet(2) + 1 & MASK, 78, ACK, 60_000))
    assert s.wait(60_000) == []
    assert s.checked.link.next_deadline() is None


# -- ACKs that repeat and are none of Snoop's business -------------------------------------------------------


@local
@pytest.mark.parametrize("size", [0, 1])
def test_the_answer_to_a_keepalive_passes(make: Make, scheme: str, size: int) -> None:
    s = flowing(make(scheme))
    for _ in range(9):
        s.from_ip(Segment(DOWN, s.octet(1) - 1 & MASK, 77, ACK, 60_000, size, bytes(size) or None))
        assert s.ack(1) == [True]
        assert s.wait(75_000) == []


@local
@pytest.mark.parametrize("size", [0, 1, 1000])
def test_the_answer_to_a_zero_window_probe_passes(make: Make, scheme: str, size: int) -> None:
    """RFC 9293 section 3.8.6.1: a connection whose probes are answered stays open, for ever if need be."""
    s = flowing(make(scheme))
    s.data(1)
    assert s.ack(2, window=0) == [True]
    before = s.octet(2) - (0 if size else 1) & MASK
    for _ in range(5):
        s.from_ip(Segment(DOWN, before, 77, ACK, 60_000, size, bytes(size) or None))
        assert s.ack(2, window=0) == [True], "no data is missing: the receiver has no room"
        assert s.wait(60_000) == [], "a probe is the sender's to repeat"


@local
def test_the_answer_to_a_stale_retransmission_passes(make: Make, scheme: str) -> None:
    """The ACK was lost in the wired network; the sender sends again what has long arrived."""
    s = flowing(make(scheme))
    s.data(1, 2)
    assert s.ack(3) == [True]
    for _ in range(3):
        s.data(2)
        assert s.ack(3) == [True]
        assert s.wait(3000) == []


@local
def test_data_of_the_mobile_host_passes(make: Make, scheme: str) -> None:
    s = make(scheme)
    for n in (0, 1, 3, 2, 2, 0):
        assert s.from_link(Segment(UP, 500 + n * SIZE, s.octet(0), ACK, 30_000, SIZE, bytes(SIZE))) is not None
        s.from_ip(Segment(DOWN, s.octet(0), 500 + n * SIZE, ACK, 60_000))
    assert s.wait(60_000) == []


# -- numbers that do not fit segments ------------------------------------------------------------------------


@snoops
@pytest.mark.parametrize("number", [1.0, 1.3])
def test_a_segment_of_which_a_part_has_come_is_repaired_whole(make: Make, scheme: str, number: float) -> None:
    s = flowing(make(scheme))
    s.data(1, size=60_000)
    s.data(61, 62)
    s.ack(number)
    s.ack(number, times=2)
    s.wait(2000)
    assert set(s.repaired) == {1}


@snoops
def test_other_pieces_of_the_same_octets_are_no_harm(make: Make, scheme: str) -> None:
    s = flowing(make(scheme))
    s.data(1, 2, 3, 4, 5)
    s.data(1.5, 2.5)
    s.data(1, size=3 * SIZE)
    s.ack(1, times=3)
    s.wait(2000)
    assert 1 in s.repaired
    before = len(s.repaired)
    assert s.ack(3) == [True]
    s.data(6, 7, 8)
    s.ack(3, times=3)
    s.wait(2000)
    assert all(number in (1, 2, 3) for number in s.repaired[before:])
    assert s.repaired[before:]
    assert s.ack(9) == [True]
    assert s.wait(60_000) == []


@local
def test_an_ack_of_what_was_never_sent_passes_and_does_not_stop_repairs(make: Make, scheme: str) -> None:
    s = flowing(make(scheme))
    s.data(1, 2, 3, 4)
    assert s.ack(1_000_000) == [True]
    assert s.ack(-1000) == [True]
    s.data(5, 6, 7)
    s.ack(5)
    s.ack(5, times=3)
    s.wait(2000)
    assert 5 in s.repaired


@pytest.mark.slow
@local
def test_a_flow_that_is_never_acknowledged_is_not_kept_without_end(make: Make, scheme: str) -> None:
    s = flowing(make(scheme))
    sizes = []
    for n in range(1, 4001):
        s.data(n * 60, size=60_000)
        if n % 1000 == 0:
            sizes.append(footprint(s.checked.link))
    assert sizes[-1] < 1.2 * sizes[0] + 100_000


# -- ll: TCP's sender hears everything -----------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["ll", "ll-smart"])
@wrapping
def test_ll_repairs_and_passes_every_dupack(make: Make, scheme: str, isn: int) -> None:
    s = flowing(make(scheme, isn=isn))
    s.data(1, 2, 3, 4, 5)
    assert s.ack(1, times=4) == [True] * 4
    assert s.repaired == [1]


# -- SMART and SACK ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["ll-smart", "snoop-smart"])
@pytest.mark.parametrize("by", ["sack", "smart"])
@wrapping
def test_every_hole_is_repaired_once_per_round_trip(make: Make, scheme: str, by: str, isn: int) -> None:
    s = flowing(make(scheme, isn=isn))
    s.data(*range(1, 11))
    # 1, 3, 5 and 6 are lost
    blocks: list[tuple[float, float]] = []
    for n in (2, 4, 7, 8, 9, 10):
        if blocks and blocks[0][1] == n:
            blocks[0] = (blocks[0][0], n + 1)
        else:
            blocks.insert(0, (n, n + 1))
        if by == "sack":
            s.ack(1, sack=blocks[:3])
        else:
            s.ack(1, smart=n)
    assert sorted(s.repaired) == [1, 3, 5, 6]
    assert s.ack(11) == [True]
    assert s.wait(60_000) == []


@snoops
def test_news_for_a_sack_sender_comes_with_the_ack_after_the_repair(make: Make, scheme: str) -> None:
    s = flowing(make(scheme))
    # 1 is lost on the air, 4 never reached the base station
    s.data(1, 2, 3, 5, 6)
    s.ack(1, sack=[(2, 3)])
    s.ack(1, sack=[(2, 4)])
    s.ack(1, sack=[(5, 6), (2, 4)])
    s.ack(1, sack=[(5, 7), (2, 4)])
    assert s.repaired == [1]
    leaves = s.from_link(Segment(UP, 77, s.octet(4), ACK, 30_000, sack=((s.octet(5), s.octet(7)),)))
    assert leaves is not None
    assert leaves.sack == ((s.octet(5), s.octet(7)),)
    s.data(7)
    assert s.ack(4, sack=[(5, 8)]) == [True]


@pytest.mark.parametrize("scheme", ["ll-smart", "snoop-smart"])
def test_what_the_mobile_end_adds_the_base_end_takes_off(make: Make, scheme: str) -> None:
    mobile, base = make(scheme, end="mobile"), make(scheme)
    base.data(0, 1, 2)
    mobile.from_link(Segment(DOWN, base.octet(0), 77, ACK, 60_000, SIZE, bytes(SIZE)))
    mobile.from_link(Segment(DOWN, base.octet(2), 77, ACK, 60_000, SIZE, bytes(SIZE)))
    ack = Segment(UP, 77, base.octet(1), ACK, 30_000, timestamps=(1, 2), number=5)
    on_the_air = mobile.from_ip(ack)
    assert smart_of(on_the_air) == (base.octet(2), base.octet(3))
    leaves = base.from_link(on_the_air)
    assert leaves is not None
    assert smart_of(leaves) is None
    assert emit(leaves) == emit(ack)


@pytest.mark.parametrize("scheme", ["ll-smart", "snoop-smart"])
def test_a_repair_that_was_not_needed_makes_no_others(make: Make, scheme: str) -> None:
    s = flowing(make(scheme))
    s.data(1, 2, 3, 4)
    # 1 was lost on the air, and so was the dupack that 3 had caused
    s.ack(1, smart=2)
    assert s.repaired == [1]
    s.data(*range(5, 11))
    s.wait(15)
    s.ack(1, smart=4)
    assert s.repaired == [1, 3]
    # 2 ms after the second copy of 3 was sent no ACK can speak of it: round trips take 20
    s.ack(5, smart=1)
    for n in (6, 7, 8, 9, 10, 11):
        s.ack(n, smart=n - 1)
    assert s.repaired == [1, 3]


@pytest.mark.parametrize("scheme", ["ll-smart", "snoop-smart", "split-smart"])
def test_the_mobile_end_calls_nothing_lost_that_has_come_while_an_ack_waited(make: Make, scheme: str) -> None:
    s = make(scheme, end="mobile")
    for n in (0, 1, 2, 3):
        s.from_link(Segment(DOWN, s.octet(n), 77, ACK, 60_000, SIZE, bytes(SIZE)))
    for n in (1, 2, 3):
        cause = smart_of(s.from_ip(Segment(UP, 77, s.octet(n), ACK, 30_000)))
        assert cause is None or cause[1] == s.octet(n)
    assert smart_of(s.from_ip(Segment(UP, 77, s.octet(4), ACK, 30_000))) == (s.octet(3), s.octet(4))


@pytest.mark.parametrize("size", [0, 1000])
@pytest.mark.parametrize("scheme", ["ll-smart", "snoop-smart", "split-smart"])
def test_the_mobile_end_adds_nothing_where_there_is_no_room(make: Make, scheme: str, size: int) -> None:
    s = make(scheme, end="mobile")
    s.from_link(Segment(DOWN, s.octet(0), 77, ACK, 60_000, SIZE, bytes(SIZE)))
    full = Segment(UP, 77, s.octet(1), ACK, 30_000, size, bytes(size) or None, extra=(Option(254, bytes(36)),))
    leaves = s.from_ip(full)
    assert leaves.extra == full.extra


# -- guesses -------------------------------------------------------------------------------------------------


@local
@wrapping
def test_one_guess_per_hole(make: Make, scheme: str, isn: int) -> None:
    s = flowing(make(scheme, isn=isn))
    # 2 is lost on the air, 5 never reached the base station
    s.data(1, 2, 3, 4, 6, 7)
    s.ack(2)
    s.ack(2, times=4)
    s.ack(5)
    s.data(8, 9, 10)
    s.ack(5, times=3)
    found = [(guess.flow, guess.seq, guess.cause) for guess in s.guesses]
    assert found == [(DOWN, s.octet(2), "corruption"), (DOWN, s.octet(5), "congestion")]


# -- explicit loss notification ------------------------------------------------------------------------------

elns = pytest.mark.parametrize("eln", ["base", "ends"])


def marks(s: Script, number: float, **options: Any) -> bool:
    """Whether the mobile host's ACK leaves marked."""
    leaves = s.from_link(Segment(s.down.reversed(), 77, s.octet(number), ACK, 30_000, **options))
    assert leaves is not None
    return has_eln(leaves)


@elns
@wrapping
def test_dupacks_of_what_was_lost_on_the_air_are_marked(make: Make, eln: str, isn: int) -> None:
    s = make("none", eln=eln, isn=isn)
    s.data(0, 1, 2, 3, 4)
    assert not marks(s, 1)
    assert [marks(s, 1) for _ in range(3)] == [True] * 3
    assert not marks(s, 5)


@elns
@wrapping
def test_what_a_queue_has_dropped_is_never_marked(make: Make, eln: str, isn: int) -> None:
    s = make("none", eln=eln, isn=isn)
    s.data(-1)
    assert not marks(s, 0)
    s.data(0, 2, 3, 4)
    assert not marks(s, 1)
    assert not any(marks(s, 1) for _ in range(5))
    s.data(5, 6)
    assert not any(marks(s, 1) for _ in range(5))


@elns
def test_a_retransmission_that_is_lost_again_is_marked_again(make: Make, eln: str) -> None:
    s = make("none", eln=eln)
    s.data(-1)
    assert not marks(s, 0)
    s.data(0, 2, 3, 4)
    assert not marks(s, 1)
    assert not any(marks(s, 1) for _ in range(3))
    # it comes now, and is lost on the air
    s.data(1)
    s.data(5, 6)
    assert marks(s, 1)
    assert marks(s, 1)
    s.data(1)
    assert not marks(s, 7)


@elns
def test_answers_to_keepalives_are_not_marked(make: Make, eln: str) -> None:
    s = make("none", eln=eln)
    s.data(0)
    marks(s, 1)
    for _ in range(3):
        s.from_ip(Segment(DOWN, s.octet(1) - 1 & MASK, 77, ACK, 60_000, 1, b"x"))
        assert not marks(s, 1)


@wrapping
def test_holes_in_what_comes_from_the_mobile_host_are_marked(make: Make, isn: int) -> None:
    s = make("none", eln="base", isn=isn)

    def from_mobile(*numbers: int) -> None:
        for n in numbers:
            s.from_link(Segment(UP, s.octet(n), 77, ACK, 30_000, SIZE, bytes(SIZE)))

    def acks(number: int) -> bool:
        return has_eln(s.from_ip(Segment(DOWN, 77, s.octet(number), ACK, 60_000)))

    from_mobile(-1)
    assert not acks(0)
    from_mobile(0, 2, 3)
    assert not acks(1)
    assert acks(1)
    assert acks(1)
    # the hole is filled; 5 arrives here and is lost in the wired network
    from_mobile(1, 4, 5, 6, 7)
    assert not acks(4)
    assert not acks(5)
    assert not any(acks(5) for _ in range(4))


@elns
def test_a_full_header_gives_up_its_last_sack_block(make: Make, eln: str) -> None:
    s = make("none", eln=eln)
    s.data(*range(10))
    sack = tuple((s.octet(n), s.octet(n + 1)) for n in (8, 6, 4))
    options: Any = {"sack": sack, "timestamps": (1, 2), "extra": (Option(254, b"ab"),)}
    marks(s, 1, **options)
    leaves = s.from_link(Segment(UP, 77, s.octet(1), ACK, 30_000, **options))
    assert leaves is not None
    assert (has_eln(leaves), leaves.sack) == (True, sack[:2])


@elns
def test_an_ack_with_data_does_not_grow(make: Make, eln: str) -> None:
    s = make("none", eln=eln)
    s.data(*range(10))
    marks(s, 1)
    ack = Segment(UP, 77, s.octet(1), ACK, 30_000, 1400, bytes(1400))
    leaves = s.from_link(ack)
    assert leaves is not None
    assert len(leaves) == len(ack)


def test_every_scheme_is_known() -> None:
    assert set(LOCAL) <= set(SCHEMES)
