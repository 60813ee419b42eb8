"""A TCP of our own, sans-IO: one machine for virtual time, TUN interfaces and tests (README.md)."""
