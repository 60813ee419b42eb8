"""Asks radios, each in child processes of its own: UHD's two Python bindings cannot share a process, and may abort it.

The children write one line of JSON. `open` uses UHD's own binding: it finds and opens the device, and reads UHD's
property tree. `set` uses `flowgraphs/frontend.py`, as a station does. `cable` lets two radios measure each other.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from common.sides import SIDES, Side
from testbed.cli.doctor.usrp.case import Answer
from testbed.errors import FadelabError
from testbed.paths import root

if TYPE_CHECKING:
    from flowgraphs.cable_signal import Direction

#: an X310 takes 10 s to open, a B210 that loads its FPGA likewise
_CHILD_S = 60.0
#: the cable check takes half a minute on a busy computer
_CABLE_S = 180.0


def ask(args: str, clock_source: str | None, scenario: Mapping[str, Any], side: str) -> Answer:
    """Return the answer of a radio that is to transmit on `side` of a scenario (`Scenario.plain`)."""
    opened, said = _child("open", {"args": args, "clock_source": clock_source})
    if opened.get("fault"):
        return Answer(**opened)
    settled, said_later = _child("set", {"args": args, "scenario": scenario, "side": side})
    fault = settled.pop("fault", "")
    return Answer(**opened, **{"settings_fault": fault, **settled}, said=tuple(dict.fromkeys((*said, *said_later))))


def measure(radios: Sequence[str], scenario: Mapping[str, Any]) -> "Mapping[Side, Direction | None]":
    """Return what each side's radio hears of the other's. Raises FadelabError."""
    from pydantic import TypeAdapter

    from flowgraphs.cable_signal import Direction

    found, _ = _child("cable", {"radios": list(radios), "scenario": scenario}, _CABLE_S)
    if "fault" in found:
        raise FadelabError(found["fault"])
    return TypeAdapter(dict[Side, Direction | None]).validate_python(found)


def _child(job: str, request: Mapping[str, Any], limit_s: float = _CHILD_S) -> tuple[dict[str, Any], list[str]]:
    """Return the answer of a child, with a `fault` where it died, and UHD's warnings."""
    python_path = os.pathsep.join(filter(None, (str(root()), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": python_path, "UHD_LOG_CONSOLE_LEVEL": "warning"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__, job],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
            check=False,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return {"fault": f"no answer within {limit_s:.0f} s"}, []
    try:
        answer = json.loads((done.stdout.splitlines() or [""])[-1])
    except ValueError:
        last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        return {"fault": f"the program that asked it died: {last}"}, warnings_in(done.stderr)
    return answer, warnings_in(done.stderr)


def warnings_in(log: str) -> list[str]:
    """Return UHD's warnings and errors, a line each."""
    found: list[list[str]] = []
    for line in log.splitlines():
        if line.startswith("["):
            found.append([])
        if found:
            found[-1].append(line)
    told = (" ".join(" ".join(lines).split()) for lines in found)
    return [text.partition("] ")[2] for text in told if text.startswith(("[WARNING]", "[ERROR]"))]


# -- in the children ------------------------------------------------------------------------------------------


def _open(args: str, clock_source: str | None) -> dict[str, Any]:
    try:
        import uhd
    except ImportError as error:
        return {"fault": f"UHD's Python module is missing ({error}): apt-get install python3-uhd"}
    from flowgraphs.frontend import locks, looking_for_devices

    with looking_for_devices():
        answer: dict[str, Any] = {"fits": [found.to_dict() for found in uhd.find(args)]}
        try:
            device = uhd.usrp.MultiUSRP(args)
        except RuntimeError as error:
            text = " ".join(str(error).split())
            return answer | {"fault": "no USRP answers" if "No devices found" in text else text}
    tree, info = device.get_tree(), device.get_usrp_rx_info(0)
    answer |= {"name": info["mboard_id"], "serial": info["mboard_serial"]}
    if tree.exists("/mboards/0/usb_version"):
        answer["usb_version"] = tree.access_int("/mboards/0/usb_version").get()
    if tree.exists("/mboards/0/link_max_rate"):
        answer["link_octets"] = tree.access_double("/mboards/0/link_max_rate").get()
    try:
        if clock_source is not None:
            device.set_clock_source(clock_source)
        if "ref_locked" in device.get_mboard_sensor_names():
            answer["ref_locked"] = locks(lambda: device.get_mboard_sensor("ref_locked").to_bool())
    except RuntimeError as error:
        answer["clock_fault"] = " ".join(str(error).split())
    return answer


def _set(args: str, scenario: Mapping[str, Any], side: Any) -> dict[str, Any]:
    from flowgraphs.frontend import FrontEndError, Receiver, Transmitter
    from flowgraphs.phy import PhyError
    from testbed.errors import FadelabError
    from testbed.live.media.on_air import check_phy
    from testbed.live.usrp_radio import settings_of
    from testbed.scenario.file import plan_of

    plan, answer = plan_of(scenario), {}
    try:
        check_phy(plan)
    except (FadelabError, PhyError) as error:
        answer["scenario_fault"] = str(error)
    try:
        transmitter = Transmitter(settings_of(plan, side, args))
        receiver = Receiver(settings_of(plan, side, args))
        transmitter.check()
        return {**answer, "tx": transmitter.about(), "rx": receiver.about()}
    except FrontEndError as error:
        return {**answer, "fault": str(error)}


def _cable(radios: Sequence[str], scenario: Mapping[str, Any]) -> dict[str, Any]:
    from flowgraphs.cable_check import check
    from flowgraphs.frontend import FrontEndError
    from testbed.live.usrp_radio import settings_of
    from testbed.scenario.file import plan_of

    plan = plan_of(scenario)
    first, second = (settings_of(plan, side, args) for side, args in zip(SIDES, radios, strict=True))
    try:
        return {side: None if found is None else asdict(found) for side, found in check(first, second).items()}
    except FrontEndError as error:
        return {"fault": str(error)}


_JOBS: Mapping[str, Callable[..., dict[str, Any]]] = {"open": _open, "set": _set, "cable": _cable}


def main() -> None:
    """Serve one request."""
    answer = _JOBS[sys.argv[1]](**json.load(sys.stdin))
    # at once: threads of gr-uhd's sinks outlive the interpreter
    os.write(1, b"\n" + json.dumps(answer).encode() + b"\n")
    os._exit(0)


if __name__ == "__main__":
    main()
