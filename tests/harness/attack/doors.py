"""All doors by name."""

from collections.abc import Callable, Iterator
from functools import partial

from tests.harness.attack.accecn import AccEcnDoor
from tests.harness.attack.door import Door
from tests.harness.attack.link_arq import ArqDoor
from tests.harness.attack.lt_tcp import LtTcpDoor
from tests.harness.attack.packet_filters import KINDS, TARGETS, FilterDoor
from tests.harness.attack.quic import ATTACKERS as QUIC_ATTACKERS
from tests.harness.attack.quic import QuicDoor
from tests.harness.attack.slacp_adaptive import AdaptiveDoor


def doors() -> Iterator[tuple[str, Callable[[int], Door]]]:
    """All doors by name; a door is made of a seed."""
    for target in TARGETS:
        for kind in KINDS:
            yield f"filters {target}, {kind}", partial(FilterDoor, target, kind)
    yield "arq", ArqDoor
    yield "adaptive", AdaptiveDoor
    for blind in (True, False):
        yield f"lt_tcp, {'blind' if blind else 'forged'}", partial(LtTcpDoor, blind)
        yield f"accecn, {'blind' if blind else 'forged'}", partial(AccEcnDoor, blind)
    for attacker in QUIC_ATTACKERS:
        yield f"quic, {attacker}", partial(QuicDoor, attacker)
