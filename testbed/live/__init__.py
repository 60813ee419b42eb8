"""Real time: a run and its processes, the wiring of the tiers, capture and steering."""
