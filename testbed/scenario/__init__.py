"""Scenarios: the schema, files, and the models and link ends made from a scenario."""
