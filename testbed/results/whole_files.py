"""Files that are whole or not there: a full disk or a killed process leaves no part of one under its name."""

import os
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_whole(path: Path, content: bytes, *, lasting: bool = False) -> None:
    """Write a file so that no reader ever finds a part of it; with `lasting` it is on the disk then."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(content)
        if lasting:
            to_disk(beside)
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    if lasting:
        to_disk(path.parent)


def write_figure(figure: "Figure", path: Path) -> None:
    """Write a figure as PNG, whole."""
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=130)
    write_whole(path, picture.getvalue())


def to_disk(*paths: Path) -> None:
    """Wait until files, and the names in folders, are on the disk."""
    opened = []
    try:
        for path in paths:
            opened.append(os.open(path, os.O_RDONLY))
            # begins to write, so that the first wait is for most of them
            os.posix_fadvise(opened[-1], 0, 0, os.POSIX_FADV_DONTNEED)
        for each in opened:
            os.fsync(each)
    finally:
        for each in opened:
            os.close(each)
