"""A link that tunes itself: scheme `slacp-adaptive`.

| file | content |
|---|---|
| `code.py` | the sliding-window erasure code: coded payloads of any packets of a window, and the receiver's decoder |
"""
