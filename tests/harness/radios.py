"""What the tests with virtual USRPs share: the marks of those that need them or PHY wifi, airs, and what is sent.

Rule kept: an air is named by the process that makes it, and gone when its test has ended.
"""

import gc
import importlib.util
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from flowgraphs.air import LIBRARY, Air
from flowgraphs.frontend import RadioSettings

MODULES = LIBRARY.parent / "uhd"
RATE_SPS = 1e6
CARRIER_HZ = 2.45e9

_folders = filter(None, os.environ.get("UHD_MODULE_PATH", "").split(":"))
# by what they are: a checkout may be entered through a link
_known = MODULES.resolve() in {Path(folder).resolve() for folder in _folders}
needs_vusrp = pytest.mark.skipif(
    not (LIBRARY.exists() and _known),
    reason='the virtual USRP is not built or UHD does not know it: ./fadelab test, or eval "$(./fadelab env)" first',
)

needs_wifi = pytest.mark.skipif(
    importlib.util.find_spec("ieee802_11") is None,
    reason="gr-ieee802-11 is not installed, and is in no package archive: docs/install.md",
)

_numbers = itertools.count()


def air_name() -> str:
    return f"unit-{os.getpid()}-{next(_numbers)}"


@contextmanager
def quiet_air(**options: Any) -> Iterator[Air]:
    with Air.create(air_name(), **{"seed": 1, **options}) as air:
        air.set_receiver("*", noise_dbm_hz=float("-inf"))
        yield air
        # a front end that was refused lives on in its exception's frames
        gc.collect()
    assert air.name not in Air.names()


def on(air: Air, serial: str, **changes: Any) -> RadioSettings:
    settings = {"rate_sps": RATE_SPS, "tx_hz": CARRIER_HZ, "rx_hz": CARRIER_HZ, **changes}
    return RadioSettings(f"type=vusrp,air={air.name},serial={serial}", **settings)
