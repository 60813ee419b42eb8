"""Hostile files: valid ones of each kind that a command reads, damaged by chance, and what must hold of the command.

Rules that must hold
- The command ends well, or says one line of `LONGEST_LINE` characters at most. An internal error is a bug, as is a
  recursion or an allocation that Python refuses.
- It needs `LONGEST_S` of processor time at most, whatever the file says.
- Nothing appears beside the folder of the file. What lies elsewhere is not looked at.
"""

import hashlib
import io
import os
import re
import shutil
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import yaml

from channel.replay import Outcome, Trace
from channel.trace import write_trace
from testbed.cli.app import cli, status_of
from testbed.paths import root
from testbed.scenario.file import load
from tests.harness.checked import RuleBrokenError
from tests.harness.damages import damaged
from tests.harness.scenarios import raw_scenario

LONGEST_LINE = 1100
LONGEST_S = 10.0


@dataclass(frozen=True)
class FileDoor:
    """A kind of file: valid ones, by a name that tells the command their kind, and the command that reads one."""

    name: str
    valid: Mapping[str, bytes]
    read: Callable[[Path], object]
    #: whether files are text, of words and lines
    text: bool = True


def attack(door: FileDoor, number: int, folder: Path) -> None:
    """Let a door read the damaged file of this number, in an empty folder. Raises RuleBrokenError."""
    rng = Random(number)
    name, octets = rng.choice(sorted(door.valid.items()))
    path = folder / name
    path.write_bytes(damaged(name, octets, rng, text=door.text))
    before, begun_s = set(folder.parent.iterdir()), time.process_time()
    said = io.StringIO()
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(said), patch.dict(os.environ, FADELAB_DEBUG="1"):
            status = status_of(lambda: door.read(path))
    except Exception as error:
        raise RuleBrokenError(f"{type(error).__name__}: {str(error)[:200]}") from error
    lines = [line for line in said.getvalue().splitlines() if not line.startswith("warning: ")]
    if status and (len(lines) != 1 or not lines[0].startswith("fadelab: ") or len(lines[0]) > LONGEST_LINE):
        raise RuleBrokenError(f"{len(lines)} lines, of {len(lines[0]) if lines else 0} characters: {lines[:1]}")
    if (took_s := time.process_time() - begun_s) > LONGEST_S:
        raise RuleBrokenError(f"took {took_s:.1f} s of a processor")
    if new := set(folder.parent.iterdir()) - before:
        raise RuleBrokenError(f"has left {new} beside its folder")
    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


# -- doors -----------------------------------------------------------------------------------------------------


def command(*args: str, path: Path) -> None:
    """Call a command of the command line with a file, raising what it raises; FOLDER stands for that of the file."""
    words = [arg.replace("FILE", str(path)).replace("FOLDER", str(path.parent)) for arg in args]
    cli.main(args=words, prog_name="fadelab", standalone_mode=False)


def doors(scratch: Path) -> Iterator[FileDoor]:
    """All kinds of files; `scratch` is an empty folder for what valid ones are made of."""
    scenarios = root() / "scenarios"
    # the damaged files stand elsewhere
    found = {
        path.name: path.read_text().replace("traces/", f"{scenarios}/traces/") for path in scenarios.glob("*.yaml")
    }
    yield FileDoor("scenario", {name: text.encode() for name, text in found.items()}, load)
    yield FileDoor("campaign", _campaigns(scenarios), partial(_read, "campaign", "FILE", "--plan"))
    traces = {
        "loss.csv": b"time_ms,sequence,lost\n" + b"".join(b"%d,%d,%d\n" % (n, n, n % 7 == 0) for n in range(40)),
        "loss.txt": b"0110100\n" * 12,
        "loss.numbers": b"".join(b"%d\n" % n for n in range(60) if n % 9),
        "capacity.up": b"".join(b"%d\n" % (n * 3) for n in range(60)),
    }
    yield FileDoor("loss trace", traces, partial(_read, "import-trace", "FILE", "-o", "FOLDER/made.parquet"))
    for kind, name in zip(("csv", "marks", "numbers", "mahimahi"), traces, strict=True):
        read = partial(_read, "import-trace", "FILE", "--format", kind, "-o", "FOLDER/made.parquet")
        yield FileDoor(f"loss trace, {kind}", {name: traces[name]}, read)
    yield FileDoor("channel trace", {"trace.parquet": _channel_trace(scratch)}, _read_trace, text=False)
    meta, data = _recording(scratch)
    yield FileDoor("recording's metadata", {"lab.sigmf-meta": meta}, partial(_read_recording, data))
    yield from _of_runs(scratch)


def _read(*args: str | Path) -> None:
    *words, path = args
    assert isinstance(path, Path)
    command(*map(str, words), path=path)


def _campaigns(scenarios: Path) -> dict[str, bytes]:
    found = {}
    for path in (scenarios / "campaigns").glob("*.yaml"):
        raw = yaml.safe_load(path.read_text())
        if isinstance(raw.get("scenario"), str):
            raw["scenario"] = str((path.parent / raw["scenario"]).resolve())
        found[path.name] = yaml.safe_dump(raw, sort_keys=False).replace("../", f"{scenarios}/").encode()
    return found


def _channel_trace(scratch: Path) -> bytes:
    times = list(range(0, 50_000_000, 1_000_000))
    outcomes = [Outcome.MISSED if n % 5 == 0 else Outcome.OK for n in range(len(times))]
    path = scratch / "trace.parquet"
    write_trace(path, Trace(time_ns=times, nbytes=[1500] * len(times), outcome=outcomes))
    return path.read_bytes()


def _read_trace(path: Path) -> None:
    load(root() / "scenarios" / "recorded-link.yaml", (f"channel.errors.path={path}",))


def _recording(scratch: Path) -> tuple[bytes, bytes]:
    from datetime import UTC, datetime

    from tests.harness.recordings import write

    rng = np.random.default_rng(1)
    samples = (0.1 * rng.standard_normal((3000, 2))).astype(np.float32).view(np.complex64).ravel()
    about: dict[str, Any] = {
        "rate_sps": 1e6,
        "frequency_hz": 2.45e9,
        "hardware": "none",
        "phy": "ofdm",
        "phy_options": {"modulation": "qpsk"},
    }
    meta = write(scratch / "lab", samples, started=datetime(2026, 1, 2, tzinfo=UTC), gaps=2, **about)
    return meta.read_bytes(), (scratch / "lab.sigmf-data").read_bytes()


def _read_recording(data: bytes, path: Path) -> None:
    path.with_suffix(".sigmf-data").write_bytes(data)
    command("replay", "FILE", "--json", path=path)


def _of_runs(scratch: Path) -> Iterator[FileDoor]:
    scenario = {**raw_scenario(), "tier": "model", "workloads": [{"kind": "bulk", "bytes": 20_000}]}
    schemes = {"points": {"link.scheme": "slacp"}, "to": {"link.scheme": "none"}, "within": 0.5}
    claim = {"claim": "SLACP is faster", "metric": "goodput_bps", "greater": schemes["points"], "than": schemes["to"]}
    plan = {
        "name": "tiny",
        "scenario": scenario,
        "sweep": {"grid": {"link.scheme": ["none", "slacp"]}},
        "agreement": [schemes],
        "hypotheses": [claim],
        "reference": [{"source": "nobody", "metric": "goodput_bps", "value": 1e6}],
    }
    path = scratch / "tiny.yaml"
    path.write_text(yaml.safe_dump({**plan, "seeds": {"count": 2}}))
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        command("campaign", "FILE", "--out", "FOLDER/tiny", "--workers", "1", path=path)
        command("report", "bundle", "FOLDER/tiny", "--no-source", "--out", "FOLDER/tiny.zip", path=path)
        command("run", "FOLDER/run.yaml", "--out", "FOLDER/runs", path=_run_yaml(scratch, scenario))
    bundle = scratch / "tiny.zip"
    members = _unzipped(bundle)
    yield FileDoor("bundle", {"tiny.zip": bundle.read_bytes()}, partial(_read, *_VERIFY, "FILE"), text=False)
    yield FileDoor("file of a bundle", members, partial(_read_member, members))
    matching = partial(_read_member, members, matching=True)
    yield FileDoor("file of a bundle with matching checksums", members, matching)
    campaign = {str(each.relative_to(path.parent)): each.read_bytes() for each in _files(scratch / "tiny")}
    # what a scenario asks for may take days
    read = {name.replace("/", "|"): octets for name, octets in campaign.items() if not name.endswith("plan.json")}
    lines = "report FOLDER/tiny", "report agreement FOLDER/tiny", "report verify FOLDER/tiny --sample 1 --workers 1"
    for line in lines:
        yield FileDoor(
            f"file of a campaign, {line.partition(' FOLDER')[0]}", read, partial(_read_campaign, campaign, line)
        )
    fixed = scratch / "tiny" / "plan.json"
    yield FileDoor("plan of a campaign", {fixed.name: fixed.read_bytes()}, partial(_read_plan, path.read_bytes()))
    [run] = (scratch / "runs").iterdir()
    whole = {str(each.relative_to(run)): each.read_bytes() for each in _files(run)}
    flat = {name: octets for name, octets in whole.items() if "/" not in name}
    commands = (
        "runs show FOLDER/run",
        "runs list --out FOLDER",
        "runs compare FOLDER/run FOLDER/run",
        "runs export --html FOLDER/page.html FOLDER/run",
        "explain FOLDER/run",
        "export --format perfetto -o FOLDER/made.json FOLDER/run",
        "export --format qlog -o FOLDER/made.sqlog FOLDER/run",
    )
    for line in commands:
        # some simulate it again, and a scenario may ask for days
        read = flat if line.startswith("runs") else {name: flat[name] for name in flat if name != "scenario.yaml"}
        named = re.sub(r" (-o|--\w+)? ?FOLDER.*", "", line)
        yield FileDoor(f"file of a run, {named}", read, partial(_read_run, whole, line.split(" ")))


_VERIFY = ("report", "verify", "--sample", "0", "--workers", "1")


def _run_yaml(scratch: Path, scenario: Mapping[str, object]) -> Path:
    path = scratch / "run.yaml"
    path.write_text(yaml.safe_dump(dict(scenario)))
    return path


def _unzipped(bundle: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(bundle) as archive:
        return {name.replace("/", "|"): archive.read(name) for name in archive.namelist() if not name.endswith("/")}


def _read_member(members: Mapping[str, bytes], path: Path, *, matching: bool = False) -> None:
    """Check a bundle that has a damaged member; `matching`: whether what states its checksum states the new one."""
    found = {**members, path.name: path.read_bytes()}
    if matching:
        _match(found, members[path.name], found[path.name])
    bundle = path.parent / "tiny.zip"
    with zipfile.ZipFile(bundle, "w") as archive:
        for name, octets in found.items():
            archive.writestr(name.replace("|", "/"), octets)
    command(*_VERIFY, "FILE", path=bundle)


def _match(members: dict[str, bytes], before: bytes, after: bytes) -> None:
    """Replace the checksum of a member in all others, and theirs in others then."""
    old, new = (hashlib.sha256(octets).hexdigest().encode() for octets in (before, after))
    for name, octets in list(members.items()):
        if old != new and old in octets:
            members[name] = octets.replace(old, new)
            _match(members, octets, members[name])


def _files(folder: Path) -> list[Path]:
    return [each for each in sorted(folder.rglob("*")) if each.is_file()]


def _read_campaign(files: Mapping[str, bytes], line: str, path: Path) -> None:
    """Read a campaign's folder in which a file is damaged, and its checksums state so."""
    damaged_one = path.name.replace("|", "/")
    found = {**files, damaged_one: path.read_bytes()}
    _match(found, files[damaged_one], found[damaged_one])
    for name, octets in found.items():
        (path.parent / name).parent.mkdir(parents=True, exist_ok=True)
        (path.parent / name).write_bytes(octets)
    command(*line.split(" "), path=path)


def _read_plan(source: bytes, path: Path) -> None:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_name("plan.sha256").write_text(f"{digest}  plan.json\n")
    path.with_name("campaign.yaml").write_bytes(source)
    command("campaign", "FILE", "--plan", path=path)


def _read_run(whole: Mapping[str, bytes], words: Sequence[str], path: Path) -> None:
    run = path.parent / "run"
    for name, octets in whole.items():
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_bytes(path.read_bytes() if name == path.name else octets)
    command(*words, path=path)
