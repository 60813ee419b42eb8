"""What other programs need to see fadelab: UHD's the virtual USRPs, GNU Radio Companion our blocks."""

import shlex
import site
from pathlib import Path

from testbed.paths import root


def variables() -> dict[str, tuple[Path, ...]]:
    """Search paths by the variable's name; ours go before what the variable holds already."""
    return {
        "UHD_MODULE_PATH": (root() / ".build" / "vusrp" / "uhd",),
        "GRC_BLOCKS_PATH": (root() / "flowgraphs" / "grc",),
        # our blocks' own, and what they import that Debian's Python has not got
        "PYTHONPATH": (root(), *(Path(path) for path in site.getsitepackages() if Path(path).is_relative_to(root()))),
    }


def exports() -> str:
    """The shell's lines that set them."""
    lines = []
    for name, paths in variables().items():
        ours = shlex.quote(":".join(map(str, paths)))
        lines.append(f"export {name}={ours}${{{name}:+:${name}}}")
    return "\n".join(lines)
