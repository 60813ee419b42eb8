"""One station or one host on its own: for machines with a radio each, for containers, or to look into one end.

The processes are the same as in a run (`station.py`, `hosts/agent.py`); this is their keeper, which passes on what they
say. Records have the time 0 of this process, so two ends of one link are in step in a database (`--influx`), where
times are the wall clock's, and nowhere else.

Left out: a result. It takes both ends.
"""

import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from common.sides import STATIONS, Host, Side
from hosts.kernel.bpf.eln import Eln, needs_eln
from hosts.kernel.profiles import applied_here, kernel_profile, user_profile
from hosts.kernel.tap import inherited_device
from hosts.workloads import agent_config
from telemetry.records import FlowRecord, PhyRecord, StationRecord, TcpRecord
from telemetry.sinks import Sink
from testbed.errors import FadelabError
from testbed.live.children import Child, ChildError, Family, Message
from testbed.live.signals import ended_by_sigterm
from testbed.live.station_process import station_config
from testbed.paths import bpf_objects
from testbed.results.station_counts import StationReport
from testbed.results.summary import link_record
from testbed.scenario.schema import Scenario

_READY_S = 30.0
_FINAL_S = 10.0
#: how long after its connection has broken a host tries again
_AGAIN_S = 1.0
_FOREVER_S = float("inf")

#: called with what a process says, by kind: link, phy, tcp, flow, ready, broken
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
    """Be the station that transmits on `side` until `seconds` have passed, Ctrl-C or SIGTERM; return its last word.

    `up()` is called once the radio runs and the TAP is there. Closes `sink`. Raises ChildError or HostError, in one
    line.
    """
    tun = inherited_device()
    final: dict[str, Any] = {}
    started = False

    def hear(child: Child, message: Message) -> None:
        nonlocal started
        for kind, body in message.items():
            if kind == "started":
                started = True
            elif kind == "final":
                counts = body.pop("counts")
                final.update(counts | body)
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
    with ended_by_sigterm(), Family() as family:
        child = family.add(_heir("station", "testbed.live.station_process", tun))
        start = secrets.randbits(64)
        wiring = {"device": device, "tun_fd": tun}
        child.tell(station_config(scenario, side, wiring=wiring, folder=folder, tap=tap, start=start))
        if not family.listen(hear, lambda: started, timeout_s=_READY_S):
            raise ChildError(f"station: the radio did not start within {_READY_S:.0f} s")
        up()
        with _clock(child, sink):
            with suppress(KeyboardInterrupt):
                family.listen(hear, lambda: False, timeout_s=_FOREVER_S if seconds is None else seconds)
            _end(family, child, hear)
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
    """Be one host, in the namespace we are in, until its work is done, `seconds` have passed, Ctrl-C or SIGTERM.

    Workloads limited by time alone go on as long as the host does, and begin again when their connection breaks; a
    transfer limited by size begins when its peer is there.
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
    said: set[str] = set()

    def hear(child: Child, message: Message) -> None:
        for kind, body in message.items():
            said.add(kind)
            if kind in ("tcp", "flow"):
                sink.write(TcpRecord(**body) if kind == "tcp" else FlowRecord(**body))
            if kind in ("tcp", "flow", "broken"):
                report(kind, body)

    with ended_by_sigterm(), ExitStack() as stack:
        stack.callback(eln.close)
        if needs_eln(kernels):
            eln.load(f"host-{os.getpid()}")
        # a kernel whose TCP lies idle is left as it is
        if user_profile(tcp) is None:
            stack.enter_context(applied_here(eln.of(kernels)))
        family = stack.enter_context(Family())
        child = family.add(_heir(f"host {host}", "hosts.agent", tun))
        if needs_eln(kernels):
            eln.add(child.pid)
        child.tell(config)
        if not family.listen(hear, lambda: "ready" in said, timeout_s=_READY_S):
            raise ChildError(f"host {host}: not ready after {_READY_S:.0f} s")
        with _clock(child, sink):
            with suppress(KeyboardInterrupt):
                timeout_s = _FOREVER_S if seconds is None else seconds
                family.listen(hear, lambda: "done" in said, timeout_s=timeout_s, tick=tick)
            _end(family, child, hear)


def folder_name(role: str) -> str:
    """The name of the folder of a station that starts now."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-station-{role}"


def _heir(name: str, module: str, tun: int | None) -> Child:
    """Start a process and leave the descriptor `tun`, if there is one, to it alone: the interface ends with it."""
    if tun is None:
        return Child(name, module)
    try:
        return Child(name, module, pass_fds=(tun,))
    finally:
        os.close(tun)


@contextmanager
def _clock(child: Child, sink: Sink) -> Iterator[None]:
    """Let a process's time, and the sink's, begin now; close the sink at the end."""
    child.tell({"go": time.monotonic_ns()})
    sink.begin(time.time_ns())
    try:
        yield
    finally:
        sink.close()


def _end(family: Family, child: Child, hear: Callable[[Child, Message], None]) -> None:
    child.tell({"stop": True})
    family.listen(hear, lambda: child.ended, timeout_s=_FINAL_S, may_end=True)
