"""Mutants of the cores: small faults that the tests must notice (README.md)."""
