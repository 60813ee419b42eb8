"""Link ARQ, and link FEC with or without it. docs/arq.md explains them.

| file | content |
|---|---|
| `frames.py` | the frames as objects, and as octets |
| `code.py` | the erasure code: a packet in fragments; enough of them, in any choice, give it again |
| `sender.py` | the sending side: what is under way, and when it goes again |
| `receiver.py` | the receiving side: fragments, duplicates, order, acknowledgements |
| `endpoint.py` | both sides together: one end of the link |
"""
