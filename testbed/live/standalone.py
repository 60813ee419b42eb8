"""One station or one host on its own: for machines with a radio each, for containers, or to examine one end.

The processes are the same as in a run (`station_process.py`, `hosts/agent.py`); this module starts one and passes on
its reports. Time 0 of the records is the start of this process. So the records of two ends of a link agree in time in a
database (`--influx`), which has wall-clock times, and nowhere else.

Left out: a result, which needs the counts of both ends.
"""

import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from common.sides import STATIONS, Host, Side
from hosts.kernel.bpf.eln import Eln, needs_eln
from hosts.kernel.profiles import applied_here, kernel_profile, user_profile
from hosts.kernel.tap import inherited_device
from hosts.workloads import agent_config
from linklayer.station_counts import StationReport
from telemetry.records import FlowRecord, PhyRecord, StationRecord, TcpRecord
from telemetry.sinks import Sink
from testbed.errors import FadelabError
from testbed.live.children import Child, ChildError, ChildGroup, Message
from testbed.live.signals import ended_by_sigterm
from testbed.live.station_process import station_config
from testbed.paths import bpf_objects
from testbed.results.summary import link_record
from testbed.scenario.schema import Scenario

_READY_S = 30.0
_FINAL_S = 10.0
#: pause before a host tries again after its connection broke
_AGAIN_S = 1.0
_FOREVER_S = float("inf")

#: called with each message: its kind (link, phy, tcp, flow, ready, broken) and its body
Report = Callable[[str, Mapping[str, Any]], None]


def run_station(
    scenario: Scenario,
    side: Side,
    device: str,
    *,
    tap: str,
    folder: Path,
    seconds: float | None,
    up: Callable[[], None],
    sink: Sink,
    report: Report,
) -> Mapping[str, Any]:
    """Run the station that transmits on `side` for `seconds`, or to Ctrl-C or SIGTERM; return its final counts.

    `up()` is called once the radio runs and the TAP exists. Closes `sink`. Raises ChildError or HostError, in one
    line.
    """
    tun = inherited_device()
    final: dict[str, Any] = {}
    started = False

    def handle_message(child: Child, message: Message) -> None:
        nonlocal started
        for kind, body in message.items():
            if kind == "started":
                started = True
            elif kind == "final":
                final.update(body["counts"] | body["lateness"])
            elif kind == "ready":
                report(kind, {})
            elif kind in ("link", "phy"):
                sink.write(link_record(side, StationReport.parse(body)) if kind == "link" else PhyRecord(**body))
                report(kind, body)
            elif kind == "station":
                sink.write(StationRecord(station=STATIONS[side], **body))

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FadelabError(f"{folder}: cannot be made: {error.strerror}; choose another --out") from None
    with ended_by_sigterm(), ChildGroup() as group:
        child = group.add(_start_with_tun("station", "testbed.live.station_process", tun))
        start = secrets.randbits(64)
        wiring = {"device": device, "tun_fd": tun}
        child.send(station_config(scenario, side, wiring=wiring, folder=folder, tap=tap, start=start))
        if not group.receive_until(handle_message, lambda: started, timeout_s=_READY_S):
            raise ChildError(f"station: the radio did not start within {_READY_S:.0f} s")
        up()
        with _clock(child, sink):
            with suppress(KeyboardInterrupt):
                group.receive_until(handle_message, lambda: False, timeout_s=_FOREVER_S if seconds is None else seconds)
            _end(group, child, handle_message)
    return final


def run_host(
    scenario: Scenario,
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
    tcp = scenario.tcp_of(host)
    kernels = kernel_profile(tcp, scenario.receive_buffer_bytes)
    tun = None if user_profile(tcp) is None else inherited_device()
    eln = Eln(bpf_objects())
    config = agent_config(
        host,
        [work.lasting() for work in scenario.make_workloads()],
        peer=peer,
        seed=scenario.seed,
        probe_interval_ms=scenario.timing.probe_interval_ms,
        tcp=tcp,
        delayed_ack=kernels.delayed_ack,
        receive_buffer_bytes=scenario.receive_buffer_bytes,
        again_s=_AGAIN_S,
        tun_fd=tun,
    )
    kinds: set[str] = set()

    def handle_message(child: Child, message: Message) -> None:
        for kind, body in message.items():
            kinds.add(kind)
            if kind in ("tcp", "flow"):
                sink.write(TcpRecord(**body) if kind == "tcp" else FlowRecord(**body))
            if kind in ("tcp", "flow", "broken"):
                report(kind, body)

    with ended_by_sigterm(), ExitStack() as stack:
        stack.callback(eln.close)
        if needs_eln(kernels):
            eln.load(f"host-{os.getpid()}")
        # without kernel TCP, the kernel keeps its settings
        if user_profile(tcp) is None:
            stack.enter_context(applied_here(eln.of(kernels)))
        group = stack.enter_context(ChildGroup())
        child = group.add(_start_with_tun(f"host {host}", "hosts.agent", tun))
        if needs_eln(kernels):
            eln.add(child.pid)
        child.send(config)
        if not group.receive_until(handle_message, lambda: "ready" in kinds, timeout_s=_READY_S):
            raise ChildError(f"host {host}: not ready after {_READY_S:.0f} s")
        with _clock(child, sink):
            with suppress(KeyboardInterrupt):
                timeout_s = _FOREVER_S if seconds is None else seconds
                group.receive_until(handle_message, lambda: "done" in kinds, timeout_s=timeout_s, tick=tick)
            _end(group, child, handle_message)


def _start_with_tun(name: str, module: str, tun: int | None) -> Child:
    """Start a process; give it the descriptor `tun`, if any, for itself: the interface ends with the process."""
    if tun is None:
        return Child(name, module)
    try:
        return Child(name, module, pass_fds=(tun,))
    finally:
        os.close(tun)


@contextmanager
def _clock(child: Child, sink: Sink) -> Iterator[None]:
    """Start the time of a process and of the sink now; close the sink at the end."""
    child.send({"go": time.monotonic_ns()})
    sink.begin(time.time_ns())
    try:
        yield
    finally:
        sink.close()


def _end(group: ChildGroup, child: Child, handle_message: Callable[[Child, Message], None]) -> None:
    child.send({"stop": True})
    group.receive_until(handle_message, lambda: child.ended, timeout_s=_FINAL_S, may_end=True)
