"""Several sinks as one."""

from unittest.mock import Mock, call

import pytest

from telemetry.records import FlowRecord
from telemetry.sinks import Sinks
from tests.harness.records import recorded

RECORD = recorded(FlowRecord, time_ns=1, host="h2", flow="bulk", bytes_received=2, goodput_bps=3.0)


def test_each_hears_all_in_order() -> None:
    heard = Mock()
    sinks = Sinks([heard.a, heard.b])
    sinks.begin(5)
    sinks.write(RECORD)
    sinks.close()
    a, b = call.a, call.b
    assert heard.mock_calls == [a.begin(5), b.begin(5), a.write(RECORD), b.write(RECORD), a.close(), b.close()]


def test_all_are_closed_whatever_one_raises() -> None:
    heard = Mock()
    heard.b.close.side_effect = KeyError("b")
    with pytest.raises(KeyError, match="b"):
        Sinks([heard.a, heard.b, heard.c]).close()
    assert heard.mock_calls == [call.a.close(), call.b.close(), call.c.close()]
