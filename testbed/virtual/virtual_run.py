"""Runs a scenario of a live tier in a machine in virtual time: the same run, with the machine's clock.

Read first: `run_inside.py`, the part within the machine, and the messages it sends.
"""

import base64
import json
import pickle
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from telemetry.sinks import Sinks
from telemetry.views import PhyView
from testbed.errors import FadelabError
from testbed.results.store import RunFolder
from testbed.results.summary import Summary
from testbed.run_hooks import NO_HOOKS, Progress, RunHooks, Show
from testbed.scenario.run_plan import Plan
from testbed.virtual.kinds import kind_of
from testbed.virtual.machine import Order
from testbed.virtual.messages import Began, Failed, Message
from testbed.virtual.run_inside import ARGUMENTS

#: the run's folder within the machine: two runs of a seed see the same paths
_FOLDER = "/run/fadelab-run"
#: variables that every run has
_ENVIRONMENT = {
    # caches that are written there are gone with the machine, and an attempt that fails takes time
    "PYTHONDONTWRITEBYTECODE": "1",
    # pyarrow's allocator starts a thread, and a process of several threads cannot be copied (`live/copies.py`)
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}


def check(plan: Plan) -> None:
    """Raise FadelabError where no machine can be made for a plan."""
    kind_of(plan).check(plan)


def run_virtual(
    plan: Plan,
    folder: RunFolder,
    show: Show = lambda progress: None,
    hooks: RunHooks = NO_HOOKS,
) -> Summary:
    """Make the run of a plan in virtual time and return its result, which is also in `folder`.

    Views are made of a run that is watched when it begins. Closes the hooks' sinks. Raises FadelabError in one line.
    """
    kind = kind_of(plan)
    folder.note_machine({**kind.facts(), "seed": plan.seed})
    sinks = Sinks(hooks.sinks)
    results: list[Summary | Failed] = []
    said = bytearray()

    def handle(message: Message) -> None:
        match message:
            case Progress():
                show(message)
            case Began():
                # its records are shown now, and not at its own time
                sinks.begin(time.time_ns())
            case Summary() | Failed():
                results.append(message)
            case PhyView():
                if hooks.view_sink is not None:
                    hooks.view_sink.show(message)
            case _:
                sinks.write(message)

    order = Order(
        command=[
            *(str(kind.python), *ARGUMENTS, _FOLDER, json.dumps(plan.values)),
            *(["--records"] if hooks.sinks else []),
            # what the run does must not depend on who looks in the meantime
            *(["--views"] if hooks.view_sink is not None and hooks.view_sink.watched else []),
        ],
        seed=plan.seed,
        environment={**kind.environment(), **_ENVIRONMENT},
        cwd=Path("/"),
        folders={_FOLDER: folder.path.absolute()},
        files=list(_files(plan.values)),
    )
    try:
        status = kind.run(order, _Lines(handle).take, said.extend)
    finally:
        sinks.close()
    match results:
        case [Summary() as summary]:
            return replace(summary, run=folder.name, folder=str(folder.path))
        case [Failed(line=line, notes=notes)]:
            error = FadelabError(line)
            for note in notes:
                error.add_note(note)
            raise error
    last = said.decode(errors="replace").strip().split("\n")[-1]
    raise RuntimeError(f"the run in virtual time ended with status {status}: {last}")


def _files(values: object) -> Iterator[Path]:
    """Yield the files that the values of a scenario name."""
    match values:
        case str() if values.startswith("/") and Path(values).is_file():
            yield Path(values)
        case dict():
            yield from chain.from_iterable(map(_files, values.values()))
        case list():
            yield from chain.from_iterable(map(_files, values))


class _Lines:
    """Makes messages of the octets of a machine's output."""

    def __init__(self, handle: Callable[[Message], None]) -> None:
        self._handle = handle
        self._rest = b""

    def take(self, octets: bytes) -> None:
        *lines, self._rest = (self._rest + octets).split(b"\n")
        for line in lines:
            # from our own process
            self._handle(pickle.loads(base64.b64decode(line)))
