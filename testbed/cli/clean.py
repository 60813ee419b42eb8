"""What killed runs have left behind: namespaces and processes (`hosts`), airs (`flowgraphs`)."""

from flowgraphs.air import Air
from hosts import network


def leftovers() -> list[str]:
    """Name what there is, a line each; changes nothing."""
    return [*map(str, network.leftovers()), *(_line(name) for name in Air.abandoned())]


def clean() -> list[str]:
    """Remove it; return what it was. Raises HostError."""
    # processes first: an air stays as long as one of its radios lives
    removed = [str(leftover) for leftover in network.clean()]
    for name in Air.abandoned():
        Air.remove(name)
        removed.append(_line(name))
    return removed


def _line(name: str) -> str:
    return f"air {name}: nobody uses it"
