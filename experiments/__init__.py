"""Papers made again, a folder each; what one is, testbed/papers/paper.py says."""
