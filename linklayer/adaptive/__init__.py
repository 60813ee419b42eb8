"""A link that tunes itself to a delay budget: scheme `slacp-adaptive`. docs/adaptive.md explains it.

| file | content |
|---|---|
| `frames.py` | the frames as objects, and as octets |
| `estimator.py` | what an end knows of the losses in its direction |
| `plan.py` | how many frames a round sends for the packets that are missing |
| `code.py` | the sliding-window erasure code: coded payloads of any packets of a window, and the receiver's decoder |
| `budget.py` | round trips, rounds, and how many of them the budget leaves |
| `rounds.py` | what the sending side knows of a packet, a group and a transmission |
| `sender.py` | the sending side: what goes next, and how often |
| `receiver.py` | the receiving side: order, and acknowledgements as often as they are needed |
| `modes.py` | on radios: which modulation and code a frame goes in |
| `mode_report.py` | what two stations tell each other for that, behind each frame |
| `endpoint.py` | both sides together: one end of the link |
"""
