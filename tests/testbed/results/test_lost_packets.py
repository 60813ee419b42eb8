"""Which lost frames are lost packets, where packets are sent again."""

import pytest

from testbed.results.lost_packets import LostPackets


@pytest.mark.parametrize(
    ("fates", "counts"),
    [
        pytest.param("a-", (1, 0, 0), id="lost"),
        pytest.param("a- b a", (0, 1, 0), id="lost until a retransmission crosses"),
        pytest.param("a- a-", (1, 1, 0), id="lost twice is lost once"),
        pytest.param("a- a- a", (0, 2, 0), id="crosses at the third time"),
        pytest.param("a a- b-", (1, 1, 0), id="a lost needless copy is no lost packet"),
        pytest.param("a a a- a", (0, 1, 2), id="a packet that comes again is counted"),
    ],
)
def test_lost_packets_spared_frames_and_repeats(fates: str, counts: tuple[int, int, int]) -> None:
    packets = LostPackets()
    for fate in fates.split():
        packets.handle_fate(fate[0], fate.endswith("-"))
    assert (fates.count("-") - packets.spared, packets.spared, packets.repeats) == counts
