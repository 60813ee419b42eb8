"""tshark for tests: what Wireshark makes of a capture, with fadelab's dissector and nobody's settings."""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from linklayer.schemes import LINKTYPE_USER0
from telemetry.pcapng import Direction, PcapngWriter

DISSECTOR = Path(__file__).parents[2] / "linklayer" / "wireshark" / "fadelab.lua"

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark: apt-get install tshark")

#: one frame: the values of each field that is there
Row = dict[str, list[str]]


def capture(path: Path, frames: Sequence[bytes], link_type: int = LINKTYPE_USER0) -> Path:
    """Write a capture of frames that came over a radio."""
    with PcapngWriter(path, application="a test") as writer:
        radio = writer.interface(link_type, name="radio", description="a test's")
        for number, frame in enumerate(frames):
            writer.packet(radio, number, frame, direction=Direction.INBOUND, comment=str(number))
    return path


def tshark(path: Path, *args: str, home: Path | None = None, script: Path | None = DISSECTOR) -> str:
    """What tshark prints of the capture at `path`; it must not complain about the file or the script."""
    scripts = [] if script is None else ["-X", f"lua_script:{script}"]
    nowhere = Path("/nonexistent")
    done = subprocess.run(
        ["tshark", *scripts, "-n", "-r", path, *args],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "HOME": str(home or nowhere), "WIRESHARK_CONFIG_DIR": str(nowhere)},
    )
    complaints = [line for line in done.stderr.splitlines() if not line.startswith("Running as user")]
    assert (done.returncode, complaints) == (0, [])
    assert "Lua Error" not in done.stdout
    return done.stdout


def rows(path: Path, *fields: str, where: str = "", passes: int = 1, more: Sequence[str] = ()) -> list[Row]:
    args = ["-T", "json", *(part for field in fields for part in ("-e", field)), *more]
    if where:
        args += ["-Y", where]
    if passes == 2:
        args += ["-2"]
    return [packet["_source"].get("layers", {}) for packet in json.loads(tshark(path, *args) or "[]")]


def column(path: Path, field: str, where: str = "") -> list[str]:
    return [row[field][0] for row in rows(path, field, where=where) if field in row]
