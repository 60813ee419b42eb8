"""Recordings made of given samples."""

from pathlib import Path
from typing import Any

import numpy as np

from flowgraphs.phy import Samples
from flowgraphs.recording import FULL_SCALE, data_path, finish


def write(target: Path, samples: Samples, *, datatype: str = "cf32_le", **about: Any) -> Path:
    """Write a whole recording; `about` are arguments of `finish`. Samples of ci16_le are clipped at full scale 1."""
    if datatype == "ci16_le":
        scaled = np.rint(np.ascontiguousarray(samples, np.complex128).view(np.float64) * FULL_SCALE)
        octets = np.clip(scaled, -FULL_SCALE, FULL_SCALE).astype("<i2").tobytes()
    else:
        octets = samples.astype("<c8").tobytes()
    data_path(target).write_bytes(octets)
    return finish(target, datatype=datatype, **about)
