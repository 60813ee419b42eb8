"""Schemes `split`: frames of `none`, and a base station that splits TCP connections in two."""

from dataclasses import replace

from linklayer.filters.tagger import Tagger
from linklayer.schemes.none import NONE

SPLIT = replace(
    NONE,
    name="split",
    summary="the base station splits TCP connections in two, Reno on the wireless side",
    split="reno",
)
SPLIT_SMART = replace(
    SPLIT,
    name="split-smart",
    summary="split, with SMART on the wireless side",
    split="smart",
    filters=lambda options, context: () if context.end == "base" else (Tagger(context.access),),
)

SCHEME = (SPLIT, SPLIT_SMART)
