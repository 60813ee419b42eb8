"""Colours as people see them, those with a colour vision deficiency included.

Read first: Machado, Oliveira and Fernandes (IEEE TVCG 15:6, 2009), whose matrices of severity 1.0 these are, and
CIE 15:2004 for CIELAB.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

RGB = Sequence[float]

#: of linear RGB; no deficiency, and the three dichromacies
VISIONS = {
    "trichromacy": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
#: linear sRGB to XYZ, and the white of D65
_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
_WHITE = np.array([0.9505, 1.0, 1.089])


def apart(one: RGB, other: RGB) -> float:
    """Return the least difference of two colours (0 to 255) to any vision: CIE 1976, where 2.3 is just noticeable."""
    return min(float(np.linalg.norm(a - b)) for a, b in zip(_labs(one), _labs(other), strict=True))


def _labs(colour: RGB) -> Iterator[NDArray[np.float64]]:
    c = np.asarray(colour, float) / 255
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    for matrix in VISIONS.values():
        t = _XYZ @ np.clip(matrix @ linear, 0, 1) / _WHITE
        x, y, z = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
        yield np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])
