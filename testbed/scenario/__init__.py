"""Scenarios: the schema, the file, and what its parts become."""
