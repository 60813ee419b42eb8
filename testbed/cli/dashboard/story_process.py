"""Tells stories of losses, one for each line of its input: the process behind `stories.py`, which says how.

It keeps the losses of the run that it told of last, as long as the run's files are the same. It ends without an answer
where fadelab's sources have changed since it began: another process then tells with these.
"""

import json
import signal
import sys
from pathlib import Path
from typing import Any

from testbed.exports import kept
from testbed.exports.losses import Losses
from testbed.exports.source import timeline_of
from testbed.source_files import digest_now


def main() -> None:
    """Answer until the input ends."""
    # Ctrl-C is for the dashboard, which ends this process
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sources = digest_now()
    digest, losses = "", None
    for line in sys.stdin:
        if digest_now() != sources:
            return
        order = json.loads(line)
        folder = Path(order["folder"])
        try:
            now = kept.digest_of(folder, sources)
            if losses is None or now != digest:
                digest, losses = now, Losses(timeline_of(folder))
            answer = _story(losses, **order)
        except (RuntimeError, OSError, ValueError) as error:
            answer = {"error": " ".join(str(error).split())}
        print(json.dumps(answer), flush=True)


def _story(losses: Losses, *, folder: str, time_s: float, direction: str) -> dict[str, Any]:
    number = losses.nearest(time_s, direction)
    if number is None:
        return {"error": f"{Path(folder).name}: no such frame was lost"}
    return {"story": losses.story(number).plain()}


if __name__ == "__main__":
    main()
