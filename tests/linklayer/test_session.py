"""The session handshake: every short history, and long random ones, end in one session that both sides agree on."""

import copy
from collections.abc import Iterator
from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklayer.slacp.config import SlacpConfig
from linklayer.slacp.frames import Hello
from linklayer.slacp.session import Session

CONFIG = SlacpConfig()
A, B = 0, 1

#: a HELLO as a value: ident, offer, echo, established
Message = tuple[int, int, int, bool]


class Draws:
    """Stands in for the generator: every number once, so that nothing matches by chance."""

    def __init__(self, base: int) -> None:
        self.last = base

    def randrange(self, start: int, stop: int) -> int:
        self.last += 1
        return self.last


class World:
    """Two stations and every HELLO either of them has ever sent: any may arrive, in any order, any number of times."""

    def __init__(self) -> None:
        self.draws = [Draws(1000), Draws(2000)]
        self.ends = [self.begin(A), self.begin(B)]
        #: HELLOs to each station
        self.sent: list[frozenset[Message]] = [frozenset(), frozenset()]
        #: tags each station has accepted frames by, ever
        self.used: list[frozenset[int]] = [frozenset(), frozenset()]
        self.restarts = 0

    def begin(self, who: int, now: int = 0) -> Session:
        return Session(CONFIG, self.draws[who], 0, now)  # type: ignore[arg-type]

    def copy(self) -> "World":
        other = copy.copy(self)
        other.draws = [copy.copy(draws) for draws in self.draws]
        other.ends = [copy.copy(end) for end in self.ends]
        other.sent, other.used = [*self.sent], [*self.used]
        for end, draws in zip(other.ends, other.draws, strict=True):
            end._rng = draws  # type: ignore[assignment]
        return other

    def key(self) -> object:
        ends = tuple(
            (e.state, e._ident, e.rx_tag, e.tx_tag, e._peer, e._candidate, e._offer, e._echo, e.hello_due)
            for e in self.ends
        )
        return ends, *self.sent, *self.used, self.draws[A].last, self.draws[B].last

    # -- what can happen -------------------------------------------------------------------------------------

    def send(self, who: int) -> Message | None:
        hello = self.ends[who].poll_hello()
        if hello is None:
            return None
        message = hello.ident, hello.offer, hello.echo, hello.established
        self.sent[1 - who] |= {message}
        return message

    def deliver(self, who: int, message: Message, now: int = 0) -> None:
        ident, offer, echo, established = message
        end = self.ends[who]
        before = end.rx_tag
        if end.handle_hello(Hello(ident, offer, echo, established, 0), now):
            assert end.rx_tag != before
            assert end.rx_tag not in self.used[who], "a session began with the tag of an earlier one"
            self.used[who] |= {end.rx_tag}
        self.check()

    def restart(self, who: int) -> None:
        self.ends[who] = self.begin(who)
        self.restarts += 1

    def repeat(self, who: int) -> None:
        """The HELLO timer."""
        if not self.ends[who].established:
            self.ends[who].hello_due = True

    def successors(self, restarts: int) -> Iterator["World"]:
        for who in (A, B):
            if self.ends[who].hello_due or not self.ends[who].established:
                world = self.copy()
                world.repeat(who)
                world.send(who)
                yield world
            for message in self.sent[who]:
                world = self.copy()
                world.deliver(who, message)
                yield world
            if self.restarts < restarts:
                world = self.copy()
                world.restart(who)
                yield world

    # -- what must hold --------------------------------------------------------------------------------------

    def check(self) -> None:
        for x, y in ((self.ends[A], self.ends[B]), (self.ends[B], self.ends[A])):
            if x.established and y.established and x.tx_tag == y.rx_tag:
                assert (x._peer, y._peer) == (y._ident, x._ident), "frames of one session would enter another"
            if not y.established:
                assert y.rx_tag == y.tx_tag == 0

    @property
    def agreed(self) -> bool:
        a, b = self.ends
        return a.established and b.established and (a.tx_tag, a.rx_tag) == (b.rx_tag, b.tx_tag)

    def settle(self) -> int:
        """Let a medium without faults do its work; return how long it took, in ns."""
        world, now = self, 0
        alive_at = 0
        while True:
            moved, rounds = True, 0
            while moved:
                moved, rounds = False, rounds + 1
                assert rounds < 10, "HELLOs go to and fro without end"
                for who in (A, B):
                    message = world.send(who)
                    if message is not None:
                        moved = True
                        world.deliver(1 - who, message, now)
            if world.agreed:
                return now
            assert now < 60 * 10**9, "the stations never agree"
            # a frame of the session every two seconds, as the ACK timer sends them
            alive_at = now + CONFIG.ack_timer_max_ns
            now = min(alive_at, *(end.next_deadline() for end in world.ends))
            for end, other in (world.ends, world.ends[::-1]):
                if end.established and other.established and end.tx_tag == other.rx_tag:
                    other.heard(now)
            for end in world.ends:
                end.handle_deadline(now)
            world.check()


def beginnings() -> Iterator[World]:
    """Two stations that have just started; in session; in session but for one that has restarted; for both."""
    yield World()
    for restarted in ((), (A,), (A, B)):
        world = World()
        world.settle()
        for who in restarted:
            world.restart(who)
        yield world


def explore(first: World, depth: int = 9, restarts: int = 2, limit: int = 800) -> list[World]:
    """Every state within `depth` steps of `first`, the nearest `limit` of them."""
    seen = {first.key()}
    found, edge = [first], [first]
    for _ in range(depth):
        later = []
        for world in chain.from_iterable(world.successors(restarts) for world in edge):
            key = world.key()
            if key not in seen and len(found) < limit:
                seen.add(key)
                found.append(world)
                later.append(world)
        edge = later
    return found


def assert_stands(world: World) -> None:
    """All HELLOs ever sent arrive again, twice, and the session of `world` goes on."""
    assert world.agreed
    tags = [end.rx_tag for end in world.ends]
    for _ in range(2):
        for who in (A, B):
            for message in sorted(world.sent[who]):
                world.deliver(who, message)
                for source in (A, B):
                    answer = world.send(source)
                    if answer is not None:
                        world.deliver(1 - source, answer)
    assert world.agreed
    assert [end.rx_tag for end in world.ends] == tags


@pytest.mark.interpreted
def test_every_short_history_leads_to_one_session_that_no_old_hello_ends() -> None:
    """HELLOs lost, repeated, reordered and delayed at will; either station restarts, twice in all."""
    for first in beginnings():
        for world in explore(first):
            world.settle()
            assert_stands(world)


STEPS = st.lists(
    st.tuples(st.sampled_from(["send", "send", "deliver", "deliver", "newest", "newest", "restart"]), st.integers(0, 1))
    | st.tuples(st.just("deliver"), st.integers(0, 1)),
    max_size=60,
)


@given(STEPS, st.randoms(use_true_random=False))
def test_long_random_histories_lead_to_one_session(steps, choice) -> None:  # type: ignore[no-untyped-def]
    world = World()
    newest: list[Message | None] = [None, None]
    for step, who in steps:
        if step == "send":
            world.repeat(who)
            newest[1 - who] = world.send(who) or newest[1 - who]
        elif step == "restart":
            world.restart(who)
        elif step == "newest":
            message = newest[who]
            if message is not None:
                world.deliver(who, message)
        elif world.sent[who]:
            world.deliver(who, choice.choice(sorted(world.sent[who])))
    world.settle()
    assert_stands(world)


def test_without_faults_two_round_trips_suffice() -> None:
    world = World()
    assert world.settle() == 0
    hellos = sum(len(sent) for sent in world.sent)
    assert hellos <= 5


def test_a_dead_peer_is_given_up_after_its_time_and_not_before() -> None:
    world = World()
    world.settle()
    end = world.ends[A]
    end.heard(7)
    assert end.next_deadline() == 7 + CONFIG.dead_after_ns
    ended = [(end.handle_deadline(at + CONFIG.dead_after_ns), end.established) for at in (6, 7, 7)]
    assert ended == [(False, True), (True, False), (False, False)]


@pytest.mark.parametrize("ident", [7, 1 << 31], ids=["lower", "higher"])
@pytest.mark.parametrize("step", [-1, 1])
def test_answer_to_a_peer_that_seeks_while_the_session_stands(ident: int, step: int) -> None:
    """Only an offer beside our tag means that the peer has forgotten its own; an echo must be of the last offer."""
    end = World().ends[A]
    end.handle_hello(Hello(ident, ident + 1, 0, False, 0), 0)
    asked = end.poll_hello()
    assert asked is not None
    assert end.handle_hello(Hello(ident, ident + 1, asked.offer, True, 0), 9)
    assert (end.handshake_rtt_ns, end.poll_hello()) == (9, None)
    ours, theirs = end.rx_tag, end.tx_tag
    for offer, echo in ((theirs, ours), (theirs + step, ours - 1), (theirs + step, ours + 1), (theirs, 0)):
        assert not end.handle_hello(Hello(ident, offer, echo, False, 0), 10)
        told = end.poll_hello()
        assert told is not None
        assert (told.offer, told.echo, told.established) == (ours, theirs, True)
    assert not end.handle_hello(Hello(ident, theirs + step, ours, False, 0), 20)
    told = end.poll_hello()
    assert told is not None
    assert told.offer != ours
    assert (told.echo, told.established) == (theirs + step, False)
    for echo in (told.offer - 1, told.offer + 1, 0):
        assert not end.handle_hello(Hello(ident, theirs + step, echo, True, 0), 30)
    assert end.rx_tag == ours
    # the same number, another object
    assert end.handle_hello(Hello(ident, theirs + step, int(str(told.offer)), True, 0), 40)
    assert (end.rx_tag, end.tx_tag, end.handshake_rtt_ns) == (told.offer, theirs + step, 20)


def test_unanswered_hellos_come_at_doubling_intervals() -> None:
    end = World().ends[A]
    times, now = [], 0
    for _ in range(7):
        assert end.poll_hello() is not None
        assert end.poll_hello() is None
        times.append(now)
        now = end.next_deadline()
        assert not end.handle_deadline(now), "no session ends"
    gaps = [(later - at) // 10**6 for at, later in pairwise(times)]
    assert gaps == [200, 400, 800, 1600, 2000, 2000]
