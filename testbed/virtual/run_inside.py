"""`python -m testbed.virtual.run_inside FOLDER VALUES`: a live run, inside a machine in virtual time.

VALUES are those of the scenario (`Scenario.plain`) in JSON.

Its messages are lines of its output: pickled objects in base64.
"""

import base64
import json
import os
import pickle
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from telemetry.records import Record
from telemetry.views import PhyView
from testbed.virtual.messages import Began, Failed, Message

#: of the interpreter
ARGUMENTS = ("-P", "-m", "testbed.virtual.run_inside")
#: what the processes of the run need, which are copies of this one. A copy that imports while the run is on, or not
#: because another package has done so already, would have other times.
_OF_COPIES = (
    "hosts.agent_process",
    "testbed.live.station_process",
    "channel.trace",
    "concurrent.futures.thread",
    "pyarrow.parquet",
    "pyroute2",
)


class _Records:
    """A sink that sends what it gets."""

    def __init__(self, send: Callable[[Message], None]) -> None:
        self._send = send

    def begin(self, epoch_ns: int) -> None:
        self._send(Began())

    def write(self, record: Record) -> None:
        self._send(record)

    def close(self) -> None:
        pass


class _Views:
    """Sends the views of the run's radios; a `ViewSink`."""

    watched = True

    def __init__(self, send: Callable[[Message], None]) -> None:
        self._send = send

    def show(self, view: PhyView) -> None:
        self._send(view)


def main(path: str, values: str, *options: str) -> int:
    """Make the run; returns the exit status."""
    for module in _OF_COPIES:
        import_module(module)
    # imported here, so that whoever reads the messages need not
    from hosts.errors import HostError
    from telemetry.parquet import spare_pandas
    from testbed.errors import FadelabError
    from testbed.live.live_run import run_live
    from testbed.results.store import RunFolder
    from testbed.run_hooks import RunHooks
    from testbed.scenario.file import plan_of

    spare_pandas()

    # what anybody else prints is no message
    messages = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def send(message: Message) -> None:
        messages.write(base64.b64encode(pickle.dumps(message)) + b"\n")

    # the processes of the run, too: equals, each of which runs until it waits. Those of ordinary priority run in an
    # order that depends on how often each has read the clock before.
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    plan = plan_of(json.loads(values))
    folder = RunFolder.opened(Path(path))
    folder.note_inside()
    try:
        sinks = [_Records(send)] if "--records" in options else []
        views = _Views(send) if "--views" in options else None
        send(run_live(plan, folder, send, RunHooks(sinks, views)))
    except (FadelabError, HostError) as error:
        send(Failed(str(error), tuple(getattr(error, "__notes__", ()))))
        return 2
    return 0


if __name__ == "__main__":
    status = main(*sys.argv[1:])
    sys.stderr.flush()
    # without the second that the interpreter takes to give its memory back, which is gone with the machine
    os._exit(status)
