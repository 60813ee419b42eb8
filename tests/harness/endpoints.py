"""What tests look up in an endpoint of our TCP."""

from hosts.tcp.endpoint import Endpoint


def bytes_recovered(end: Endpoint) -> int:
    """Octets that FEC segments have replaced."""
    return 0 if end._receiver.decoder is None else end._receiver.decoder.recovered


def agreed(end: Endpoint) -> set[str]:
    """The options that both ends use; `fec`: both understand FEC segments (LT-TCP)."""
    sender, receiver = end._sender, end._receiver
    found = {
        "sack": sender.sack,
        "timestamps": receiver.timestamps,
        "ecn": sender.ecn,
        "fec": receiver.decoder is not None,
    }
    return {name for name, both in found.items() if both}
