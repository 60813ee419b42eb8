"""TCP/IP packets as every room sees them: segments as objects and as octets, their options, and how to change one.

| file | content |
|---|---|
| `segment.py` | a segment in its IP packet, as an object; links count its size |
| `wire.py` | segments as octets and back |
| `options.py` | our experimental options: ELN and SMART |
| `access.py` | reading and changing a packet, whether it is octets or an object |
"""
