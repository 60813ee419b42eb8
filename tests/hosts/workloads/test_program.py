"""Programs of others as traffic: which host has the server and which the client, and what their ends report."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from typing_extensions import override

from common.sides import SIDES, Side
from common.units import SECOND
from hosts.engine.programs import Client, Programs, Task
from hosts.engine.results import ProgramReceived, ProgramSent, Told
from hosts.workloads import sender_of
from hosts.workloads.program import ProgramTraffic
from tests.hosts.two_hosts import ADDRESSES, TwoHosts


class Shell(Programs):
    """Stands in for the programs of both hosts: clients tell `output` two seconds after their start."""

    def __init__(self, output: str) -> None:
        self.output = output
        self.required: list[Task] = []
        self.served: list[tuple[Task, str]] = []
        self.started: list[tuple[int, Task, int]] = []
        self.killed = 0
        self.hosts: TwoHosts | None = None

    @override
    def require(self, task: Task) -> None:
        self.required.append(task)

    @override
    def serve(self, task: Task, ready: str) -> None:
        self.served.append((task, ready))

    @override
    def start(self, task: Task, until: int, done: Callable[[str], None]) -> Client:
        assert self.hosts is not None
        clock = self.hosts.clock
        self.started.append((clock.now, task, until))
        clock.at(clock.now + 2 * SECOND, lambda _: done(self.output))
        return _Running(self)

    @override
    def close(self) -> None:
        """Nothing to end."""


class _Running(Client):
    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    @override
    def kill(self) -> None:
        self._shell.killed += 1


#: what curl tells of 20,000 octets in 2 s, and iperf3 of 10,000 in a second
OUTPUTS = {
    "curl": json.dumps({"bytes": 20_000, "s": 2.0, "connect_s": 0.05}),
    "iperf3": json.dumps(
        {
            "end": {
                "streams": [{"sender": {}}],
                "sum_sent": {},
                "sum_received": {"bytes": 10_000, "seconds": 1.0},
            }
        }
    ),
}
TOLD = {
    "curl": Told(bytes=20_000, duration_s=2.0, delay_ms=50.0),
    "iperf3": Told(bytes=10_000, duration_s=1.0),
}


def begun(work: ProgramTraffic) -> tuple[Shell, TwoHosts]:
    shell = Shell(OUTPUTS[work.tool])
    hosts = shell.hosts = TwoHosts(work, programs=shell)
    return shell, hosts.go()


@pytest.mark.parametrize("direction", SIDES)
@pytest.mark.parametrize(("tool", "client_sends"), [("iperf3", True), ("curl", False)])
def test_the_data_sender_is_the_end_of_the_program_that_sends(tool: str, client_sends: bool, direction: Side) -> None:
    work = ProgramTraffic(
        tool=tool, direction=direction, start_s=1, duration_s=4, bytes=20_000, arguments="-4 'two words'", patience_s=3
    )
    sender = sender_of(work)
    client = sender if client_sends else next(host for host in ("h1", "h2") if host != sender)
    [server] = {"h1", "h2"} - {client}
    shell, hosts = begun(work)
    # before the run: the server listens, and the client is there
    [(served, ready)], [required] = shell.served, shell.required
    assert ready
    assert any("6001" in str(word) for word in (*served.command.words, *served.command.files))
    hosts.run(10 * SECOND)
    [(started_at, task, until)] = shell.started
    assert task == required
    assert (task.flow, started_at, until) == ("program", SECOND, (1 + 4 + 3) * SECOND)
    assert any(ADDRESSES[server] in word for word in task.command.words)  # type: ignore[index]
    assert task.command.words[-2:] == ("-4", "two words")
    # both ends report, and the client alone tells
    [sent], [received] = hosts.sent, hosts.received
    assert isinstance(sent, ProgramSent)
    assert isinstance(received, ProgramReceived)
    told = TOLD[tool]
    assert (sent.told, received.told) == ((told, None) if client_sends else (None, told))
    assert {report.host for report in hosts.reports if report.result.bytes} == {client}
    assert sent.started_ns == SECOND
    assert [report.result.finished_ns for report in hosts.reports if report.host == client] == [3 * SECOND]
    outcome = work.outcome([sent], [received], 10)
    assert (outcome.nbytes, outcome.duration_s, outcome.finished, outcome.intact) == (
        told.bytes,
        told.duration_s,
        True,
        None,
    )
    assert outcome.span == (1, 1 + told.duration_s)


def test_a_stopped_client_is_killed_and_tells_nothing() -> None:
    work = ProgramTraffic(tool="iperf3")
    shell, hosts = begun(work)
    hosts.run(SECOND)
    for agent in hosts.agents.values():
        agent.pause(True)
        agent.stop()
    # what it tells after that is ignored
    hosts.run(10 * SECOND)
    assert shell.killed == 1
    [sent], [received] = hosts.sent, hosts.received
    assert (sent.error, sent.bytes, received.error) == ("stopped", 0, None)
    outcome = work.outcome([sent], [received], 10)
    assert (outcome.nbytes, outcome.finished, outcome.intact, outcome.span) == (0, False, None, (0, 10))
    for agent in hosts.agents.values():
        agent.stop()
    assert (shell.killed, len(hosts.reports)) == (1, 2)


def test_a_result_of_a_program_that_is_none_is_raised_and_not_reported() -> None:
    shell, hosts = begun(ProgramTraffic(tool="iperf3"))
    shell.output = '{"error": "unable to connect"}'
    with pytest.raises(KeyError):
        hosts.run(10 * SECOND)
    assert [report.host for report in hosts.reports] == ["h2"]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"tool": "ftp"}, "tool 'ftp' is unknown: choose from caddy, chromium, curl, iperf3, irtt$"),
        ({"tool": "curl"}, "tool curl needs bytes$"),
        ({"tool": "irtt", "bytes": 1}, "tool irtt has no bytes: duration_s is its limit$"),
        ({"tool": "iperf3", "arguments": "'"}, 'arguments "\'" are no words: No closing quotation$'),
        ({"tool": "iperf3", "arguments": "-P 2 --rev"}, "arguments '-P 2 --rev': --rev is not for them. Direction, "),
        ({"tool": "iperf3", "arguments": "-VR"}, "arguments '-VR': -VR is not for them. Direction, port, "),
        ({"tool": "iperf3", "arguments": "--port=80"}, "arguments '--port=80': --port=80 is not for them. "),
        ({"tool": "iperf3", "patience_s": 0}, "patience_s is 0: must be above 0$"),
    ],
)
def test_what_no_program_can_do_is_one_line(options: dict[str, Any], line: str) -> None:
    with pytest.raises(ValueError, match=f"^{line}") as error:
        ProgramTraffic(**options)
    assert "\n" not in str(error.value)
