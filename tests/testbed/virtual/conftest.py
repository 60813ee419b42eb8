"""The kernels of the tests, and a stand-in for one."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from testbed.virtual import kernel, qemu, stock_kernel

#: `./fadelab test` builds the kernel in a step of its own
needs_kernel = [
    pytest.mark.patient,
    pytest.mark.slow,
    pytest.mark.skipif(kernel.built() is None, reason="no kernel of virtual time: `fadelab virtual -- true` builds it"),
]
#: `./fadelab test` fetches it, likewise
needs_qemu = [
    pytest.mark.patient,
    pytest.mark.slow,
    pytest.mark.skipif(
        qemu.version() is None or stock_kernel.fetched() is None,
        reason="no QEMU, or no kernel for it: `fadelab run SCENARIO --tcp eln --clock virtual` fetches it",
    ),
]


def stamped(checkout: Path) -> kernel.Kernel:
    """Put a file in the kernel's place, with today's stamp."""
    made = kernel.Kernel("1", kernel._configuration())
    place = checkout / ".build" / "virtual"
    place.mkdir(parents=True)
    (place / "linux").touch()
    (place / "stamp.json").write_text(json.dumps(asdict(made)))
    return made
