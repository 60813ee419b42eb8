"""The link schemes: a file each (or for a family of them), which declares a `SCHEME` (`linklayer/link.py`)."""

from typing import Final

from common.registry import Registry
from linklayer.link import Scheme

#: link types of captures, free for everybody (the registry of link-layer header types)
LINKTYPE_USER0, LINKTYPE_USER1 = 147, 148

SCHEMES: Final = Registry("linklayer.schemes", "SCHEME", Scheme)
