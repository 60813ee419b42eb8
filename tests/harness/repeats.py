"""What must be the same in two runs of one scenario and seed in virtual time."""

import json
from pathlib import Path

#: of a manifest: wall-clock times, and the command
_WALL = ("started", "command")


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a run, without the times of the wall clock, the command and the folder's name."""
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    manifest = json.loads(found["manifest.json"])
    found["manifest.json"] = json.dumps({key: manifest[key] for key in manifest if key not in _WALL}).encode()
    return {
        name: octets.replace(str(folder).encode(), b"").replace(folder.name.encode(), b"")
        for name, octets in found.items()
    }
