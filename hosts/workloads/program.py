"""Programs of others as traffic."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from shlex import split
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from common.options import Bytes, Positive
from hosts.engine.programs import Command, Task
from hosts.engine.results import ProgramReceived, ProgramSent, Received, Sent, Told
from hosts.workloads import Outcome, Port, Workload, WorkloadPlugin, sender_of
from hosts.workloads.programs import PROGRAMS, Place, Program

if TYPE_CHECKING:
    from hosts.engine.agent import Agent


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramTraffic(Workload):
    """A program of others: its server starts before the run, its client at `start_s`. On live tiers only.

    The figures of the flow are those that the client tells. It must end within its duration and `patience_s`.
    """

    kind: ClassVar[str] = "program"

    flow: str = "program"
    port: Port = 6001
    #: a file of hosts/workloads/programs/
    tool: str
    duration_s: Positive = 10.0
    #: for tools that transfer a size, in place of the duration; None: the duration is the limit
    bytes: Bytes | None = None
    #: further words of the client's command line
    arguments: str = ""
    #: how long after its duration the client may end
    patience_s: Positive = 30.0

    def __post_init__(self) -> None:
        super(ProgramTraffic, self).__post_init__()
        if self.tool not in PROGRAMS:
            raise ValueError(f"tool {self.tool!r} is unknown: choose from {', '.join(PROGRAMS)}")
        if self.bytes is None and self._plugin.limit == "size":
            raise ValueError(f"tool {self.tool} needs bytes")
        if self.bytes is not None and self._plugin.limit == "time":
            raise ValueError(f"tool {self.tool} has no bytes: duration_s is its limit")
        try:
            words = split(self.arguments)
        except ValueError as error:
            raise ValueError(f"arguments {self.arguments!r} are no words: {error}") from None
        for word in words:
            if self._plugin.reserves(word):
                raise ValueError(
                    f"arguments {self.arguments!r}: {word} is not for them. Direction, port, duration and size are "
                    "options of the workload; the form of the output is the tool's"
                )

    @property
    def _plugin(self) -> Program:
        return PROGRAMS[self.tool]

    @property
    @override
    def live_option(self) -> str:
        return "kind"

    @override
    def bind(self, agent: "Agent") -> None:
        if self._plugin.sends == "client":
            self._serve(agent)
        else:
            agent.require_program(self._client_task(agent))

    @override
    def bind_sender(self, agent: "Agent") -> None:
        if self._plugin.sends == "server":
            self._serve(agent)
        else:
            agent.require_program(self._client_task(agent))

    @override
    def expect(self, agent: "Agent") -> None:
        if self._plugin.sends == "server":
            agent.clock.at(agent.at(self.start_s), self._run, agent)
        else:
            self._report(agent, None, None)

    @override
    def start(self, agent: "Agent") -> None:
        if self._plugin.sends == "client":
            self._run(agent)
        else:
            self._report(agent, None, None)

    @override
    def outcome(self, senders: Sequence[Sent], receivers: Sequence[Received], until_s: float) -> Outcome:
        ends = [end for end in (*senders, *receivers) if isinstance(end, ProgramSent | ProgramReceived)]
        told = next((end.told for end in ends if end.told is not None), None)
        if told is None:
            return Outcome(nbytes=0, span=self.span(None, until_s), finished=False, intact=None)
        return Outcome(
            nbytes=told.bytes,
            span=(float(self.start_s), self.start_s + told.duration_s),
            duration_s=told.duration_s,
            finished=True,
            intact=None,
        )

    def _serve(self, agent: "Agent") -> None:
        command = self._plugin.server(self._place(agent, agent.context.host, agent.address))
        agent.serve_program(self._task(command), self._plugin.ready)

    def _run(self, agent: "Agent") -> None:
        until = agent.clock.now + int((self.duration_s + self.patience_s) * 1e9)
        agent.run_program(self, self._client_task(agent), until, self._plugin.parse, partial(self._report, agent))

    def _report(self, agent: "Agent", told: Told | None, error: str | None) -> None:
        nbytes = 0 if told is None else told.bytes
        now = agent.context.time_ns
        if agent.context.host == sender_of(self):
            started_ns = int(self.start_s * 1e9)
            sent = ProgramSent(bytes=nbytes, error=error, started_ns=started_ns, finished_ns=now, told=told)
            agent.report(self, self.flow, 0, sent)
        else:
            received = ProgramReceived(
                bytes=nbytes, error=error, finished_ns=now, first_byte_ns=None, last_byte_ns=None, told=told
            )
            agent.report(self, self.flow, 0, received)

    def _client_task(self, agent: "Agent") -> Task:
        command = self._plugin.client(self._place(agent, agent.context.host, agent.peer))
        return self._task(replace(command, words=(*command.words, *split(self.arguments))))

    def _place(self, agent: "Agent", host: str, address: str) -> Place:
        return Place(
            address=address,
            port=self.port,
            host=host,
            namespace=agent.namespace,
            duration_s=self.duration_s,
            bytes=self.bytes,
            seed=agent.context.seed,
        )

    def _task(self, command: Command) -> Task:
        return Task(flow=self.flow, command=command, package=self._plugin.package)


WORKLOAD = WorkloadPlugin(
    name=ProgramTraffic.kind,
    summary="a program of others, as iperf3, between two processes of the hosts; live tiers only",
    options=ProgramTraffic,
    example={"tool": "iperf3", "duration_s": 2},
    simulated=False,
)
