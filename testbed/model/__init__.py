"""Virtual time: the parts of simulated networks, and tier `model` (docs/model.md)."""
