"""Schemes `split`: frames of `none`, and a base station that splits TCP connections in two."""

from dataclasses import replace
from typing import Final

from linklayer.filters.tagger import TAGGER
from linklayer.schemes.none import NONE

SPLIT: Final = replace(
    NONE,
    name="split",
    summary="the base station splits TCP connections in two, Reno on the wireless side",
    split="reno",
    label="split TCP",
)
SPLIT_SMART: Final = replace(
    SPLIT,
    name="split-smart",
    summary="split, with SMART on the wireless side",
    split="smart",
    filters=(TAGGER,),
    label="split TCP with SMART",
)

SCHEME = (SPLIT, SPLIT_SMART)
