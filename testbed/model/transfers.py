"""Single transfers between hosts in virtual time, for networks other than a scenario's."""

from ipaddress import IPv4Address

from hosts.engine.content import Contents, Incoming, Numbers
from hosts.engine.context import Context, ignore
from hosts.engine.own_tcp import OwnSender, OwnTcp
from hosts.engine.probe import ConnectionProbe, FlowCounter
from hosts.engine.stack import Stack, Tap
from hosts.engine.streams import HasReceived, HasSent, Transfer
from hosts.tcp.config import TcpConfig


def receive(
    stack: Stack, port: int, config: TcpConfig, done: HasReceived = ignore, *, content: Incoming | None = None
) -> FlowCounter:
    """Receive all data for a port of a host from now on; return its counter. `done` gets the result of each end.

    `content` compares the data of the port's one connection with what is written; by default nothing does.
    """
    counter = FlowCounter(str(IPv4Address(stack.address)), f"{port}")
    tcp = OwnTcp(_context(stack), stack, config)
    tcp.accept(port, lambda receive: receive(content or Numbers().incoming(""), counter, done))
    return counter


def send(
    stack: Stack,
    address: int,
    port: int,
    config: TcpConfig,
    *,
    limit: int | None = None,
    end_at: int | None = None,
    drain_ns: int | None = None,
    tap: Tap | None = None,
    done: HasSent = ignore,
    contents: Contents | None = None,
) -> OwnSender:
    """Send `limit` octets (None: without end) to a port of another host from now on; see `Transfer`.

    `contents` has what is written, by the name `content_name(port)`.
    """
    tcp = OwnTcp(_context(stack, contents), stack, config, tap_for=None if tap is None else lambda flow: tap)
    transfer = Transfer(
        flow=f"{port}",
        index=0,
        address=(str(IPv4Address(address)), port),
        limit=limit,
        end_at=end_at,
        drain_ns=drain_ns,
    )
    return tcp.send(transfer, paused=False, done=done)


def content_name(port: int) -> str:
    """Return the name of the content that `send` writes to a port."""
    return f"{port}/0"


def _context(stack: Stack, contents: Contents | None = None) -> Context:
    """Return a host's part of a run whose time 0 is that of the clock."""
    name = str(IPv4Address(stack.address))
    return Context(clock=stack.clock, host=name, seed=0, contents=contents or Numbers(), probe=ConnectionProbe(name))
