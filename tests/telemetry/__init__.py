"""Tests of the records and their sinks."""
