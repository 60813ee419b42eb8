"""Results of tier `model`, frozen: a scenario of each kind, and the SHA-256 of what a run of it writes.

`.venv/bin/python -m tests.testbed.model.frozen` runs them all and writes `frozen.json` anew. A commit that does so
says which results changed and why.

What is hashed: all files of the run's folder but `manifest.json`, which tells when and where it was made, and
`scenario.yaml`, which is no result. Of Parquet files it is the columns, their types and their values, for another
release of the library writes other bytes. Of `summary.json` it is all but `quality` and the flows' `fallback`, which
came later and have tests of their own (`tests/testbed/results/test_quality.py`, `test_model_run.py`). The run's name is
hashed without its TCP, as it was.
"""

import hashlib
import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq

from channel.replay import Outcome
from channel.trace import TraceWriter
from linklayer.schemes import SCHEMES
from testbed.model.model_run import run_model
from testbed.results.store import RunFolder
from testbed.scenario.file import validate
from testbed.scenario.resolver import resolve

FILE = Path(__file__).with_suffix(".json")
_NO_RESULTS = {"manifest.json", "scenario.yaml"}

_LOSSY = {"per": 0.05}
#: the place of a name is the seed, so a new one goes to the end
_TCPS = (
    "reference", "enhanced", "enhanced-cbi", "enhanced-no-daass", "reno", "newreno", "sack", "sack-ecn", "smart", "eln",
    "eln-rxmt", "sack-eln", "bsd", "bsd-newreno", "bsd-sack", "bsd-smart", "bsd-eln", "bsd-eln-rxmt", "sack-cubic",
)  # fmt: skip
#: likewise; a later one has seed 0
_SCHEMES = ("none", "slacp", "ll", "ll-smart", "snoop", "snoop-smart", "split", "split-smart")
_ERRORS: dict[str, dict[str, Any]] = {
    **{name: {} for name in ("low", "high", "huge")},
    "exponential": {"mean_spacing_bytes": 20_000},
    "bursts": {"burst_frames": 3, "mean_spacing_bytes": 40_000},
    "uniform": {"good_ms": [100, 400], "bad_ms": [5, 60]},
    "gilbert-elliott": {"good_ms": 200, "bad_ms": 30, "good_per": 0.01, "bad_per": 0.6},
}
_BAD_WEATHER = {
    "errors": {"model": "gilbert-elliott", "good_ms": 150, "bad_ms": 40, "good_per": 0.03, "bad_per": 0.9},
    "excess_delay": {"probability": 0.02, "hold_ms": 700},
    "mac_buffer_bytes": 12_000,
}
#: by scheme
_WEATHER_TCPS = {
    "none": "eln-rxmt", "slacp": "sack", "arq": "modern", "hybrid": "newreno", "fec": "sack", "ll": "sack",
    "ll-smart": "smart", "snoop": "newreno", "snoop-smart": "smart", "split": "sack",
}  # fmt: skip
_TRACE = {"model": "trace", "path": "trace.parquet"}
_BOTH_WAYS = [
    {"kind": "bulk", "flow": "there", "bytes": 120_000, "direction": "down"},
    {"kind": "bulk", "flow": "back", "bytes": 60_000, "start_s": 0.4},
]
#: long enough for the rarest errors
_LONG = [
    {"kind": "bulk", "bytes": 2_500_000},
    {"kind": "bulk", "flow": "back", "direction": "down", "bytes": 500_000},
]
_MIXED = [
    {"kind": "bulk", "bytes": 150_000, "flows": 2, "direction": "down"},
    {"kind": "short", "bytes": 8_000, "count": 5, "gap_ms": 100},
    {"kind": "onoff-udp", "rate_bps": 200_000, "duration_s": 3, "direction": "down"},
]
_BARE = {"scheme": "none"}
_ASSIGNMENTS = ("cra", "rbdc", "vbdc")

#: what differs from the scenario of `digest`, by a name
SCENARIOS: dict[str, dict[str, Any]] = {
    **{
        f"scheme {scheme}": {
            "channel": _LOSSY,
            "link": {"scheme": scheme},
            "workloads": _BOTH_WAYS,
            "seed": _SCHEMES.index(scheme) if scheme in _SCHEMES else 0,
        }
        for scheme in SCHEMES
    },
    **{
        f"tcp {tcp}": {"channel": _LOSSY, "link": _BARE, "tcp": tcp, "seed": number} for number, tcp in enumerate(_TCPS)
    },
    **{
        f"errors {model}": {"channel": {"errors": {"model": model, **options}}, "workloads": _LONG}
        for model, options in _ERRORS.items()
    },
    "errors by time of a trace": {"channel": {"errors": _TRACE}},
    "errors by index of a trace": {"channel": {"errors": {**_TRACE, "by": "index"}}, "link": {"scheme": "snoop"}},
    **{f"assignment {kind}": {"channel": {"assignment": kind, "delay_ms": 250, **_LOSSY}} for kind in _ASSIGNMENTS},
    "excess delay": {"channel": {"excess_delay": {"probability": 0.02, "hold_ms": 400}}},
    "cells": {"trace": True, "channel": {"framing": "aal5", "up": {"rate_bps": 300_000}}, "workloads": _MIXED},
    "small queues": {
        "channel": {"mac_buffer_bytes": 3_000},
        "link": {**_BARE, "ip_queue_bytes": 6_000},
        "workloads": _MIXED,
    },
    "out of order": {"channel": _LOSSY, "link": {"slacp": {"in_order": False, "redundancy": 2}}, "workloads": _MIXED},
    **{
        f"eln at {eln}": {"channel": _LOSSY, "link": {**_BARE, "eln": eln}, "tcp": "eln", "workloads": _BOTH_WAYS}
        for eln in ("ends", "base")
    },
    "tcp of two kinds": {"channel": _LOSSY, "tcp": "sack", "tcp_h2": "bsd", "workloads": _BOTH_WAYS},
    **{
        f"mixed traffic, seed {seed}": {"channel": {"errors": "vhigh"}, "workloads": _MIXED, "seed": seed}
        for seed in (2, 3)
    },
    "tcp modern": {"channel": _LOSSY, "link": _BARE, "tcp": "modern", "workloads": _BOTH_WAYS},
    **{
        f"tcp {tcp} in bad weather, seed {seed}": {
            "channel": _BAD_WEATHER,
            "link": _BARE,
            "tcp": tcp,
            "workloads": _BOTH_WAYS,
            "seed": seed,
        }
        for tcp in (
            *("enhanced", "reno", "newreno", "sack", "smart", "bsd-eln", "fack", "rack", "modern", "sack-cubic-linux"),
            *("slowlink-sack-lt", "lt-mss", "lt-reactive", "lt-tcp"),
        )
        for seed in (1, 2)
    },
    **{
        f"scheme {scheme} in bad weather": {
            "channel": _BAD_WEATHER,
            "link": {"scheme": scheme, "eln": "base" if scheme == "none" else "none"},
            "tcp": tcp,
            "workloads": [*_BOTH_WAYS, {"kind": "onoff-udp", "rate_bps": 100_000, "duration_s": 2}],
        }
        for scheme, tcp in _WEATHER_TCPS.items()
    },
    **{
        f"filter {name}": {
            "channel": _LOSSY,
            "link": {**_BARE, "filters": name, "window": {"shared_bytes": 8000}},
            "tcp": "sack",
            "workloads": _MIXED,
        }
        for name in ("cc", "cc-sender", "dda", "window")
    },
    **{
        f"queue {queue['kind']}": {
            "link": {"scheme": "queued", "queue": queue, "ip_queue_bytes": 30_000},
            "tcp": "sack-ecn",
            "workloads": _MIXED,
        }
        for queue in (
            {"kind": "codel", "interval_ms": 40},
            {"kind": "red", "min_packets": 2, "max_packets": 8, "weight": 0.1, "gentle": True},
        )
    },
}


def digest(name: str) -> str:
    """Run a scenario and return the SHA-256 of its results (hex)."""
    with TemporaryDirectory(prefix="fadelab-frozen-") as place:
        _write_trace(Path(place) / "trace.parquet")
        changes = SCENARIOS[name]
        raw = {
            "name": "frozen",
            "tier": "model",
            "tcp": "sack",
            "workloads": [{"kind": "bulk", "bytes": 200_000}],
            **changes,
            "channel": {"rate_bps": 2_000_000, "delay_ms": 20, **changes.get("channel", {})},
        }
        scenario = validate(raw, name, base=Path(place))
        folder = RunFolder.create(Path(place) / "runs", scenario)
        summary = run_model(resolve(scenario), folder)
        assert (summary.finished, summary.intact) == (True, True), name
        return _digest(folder.path)


def digests() -> dict[str, str]:
    """Return those of all scenarios."""
    with ProcessPoolExecutor() as pool:
        return dict(zip(SCENARIOS, pool.map(digest, SCENARIOS), strict=True))


def _digest(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.name not in _NO_RESULTS:
            content = _columns(path) if path.suffix == ".parquet" else path.read_bytes()
            if path.name == "summary.json":
                content = _without_quality(content)
            found.update(f"{path.name} {len(content)}\n".encode() + content)
    return found.hexdigest()


def _without_quality(content: bytes) -> bytes:
    values = json.loads(content)
    del values["quality"]
    for flow in values["flows"]:
        flow.pop("fallback", None)
    values["run"] = "{scenario}-{tier}-{scheme}-s{seed}".format_map(values)
    return json.dumps(values, indent=2).encode() + b"\n"


def _columns(path: Path) -> bytes:
    table = pq.read_table(path)
    schema = [[field.name, str(field.type)] for field in table.schema]
    # shortest digits that make the same number: equal texts are equal values
    return json.dumps([schema, table.to_pydict()]).encode()


def _write_trace(path: Path) -> None:
    """A channel trace of 20 s: every fourteenth frame damaged, every seventeenth missed."""
    with TraceWriter(path, link="up", producer="frozen") as trace:
        for number in range(4_000):
            outcome = Outcome.PAYLOAD if number % 14 == 5 else Outcome.MISSED if number % 17 == 3 else Outcome.OK
            trace.write(number * 5_000_000, 1_000, outcome, 12.5)


def main() -> None:
    """Freeze what there is."""
    FILE.write_text(json.dumps(digests(), indent=1) + "\n")


if __name__ == "__main__":
    main()
