"""TCP/IP packets for all folders: segments as objects and as octets, their options, and changes of packets.

| file | content |
|---|---|
| `segment.py` | a segment in its IP packet, as an object; links count its size |
| `wire.py` | segments as octets and back |
| `options.py` | our experimental options: ELN and SMART |
| `access.py` | reading and changing a packet, as octets or as an object |
"""

import common  # noqa: F401 (finds the compiled cores)
