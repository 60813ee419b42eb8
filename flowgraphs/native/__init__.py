"""The native module `gnuradio.fadelab` as Python finds it: as ./fadelab has built it, else as it is installed.

Rule kept: nothing takes its place. Without it, or with another liquid-dsp than it knows, PhyError names the remedy.
"""

from functools import cache
from pathlib import Path
from typing import Any

import gnuradio

from flowgraphs.phy import PhyError

#: made by CMake of the sources beside this file
BUILD = Path(__file__).resolve().parents[2] / ".build" / "native"
#: versions with the interface that it calls: user header lengths came with 1.4, later ones than 1.8 were not tried
_LIQUID_VERSIONS = ("1.4.", "1.5.", "1.6.", "1.7.", "1.8.")


@cache
def native() -> Any:
    """Return the module; raises PhyError when it is missing, or liquid-dsp is of another version."""
    # in front, so that this checkout's own goes before an installed one
    gnuradio.__path__.insert(0, str(BUILD / "python" / "gnuradio"))
    try:
        from gnuradio import fadelab
    except ImportError as error:
        raise PhyError(f"the native blocks are not built ({error}): start ./fadelab once") from None
    version = fadelab.liquid_version()
    if not version.startswith(_LIQUID_VERSIONS):
        raise PhyError(f"fadelab knows liquid-dsp 1.4 to 1.8, this is {version}: install Debian's libliquid1")
    return fadelab
