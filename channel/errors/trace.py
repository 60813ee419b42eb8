"""Replay of a recorded channel (`channel/replay.py`)."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from channel.errors import ErrorModel, ErrorModelPlugin


@dataclass(frozen=True, kw_only=True)
class TraceOptions:
    """A recorded channel trace; a relative `path` starts at the scenario's folder."""

    path: Path
    by: Literal["index", "time"] = "time"
    loop: bool = True


def _replay(options: TraceOptions, rng: random.Random) -> ErrorModel:
    # imports pyarrow, which runs without a trace do without
    from channel.replay import TraceReplay
    from channel.trace import read_trace

    return TraceReplay(read_trace(options.path), by=options.by, loop=options.loop)


ERROR_MODEL = ErrorModelPlugin(
    name="trace",
    summary="as recorded; a relative `path` starts at the scenario's folder",
    options=TraceOptions,
    make=_replay,
    example={"path": "trace.parquet"},
)
