"""Packet filters: what a station does with TCP's packets between IP and the link.

| file | what it is |
|---|---|
| `filter.py` | what every filter offers |
| `filtered.py` | a link with filters in front of it, which is a link again |

A filter keeps soft state only: without it, or with one that has forgotten everything, packets cross as they are.
docs/filters.md explains them.
"""
