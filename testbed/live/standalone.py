"""One station or one host on its own: for machines with a radio each, for containers, or to examine one end.

The processes are the same as in a run (`station_process.py`, `hosts/agent_process.py`). This module starts one and
passes on its reports. Time 0 of the records is the start of this process. So the records of two ends of a link agree in
time only in a database (`--influx`), which has wall-clock times.

Left out: a result, which needs the counts of both ends.
"""

import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from common.sides import STATIONS, Host, Side
from hosts.kernel.bpf.eln import Eln, needs_eln
from hosts.kernel.profiles import applied_here, kernel_profile, user_profile
from hosts.kernel.tap import inherited_device
from hosts.messages import AgentConfig, Done, FromProcess, Go, Ready, Started, StationConfig, Stop
from linklayer.station_counts import StationFinal, StationReport
from telemetry.records import AccessRecord, FlowRecord, PhyRecord, StationRecord, TcpRecord
from telemetry.sinks import Sink
from testbed import interrupts
from testbed.errors import FadelabError
from testbed.live.children import Child, ChildError, ChildGroup
from testbed.live.signals import ended_by_sigterm
from testbed.paths import bpf_objects
from testbed.results.store import noting_warnings, station_log
from testbed.results.summary import belief_record, link_record
from testbed.scenario.run_plan import Plan

_READY_S = 30.0
_FINAL_S = 10.0
#: pause before a host tries again after its connection broke
_AGAIN_S = 1.0
_FOREVER_S = float("inf")

#: called with each message of the process
Report = Callable[[FromProcess], None]


def run_station(
    plan: Plan,
    side: Side,
    device: str,
    *,
    tap: str,
    folder: Path,
    seconds: float | None,
    up: Callable[[], None],
    sink: Sink,
    report: Report,
) -> StationFinal:
    """Run the station that transmits on `side` for `seconds`, or to Ctrl-C or SIGTERM; return its final report.

    `up()` is called once the radio runs and the TAP exists. Closes `sink`. Raises ChildError or HostError, in one
    line.
    """
    tun = inherited_device()
    final: StationFinal | None = None
    started = False

    def handle_message(child: Child, message: FromProcess) -> None:
        nonlocal final, started
        match message:
            case Started():
                started = True
            case StationReport():
                sink.write(link_record(side, message))
                if (beliefs := belief_record(side, message)) is not None:
                    sink.write(beliefs)
            case PhyRecord() | AccessRecord() | StationRecord():
                sink.write(message)
            case StationFinal():
                final = message
        report(message)

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FadelabError(f"{folder}: cannot be made: {error.strerror}; choose another --out") from None
    with noting_warnings(folder), ended_by_sigterm(), ChildGroup() as group:
        log = station_log(folder, STATIONS[side])
        child = group.add(_start_with_tun("station", "testbed.live.station_process", tun, log))
        start = secrets.randbits(64)
        config = StationConfig(
            scenario=plan.values,
            side=side,
            folder=str(folder),
            tap=tap,
            start=start,
            wiring={"device": device},
            tun_fd=tun,
        )
        child.send(config)
        if not group.receive_until(handle_message, lambda: started, timeout_s=_READY_S):
            raise ChildError(f"station: the radio did not start within {_READY_S:.0f} s")
        up()
        with _clock(child, sink):
            with interrupts.taken():
                group.receive_until(handle_message, lambda: False, timeout_s=_FOREVER_S if seconds is None else seconds)
            _end(group, child, handle_message)
    if final is None:
        raise ChildError("station: ended without its final report")
    return final


def run_host(
    plan: Plan,
    host: Host,
    peer: str,
    *,
    seconds: float | None,
    sink: Sink,
    report: Report,
    tick: Callable[[], None],
) -> None:
    """Run one host in the present namespace until its work is done, for `seconds`, or to Ctrl-C or SIGTERM.

    Workloads that only time limits go on as long as the host, and begin again when their connection breaks. A
    transfer of a given size begins once its peer answers.
    `tick` is called about ten times a second. Closes `sink`. Raises ChildError or HostError, in one line.
    """
    tcp, receive_buffer_bytes = plan.hosts[host].tcp, plan.hosts[host].receive_buffer_bytes
    kernels = kernel_profile(tcp, receive_buffer_bytes)
    tun = None if user_profile(tcp) is None else inherited_device()
    eln = Eln(bpf_objects())
    config = AgentConfig(
        host=host,
        peer=peer,
        workloads=tuple(work.lasting() for work in plan.workloads),
        seed=plan.seed,
        probe_interval_ms=plan.probe_interval_ms,
        tcp=tcp,
        tcp_changes=plan.hosts[host].changes,
        delayed_ack=kernels.delayed_ack,
        receive_buffer_bytes=receive_buffer_bytes,
        again_s=_AGAIN_S,
        tun_fd=tun,
    )
    kinds: set[type[FromProcess]] = set()

    def handle_message(child: Child, message: FromProcess) -> None:
        kinds.add(type(message))
        if isinstance(message, TcpRecord | FlowRecord):
            sink.write(message)
        report(message)

    with ended_by_sigterm(), ExitStack() as stack:
        stack.callback(eln.close)
        if needs_eln(kernels):
            eln.load(f"host-{os.getpid()}")
        # without kernel TCP, the kernel keeps its settings
        if user_profile(tcp) is None:
            stack.enter_context(applied_here(eln.of(kernels)))
        group = stack.enter_context(ChildGroup())
        child = group.add(_start_with_tun(f"host {host}", "hosts.agent_process", tun))
        if needs_eln(kernels):
            eln.add(child.pid)
        child.send(config)
        if not group.receive_until(handle_message, lambda: Ready in kinds, timeout_s=_READY_S):
            raise ChildError(f"host {host}: not ready after {_READY_S:.0f} s")
        with _clock(child, sink):
            with interrupts.taken():
                timeout_s = _FOREVER_S if seconds is None else seconds
                group.receive_until(handle_message, lambda: Done in kinds, timeout_s=timeout_s, tick=tick)
            _end(group, child, handle_message)


def _start_with_tun(name: str, module: str, tun: int | None, log: Path | None = None) -> Child:
    """Start a process; give it the descriptor `tun`, if any, for itself: the interface ends with the process."""
    try:
        return Child(name, module, pass_fds=() if tun is None else (tun,), log=log)
    finally:
        if tun is not None:
            os.close(tun)


@contextmanager
def _clock(child: Child, sink: Sink) -> Iterator[None]:
    """Start the time of a process and of the sink now; close the sink at the end."""
    child.send(Go(epoch_ns=time.monotonic_ns()))
    sink.begin(time.time_ns())
    try:
        yield
    finally:
        sink.close()


def _end(group: ChildGroup, child: Child, handle_message: Callable[[Child, FromProcess], None]) -> None:
    child.send(Stop())
    if not group.receive_until(handle_message, lambda: child.ended, timeout_s=_FINAL_S, may_end=True):
        raise ChildError(f"{child.name}: no answer within {_FINAL_S:.0f} s of its end: stopped, stuck or too slow")
