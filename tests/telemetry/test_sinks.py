"""Several sinks as one."""

from collections.abc import Callable

import pytest

from telemetry.records import FlowRecord, Record
from telemetry.sinks import Sinks
from tests.harness.records import recorded

RECORD = recorded(FlowRecord, time_ns=1, host="h2", flow="bulk", bytes_received=2, goodput_bps=3.0)


class Listening:
    """A sink that notes what it is told in a list shared with others."""

    def __init__(self, name: str, heard: list[tuple[object, ...]], end: Callable[[], None] = lambda: None) -> None:
        self.name = name
        self.heard = heard
        self.end = end

    def begin(self, epoch_ns: int) -> None:
        self.heard.append((self.name, "begin", epoch_ns))

    def write(self, record: Record) -> None:
        self.heard.append((self.name, record))

    def close(self) -> None:
        self.heard.append((self.name, "close"))
        self.end()


def test_each_hears_all_in_order() -> None:
    heard: list[tuple[object, ...]] = []
    sinks = Sinks([Listening("a", heard), Listening("b", heard)])
    sinks.begin(5)
    sinks.write(RECORD)
    sinks.close()
    assert heard == [
        ("a", "begin", 5),
        ("b", "begin", 5),
        ("a", RECORD),
        ("b", RECORD),
        ("a", "close"),
        ("b", "close"),
    ]


def test_all_are_closed_whatever_one_raises() -> None:
    def fail() -> None:
        raise KeyError("a")

    heard: list[tuple[object, ...]] = []
    sinks = Sinks([Listening("a", heard), Listening("b", heard, fail), Listening("c", heard)])
    with pytest.raises(KeyError, match="a"):
        sinks.close()
    assert heard == [("a", "close"), ("b", "close"), ("c", "close")]
