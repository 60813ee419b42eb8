"""Telemetry: the record types of all parts of fadelab, and the sinks for them."""
