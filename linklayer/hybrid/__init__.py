"""Link FEC and hybrid FEC/ARQ: a packet crosses in fragments, of which any so many bring it across.

| file | content |
|---|---|
| `code.py` | cuts a packet into fragments, and joins them again |
| `frames.py` | fragments and acknowledgements, as objects and as octets |
| `sender.py` | the sending half: blocks of fragments, and their second and later sendings |
| `receiver.py` | the receiving half: packets whose fragments suffice, in order |
| `endpoint.py` | both halves: one end of the link |

docs/hybrid.md explains them.
"""
