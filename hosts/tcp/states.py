"""The states of a connection, and the events that move it from one to the next.

Read first: RFC 9293 section 3.3.2, figure 5. `connection.py` has the steps of the handshake.
"""

from enum import Enum
from typing import Final


class State(Enum):
    """RFC 9293 section 3.3.2."""

    CLOSED = "CLOSED"
    LISTEN = "LISTEN"
    SYN_SENT = "SYN-SENT"
    SYN_RECEIVED = "SYN-RECEIVED"
    ESTABLISHED = "ESTABLISHED"
    FIN_WAIT_1 = "FIN-WAIT-1"
    FIN_WAIT_2 = "FIN-WAIT-2"
    CLOSE_WAIT = "CLOSE-WAIT"
    CLOSING = "CLOSING"
    LAST_ACK = "LAST-ACK"
    TIME_WAIT = "TIME-WAIT"


#: where data and FIN are still expected
RECEIVING: Final = frozenset({State.ESTABLISHED, State.FIN_WAIT_1, State.FIN_WAIT_2})
#: the state after the peer's FIN
AFTER_FIN: Final = {
    State.ESTABLISHED: State.CLOSE_WAIT,
    State.FIN_WAIT_1: State.CLOSING,
    State.FIN_WAIT_2: State.TIME_WAIT,
}
#: the state after the acknowledgement of our FIN
AFTER_OUR_FIN: Final = {
    State.FIN_WAIT_1: State.FIN_WAIT_2,
    State.CLOSING: State.TIME_WAIT,
    State.LAST_ACK: State.CLOSED,
}
#: the state after `close`
AFTER_CLOSE: Final = {
    State.SYN_SENT: State.SYN_SENT,
    State.SYN_RECEIVED: State.SYN_RECEIVED,
    State.ESTABLISHED: State.FIN_WAIT_1,
    State.CLOSE_WAIT: State.LAST_ACK,
}
#: where the peer has a connection that it must be told is gone (RFC 9293 section 3.10.5)
TO_BE_RESET: Final = frozenset(
    {State.SYN_RECEIVED, State.ESTABLISHED, State.FIN_WAIT_1, State.FIN_WAIT_2, State.CLOSE_WAIT}
)
