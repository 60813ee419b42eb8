"""Packet filters stand between IP and the link and help TCP. A file declares its `FILTER`, or a tuple of them.

| file | content |
|---|---|
| `filter.py` | `Filter`, the base class that lets all packets pass; `FilterPlugin`, the declaration |
| `filtered.py` | a link with filters in front of it, which is a link again |
| `snoop.py` | LL and Snoop, with and without SMART: the base station retransmits what the link has lost |
| `snoop_cache.py` | the cache of Snoop |
| `tagger.py` | the mobile end's part of SMART |
| `dupacks.py` | DDA: dupacks wait for the link's retransmission |
| `coherence.py` | congestion coherence: DDA that looks at ECN |
| `eln.py` | the marker: marks ACKs for segments that the link has lost |
| `eln_flows.py` | the marker's knowledge of one flow |
| `window.py` | a limited advertised window that the mobile host's connections share |
| `ranges.py` | sets of numbers as ranges, with a limit |

docs/filters.md explains them, docs/how-to/packet-filter.md adds one.
"""

from typing import Final

from common.registry import Registry
from linklayer.filters.filter import FilterPlugin

FILTERS: Final = Registry("linklayer.filters", "FILTER", FilterPlugin)
