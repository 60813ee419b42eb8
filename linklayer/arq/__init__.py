"""Link ARQ: a frame that is not acknowledged in time is sent again, first in line. docs/arq.md explains it.

| file | content |
|---|---|
| `frames.py` | the two frames as objects, and as octets |
| `sender.py` | the sending side: what is under way, and when it goes again |
| `receiver.py` | the receiving side: duplicates, order, acknowledgements |
| `endpoint.py` | both sides together: one end of the link |
"""
