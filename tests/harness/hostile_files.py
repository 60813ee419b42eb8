"""Hostile files: valid ones of each kind that a command reads, damaged by chance, and what must hold of the command.

Rules that must hold
- The command ends well, or says one line of `LONGEST_LINE` characters at most. An internal error is a bug, as is a
  recursion or an allocation that Python refuses.
- It needs `LONGEST_S` of processor time at most, whatever the file says.
- Nothing appears beside the folder of the file. What lies elsewhere is not looked at.
"""

import io
import os
import shutil
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
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
from tests.harness.scenarios import raw_scenario

LONGEST_LINE = 1100
LONGEST_S = 10.0
#: what stands in place of a value, or beside one
TOKENS = (
    *(b"", b"0", b"-1", b"1", b"-0", b"2.5", b"1e400", b"-1e308", b"1e-320", b".nan", b"NaN", b".inf", b"-.inf"),
    *(b"Infinity", b"9" * 400, b"9" * 5000, b"1" + b"0" * 30, b"65536", b"2147483648", b"9223372036854775808"),
    *(b"0x" + b"f" * 6000, b"1" + b":59" * 3000, b"1" + b":59" * 200 + b".5", b"!!int ''", b"!!bool x", b"!!map [1]"),
    *(b"0x10", b"0x_", b"0o17", b"1_000", b"1:30", b"2026-11-29", b"2026-13-29", b"2026-11-29T10:00:00Z"),
    *(b"true", b"yes", b"null", b"~", b"[]", b"{}", b"[[]]", b"{a: 1}", b'""', b"''", b"''''", b'"', b"'"),
    *(b"[" * 500, b"{" * 500, b"- " * 500, b"&a [*a]", b"&a {b: *a}", b"&a ", b"*a", b"<<: *a", b"|", b">"),
    *(b"!!binary aGk=", b"!!python/name:os.system", b"!!set {a}", b"!!timestamp x", b"? [a]", b"? {a: b}"),
    *(b"%YAML 9.9", b"---", b"...", b"#", b"\t", b"\r", b"\n", b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\xef\xbb\xbf"),
    *("é\u2028²½💥".encode(), b"../../etc/passwd", b"/dev/zero", b"/", b".", b"a" * 3000, b",", b";", b":"),
    *(b"name", b"kind", b"model", b"trace", b"path", b"seed", b"tier", b"emulated", b"vusrp", b"mahimahi"),
)  # fmt: skip


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
    path.write_bytes(damaged(octets, rng, text=door.text))
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


def damaged(octets: bytes, rng: Random, *, text: bool) -> bytes:
    """Return octets with one to six damages: mostly few, so that the file is read to the damaged place."""
    for _ in range(min(1 + int(rng.expovariate(0.7)), 6)):
        octets = (_damage_words if text and rng.random() < 0.8 else _damage_octets)(octets, rng)
    return octets


def _damage_words(octets: bytes, rng: Random) -> bytes:
    # cut where a value may begin or end
    words = _cut(octets)
    at = rng.randrange(len(words) + 1)
    match rng.randrange(6):
        case 0:
            words[at : at + 1] = [rng.choice(TOKENS)]
        case 1:
            words[at:at] = [rng.choice(TOKENS)]
        case 2:
            del words[at : at + rng.randint(1, 5)]
        case 3:
            words[at:at] = words[at : at + rng.randint(1, 30)] * rng.choice([1, 2, 50])
        case 4:
            words[at : at + 1] = [rng.choice(words)] if words else []
        case _:
            other = rng.randrange(len(words) + 1)
            words[at:at] = words[other : other + rng.randint(1, 10)]
    return b"".join(words)


def _cut(octets: bytes) -> list[bytes]:
    words: list[bytes] = []
    word = bytearray()
    for octet in octets:
        inside = chr(octet).isalnum() or octet in b"_.-"
        if word and inside != (chr(word[-1]).isalnum() or word[-1] in b"_.-"):
            words.append(bytes(word))
            word.clear()
        word.append(octet)
    return [*words, bytes(word)] if word else words


def _damage_octets(octets: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(octets) + 1)
    several = rng.choice([1, 2, 4, 8, rng.randint(1, 200)])
    match rng.randrange(6):
        case 0 if at < len(octets):
            return octets[:at] + bytes([octets[at] ^ 1 << rng.randrange(8)]) + octets[at + 1 :]
        case 1:
            return octets[:at] + rng.choice([b"\0", b"\xff", b"\x7f", b"\x80"]) * several + octets[at + several :]
        case 2:
            return octets[:at] + octets[at + several :]
        case 3:
            return octets[:at] + octets[at : at + several] * 2 + octets[at + several :]
        case 4:
            return octets[:at]
        case _:
            return octets[:at] + rng.randbytes(several) + octets[at + several :]


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
    plan = {"name": "tiny", "scenario": scenario, "sweep": {"grid": {"link.scheme": ["none", "slacp"]}}}
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
    [run] = (scratch / "runs").iterdir()
    whole = {str(each.relative_to(run)): each.read_bytes() for each in run.rglob("*") if each.is_file()}
    flat = {name: octets for name, octets in whole.items() if "/" not in name}
    for words in (("runs", "show", "FOLDER/run"), ("runs", "list", "--out", "FOLDER"), ("explain", "FOLDER/run")):
        yield FileDoor(f"file of a run, {words[0]} {words[1]}", flat, partial(_read_run, whole, words))


_VERIFY = ("report", "verify", "--sample", "0")


def _run_yaml(scratch: Path, scenario: Mapping[str, object]) -> Path:
    path = scratch / "run.yaml"
    path.write_text(yaml.safe_dump(dict(scenario)))
    return path


def _unzipped(bundle: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(bundle) as archive:
        return {name.replace("/", "|"): archive.read(name) for name in archive.namelist() if not name.endswith("/")}


def _read_member(members: Mapping[str, bytes], path: Path) -> None:
    bundle = path.parent / "tiny.zip"
    with zipfile.ZipFile(bundle, "w") as archive:
        for name, octets in members.items():
            archive.writestr(name.replace("|", "/"), path.read_bytes() if name == path.name else octets)
    command(*_VERIFY, "FILE", path=bundle)


def _read_run(whole: Mapping[str, bytes], words: tuple[str, ...], path: Path) -> None:
    run = path.parent / "run"
    for name, octets in whole.items():
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_bytes(path.read_bytes() if name == path.name else octets)
    command(*words, path=path)
