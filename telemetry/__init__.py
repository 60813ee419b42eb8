"""Telemetry: the record types every part of fadelab speaks, and the sinks that keep them."""
