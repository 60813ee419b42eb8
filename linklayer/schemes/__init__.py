"""The link schemes. A file declares its `SCHEME` (`linklayer/link.py`), or a tuple of them."""

from typing import Final

from common.registry import Registry
from linklayer.link import Scheme

#: link types of captures for private use (the registry of link-layer header types)
LINKTYPE_USER0: Final = 147
LINKTYPE_USER1: Final = 148
LINKTYPE_USER5: Final = 152
LINKTYPE_USER6: Final = 153

SCHEMES: Final = Registry("linklayer.schemes", "SCHEME", Scheme)
