"""Medium `sockets`: frames cross a socket pair, behind channel models in real time."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from common.sides import SIDES, Side
from testbed.live.emulated_radio import EmulatedRadio
from testbed.live.media import Medium, RadioContext, Wiring
from testbed.scenario.run_plan import Plan

#: octets that one direction of a SEQPACKET socket holds unread
_SOCKET_BYTES = 8 << 20


@contextmanager
def _open(plan: Plan) -> Iterator[Mapping[Side, Wiring]]:
    st, bas = ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with st, bas:
        for end in ends:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BYTES)
        yield {side: Wiring({"peer_fd": end.fileno()}, (end.fileno(),)) for side, end in zip(SIDES, ends, strict=True)}


def _make_radio(context: RadioContext) -> EmulatedRadio:
    context.fates.trace = context.open_trace(context.side)
    return EmulatedRadio(
        context.make_hop(),
        context.stack.enter_context(socket.socket(fileno=context.wiring["peer_fd"])),
        max_frame_bytes=context.plan.max_frame_bytes,
        late_bound_ns=context.plan.late_bound_ns,
        on_arrival=context.fates.handle,
    )


MEDIUM = Medium(name="sockets", open=_open, make_radio=_make_radio)
