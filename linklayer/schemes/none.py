"""Scheme `none`: the baseline of all other schemes (`linklayer/plain.py`)."""

from typing import Final

from linklayer import plain
from linklayer.link import Scheme
from linklayer.schemes import LINKTYPE_USER1

NONE: Final = Scheme(
    name="none",
    summary="packets cross bare",
    overhead_bytes=plain.TRAILER_BYTES,
    repairs="none",
    make=lambda options, context: plain.Plain(),
    damage=lambda frame, bit_errors: None,
    emit=plain.emit,
    parse=plain.parse,
    describe=plain.describe,
    link_type=LINKTYPE_USER1,
    label="no repair",
)

SCHEME = NONE
