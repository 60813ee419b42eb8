"""Single transfers between hosts in virtual time, for networks other than a scenario's."""

from ipaddress import IPv4Address

from hosts.engine.content import Numbers
from hosts.engine.context import Context, ignore
from hosts.engine.own_tcp import OwnSender, OwnTcp
from hosts.engine.probe import ConnectionProbe, FlowCounter
from hosts.engine.stack import Stack, Tap
from hosts.engine.streams import HasReceived, HasSent, Transfer
from hosts.tcp.config import TcpConfig


def receive(stack: Stack, port: int, config: TcpConfig, done: HasReceived = ignore) -> FlowCounter:
    """Receive all data for a port of a host from now on; return its counter. `done` gets the result of each end."""
    counter = FlowCounter(str(IPv4Address(stack.address)), f"{port}")
    OwnTcp(_context(stack), stack, config).accept(port, lambda receive: receive(Numbers().incoming(""), counter, done))
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
) -> OwnSender:
    """Send `limit` octets (None: without end) to a port of another host from now on; see `Transfer`."""
    tcp = OwnTcp(_context(stack), stack, config, tap_for=None if tap is None else lambda flow: tap)
    transfer = Transfer(
        flow=f"{port}",
        index=0,
        address=(str(IPv4Address(address)), port),
        limit=limit,
        end_at=end_at,
        drain_ns=drain_ns,
    )
    return tcp.send(transfer, paused=False, done=done)


def _context(stack: Stack) -> Context:
    """Return a host's part of a run whose time 0 is that of the clock."""
    name = str(IPv4Address(stack.address))
    return Context(clock=stack.clock, host=name, seed=0, contents=Numbers(), probe=ConnectionProbe(name))
