"""Papers recomputed, a folder each; testbed/papers/paper.py defines a paper."""
