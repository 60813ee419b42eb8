"""Framing against the definition of AAL5."""

from hypothesis import given
from hypothesis import strategies as st

from channel.framing import aal5, aal5_llc, raw


@given(st.integers(0, 100_000))
def test_aal5_uses_the_fewest_cells_for_frame_and_trailer(nbytes: int) -> None:
    cells, rest = divmod(aal5(nbytes), 53 * 8)
    assert rest == 0
    assert 48 * (cells - 1) < nbytes + 8 <= 48 * cells


def test_known_sizes() -> None:
    assert aal5(40) == 424
    assert aal5(41) == 848
    assert aal5(1450) == 31 * 424
    # a SLACP frame around a packet of 1450 octets: its LLC/SNAP headers take it into another cell
    assert aal5(1474) == aal5_llc(1450) == 31 * 424
    assert aal5_llc(1474) == 32 * 424
    assert raw(1450) == 11_600
