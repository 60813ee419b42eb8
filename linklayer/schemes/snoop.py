"""Schemes `ll` and `snoop`, and both with SMART: frames of `none` behind a packet filter at the base station."""

from dataclasses import replace

from linklayer.filters import snoop
from linklayer.filters.tagger import TAGGER
from linklayer.schemes.none import NONE

SCHEME = (
    replace(NONE, name="ll", label="LL", summary=snoop.LL.summary, filters=(snoop.LL,)),
    replace(
        NONE, name="ll-smart", label="LL with SMART", summary=snoop.LL_SMART.summary, filters=(snoop.LL_SMART, TAGGER)
    ),
    replace(NONE, name="snoop", label="Snoop", summary=snoop.SNOOP.summary, filters=(snoop.SNOOP,)),
    replace(
        NONE,
        name="snoop-smart",
        label="Snoop with SMART",
        summary=snoop.SNOOP_SMART.summary,
        filters=(snoop.SNOOP_SMART, TAGGER),
    ),
)
