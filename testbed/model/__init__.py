"""Virtual time: the parts a simulated network is put together from, and tier `model` (docs/model.md)."""
