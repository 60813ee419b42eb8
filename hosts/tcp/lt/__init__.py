"""LT-TCP's parts: protection of data by redundancy that TCP itself sends.

Read first: docs/lt-tcp.md; LT-TCP sections III and IV.

| file | content |
|---|---|
| `sizing.py` | the choices: f(E), g(E), their bins, and the segments of a window |
| `estimator.py` | the estimate of the erasure rate |
| `ledger.py` | which segments have left the network, and how many of them have arrived |
| `blocks.py` | a block of data, and its symbols |
| `protection.py` | the sending half: when a block ends, and which FEC segments are sent |
| `decoder.py` | the receiving half: blocks that lack symbols, and their reconstruction |
"""
