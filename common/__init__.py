"""What every room may use, and what uses no other room: registry, options, units, sequence numbers."""
