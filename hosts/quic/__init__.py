"""QUIC by aioquic, as a transport of the hosts' engine (docs/quic.md)."""
