"""The seam between sender and recovery: what a recovery need not have, and what the sender asks of the declaration."""

import pytest

from hosts.tcp.recovery import RECOVERIES, Recovery, RecoveryPlugin
from tcpip.segment import Segment
from tests.harness.endpoints import agreed
from tests.hosts.tcp.script import PLAIN, MakeScript, window_of


class Patient(Recovery):
    """Nothing but what a recovery must have: it waits for the timer."""

    def handle_dupack(self, segment: Segment, now: int) -> None:
        pass

    def handle_ack(self, segment: Segment, acked: int, filled: bool, now: int) -> bool:
        return True

    def handle_timeout(self) -> None:
        pass


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = RecoveryPlugin(name="patient", summary="waits", make=lambda sender, config: Patient(sender))
    monkeypatch.setattr(RECOVERIES, "_found", {**RECOVERIES, "patient": plugin})


@pytest.mark.parametrize("eln", ["ignore", "retransmit"])
def test_a_recovery_without_more_leaves_losses_to_the_timer(script: MakeScript, eln: str) -> None:
    config = PLAIN.but(recovery="patient", eln=eln, frto=True)
    s = window_of(8, script, config, nbytes=8000)
    s.inject(200, *["ack 1 eln"] * 5, sends=[])
    s.expect(1100, "1:1001", cwnd=1000, ssthresh=4000)
    s.inject(1200, "ack 8001", sends=[])
    assert s.connection.drained


def test_the_handshake_asks_for_nothing_that_the_recovery_does_not(script: MakeScript) -> None:
    s = script(PLAIN.but(recovery="patient"), connected=False)
    s.connect(sends=["S 0:0 mss 1000"])
    s.inject(100, "S 0:0 ack 1 mss 1000 sackok smartok", sends=["1:1 ack 1"])
    assert "sack" not in agreed(s.connection)
