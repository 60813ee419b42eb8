"""The queue that a scenario chooses, at the stations of virtual time."""

from typing import Any

import pytest

from linklayer.queues import QUEUES
from testbed.results.summary import Summary
from testbed.running import unused
from testbed.simulation import simulate
from tests.harness.model_runs import model

#: a window of some 64 packets where 18 are under way: the rest waits in the sender's IP queue
_STANDING = {"rate_bps": 2_000_000, "delay_ms": 50}


def run(queue: Any, tcp: str) -> Summary:
    work = [{"kind": "bulk", "bytes": 600_000}]
    return simulate(model(link={"queue": queue}, channel=_STANDING, tcp=tcp, workloads=work, seed=3))


@pytest.mark.parametrize("name", QUEUES)
def test_a_transfer_through_each_queue_repeats_with_its_seed(name: str) -> None:
    queue = {"kind": name, **QUEUES[name].example}
    first = run(queue, "sack")
    assert first == run(queue, "sack")
    assert (first.finished, first.intact) == (True, True)
    assert first.link["up"].congestion_losses > 0


@pytest.mark.parametrize("queue", [{"kind": "red", "weight": 1, "mark_above": True}, {"kind": "codel"}])
def test_what_understands_ecn_is_marked_and_not_lost(queue: dict[str, Any]) -> None:
    marked, lost = run(queue, "sack-ecn"), run(queue, "sack")
    assert (marked.retransmissions, marked.link["up"].congestion_losses) == (0, 0)
    assert lost.link["up"].congestion_losses > 0


@pytest.mark.parametrize(
    ("scheme", "queue", "lines"),
    [
        ("slacp", "codel", []),
        # a packet filter takes packets one by one
        ("snoop", "codel", []),
        ("none", "drop-tail", []),
        ("none", "codel", ["scheme none has no use for link.queue: its packets wait in the transmitter's buffer"]),
    ],
)
def test_a_queue_that_no_packet_meets_is_said(scheme: str, queue: str, lines: list[str]) -> None:
    assert [*unused(model(link={"scheme": scheme, "queue": queue}))] == lines
