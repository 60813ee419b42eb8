"""Which lost frames are lost packets, where packets are sent again."""

from testbed.results.lost_packets import LostPackets


def counts_of(*fates: tuple[str, bool]) -> tuple[int, int, int]:
    """Lost packets, frames spared and packets that came twice, of (packet, whether its frame was lost)."""
    packets = LostPackets()
    for packet, lost in fates:
        packets.handle_fate(packet, lost)
    return sum(lost for _, lost in fates) - packets.spared, packets.spared, packets.repeats


def test_lost_frame_is_a_lost_packet_until_a_retransmission_crosses() -> None:
    assert counts_of(("a", True)) == (1, 0, 0)
    assert counts_of(("a", True), ("b", False), ("a", False)) == (0, 1, 0)


def test_a_packet_lost_twice_is_lost_once() -> None:
    assert counts_of(("a", True), ("a", True)) == (1, 1, 0)
    assert counts_of(("a", True), ("a", True), ("a", False)) == (0, 2, 0)


def test_lost_needless_copy_is_no_lost_packet() -> None:
    assert counts_of(("a", False), ("a", True), ("b", True)) == (1, 1, 0)


def test_a_packet_that_comes_again_is_counted() -> None:
    assert counts_of(("a", False), ("a", False), ("a", True), ("a", False)) == (0, 1, 2)
