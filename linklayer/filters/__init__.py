"""Packet filters: what a station does with TCP's packets between IP and the link.

| file | what it is |
|---|---|
| `filter.py` | what every filter offers |
| `filtered.py` | a link with filters in front of it, which is a link again |
| `snoop.py` | LL and Snoop, with and without SMART: the base station sends again what the link has lost |
| `tagger.py` | the mobile end's part of SMART |
| `eln.py` | marks ACKs for segments that the link has lost |
| `ranges.py` | sets of numbers as ranges, with a limit |

A filter keeps soft state only: without it, or with one that has forgotten everything, packets cross as they are.
docs/filters.md explains them.
"""
