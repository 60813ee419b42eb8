"""LT-TCP's ledger: the segments that have left the network, by reports."""

from hosts.tcp.lt.ledger import Ledger


def test_a_report_tells_of_arrivals_that_no_earlier_one_told_of() -> None:
    ledger = Ledger()
    # the same, an earlier one, one half of the numbers ahead
    counts = [3, 3, 2, 3 + 0x8000, 3 + 0x7FFF, 1]
    assert [ledger.handle_report(count & 0xFFFF, 0) for count in counts] == [True, False, False, False, True, True]
    assert ledger.arrived == 0x10001
