"""A link that tunes itself to a delay budget: scheme `slacp-adaptive`. docs/adaptive.md explains it.

| file | content |
|---|---|
| `plan.py` | how many frames a round sends for the packets that are missing |
| `code.py` | the sliding-window erasure code: coded payloads of any packets of a window, and the receiver's decoder |
"""
