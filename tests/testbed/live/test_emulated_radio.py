"""The radio of the emulated tier, in simulated time."""

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress

import pytest

from channel.errors import ERASED, INTACT, Fate, Verdict
from channel.hop import Arrival
from testbed.live.emulated_radio import EmulatedRadio
from testbed.live.hop_radio import damage
from tests.harness.scripted_hop import BOUND_NS, DELAY_NS, MS, frames_of, scripted_hop


@contextmanager
def radio(
    verdicts: Sequence[Verdict] = (),
    *,
    buffer: int = 4000,
    socket_bytes: int | None = None,
    on_arrival: Callable[[Arrival[bytes]], None] | None = None,
) -> Iterator[tuple[EmulatedRadio, socket.socket]]:
    """A radio and the socket at which its frames arrive."""
    hop = scripted_hop(verdicts, buffer=buffer)
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    far.setblocking(False)
    if socket_bytes is not None:
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, socket_bytes)
    with closing(near), closing(far):
        yield EmulatedRadio(hop, near, max_frame_bytes=1500, late_bound_ns=BOUND_NS, on_arrival=on_arrival), far


def arrived(far: socket.socket) -> list[bytes]:
    found = []
    with suppress(BlockingIOError):
        while True:
            found.append(far.recv(65536))
    return found


def run_down(emulated: EmulatedRadio) -> int:
    """Drive it at every deadline until there is none; the last one."""
    now = 0
    while (at := emulated.next_deadline()) is not None:
        now = at
        emulated.handle_deadline(now)
    return now


def test_intact_frames_arrive_unchanged_in_order_and_on_time() -> None:
    with radio() as (emulated, far):
        frames = frames_of([1, 60, 1500])
        assert all(emulated.send(frame, 0) for frame in frames)
        emulated.handle_deadline(DELAY_NS)
        assert arrived(far) == []
        emulated.handle_deadline(DELAY_NS + 61_000)
        assert arrived(far) == frames[:2]
        assert run_down(emulated) == DELAY_NS + 1_561_000
        assert arrived(far) == frames[2:]
        assert emulated.next_deadline() is None
        assert emulated.lateness.late_events == 0
        assert emulated.lateness.events == 3


def test_damaged_frames_have_exactly_those_bits_flipped() -> None:
    [frame] = frames_of([100])
    bits = (0, 9, 10, 799)
    with radio([Verdict(Fate.DAMAGED, bits)]) as (emulated, far):
        emulated.send(frame, 0)
        run_down(emulated)
        [got] = arrived(far)
    changed = int.from_bytes(got, "big") ^ int.from_bytes(frame, "big")
    # bit 0 is the first one on the air: the highest of the first octet
    assert changed == sum(1 << (799 - bit) for bit in bits)
    assert damage(got, bits) == frame


def test_erased_frames_do_not_arrive_but_are_reported() -> None:
    seen: list[Arrival[bytes]] = []
    frames = frames_of([50, 60, 70])
    with radio([INTACT, ERASED, INTACT], on_arrival=seen.append) as (emulated, far):
        for frame in frames:
            emulated.send(frame, 0)
        run_down(emulated)
        assert arrived(far) == [frames[0], frames[2]]
    assert [arrival.verdict.fate for arrival in seen] == [Fate.INTACT, Fate.ERASED, Fate.INTACT]
    assert [arrival.frame for arrival in seen] == frames


@pytest.mark.parametrize(("late_ns", "late"), [(0, 0), (BOUND_NS, 0), (BOUND_NS + 1, 1), (30 * MS, 1)])
def test_lateness_is_counted_from_when_the_frame_was_due(late_ns: int, late: int) -> None:
    with radio() as (emulated, far):
        emulated.send(b"x" * 1000, 0)
        due_at = DELAY_NS + MS
        emulated.handle_deadline(due_at + late_ns)
        assert arrived(far) == [b"x" * 1000]
        assert (emulated.lateness.events, emulated.lateness.late_events) == (1, late)
        assert emulated.lateness.max_ns == late_ns


def test_a_full_socket_makes_frames_wait_and_loses_none() -> None:
    frames = [bytes([n % 256]) * 1000 for n in range(60)]
    with radio(buffer=60_000, socket_bytes=8000) as (emulated, far):
        for frame in frames:
            assert emulated.send(frame, 0)
        now = DELAY_NS + 60 * MS
        emulated.handle_deadline(now)
        assert emulated.lateness.late_events > 0
        before = emulated.lateness.late_events
        # nobody reads: it tries again every millisecond, and every time counts
        for _ in range(3):
            assert emulated.next_deadline() == now + MS
            emulated.handle_deadline(now + 1)
            now += MS
            emulated.handle_deadline(now)
        assert emulated.lateness.late_events == before + 3
        got = []
        while (at := emulated.next_deadline()) is not None:
            got += arrived(far)
            emulated.handle_deadline(at)
        assert got + arrived(far) == frames


def test_has_room_for_a_frame_of_the_largest_size() -> None:
    with radio(buffer=4000) as (emulated, _):
        assert emulated.has_room()
        emulated.send(bytes(1500), 0)
        assert emulated.has_room()
        emulated.send(bytes(1001), 0)
        assert not emulated.has_room()


def test_receive_gives_frames_then_none_also_after_the_end() -> None:
    with radio() as (emulated, far):
        assert emulated.receive() is None
        far.send(b"one")
        far.send(b"two")
        assert [emulated.receive(), emulated.receive(), emulated.receive()] == [b"one", b"two", None]
        assert emulated.fileno() >= 0
        far.close()
        assert emulated.receive() is None
        emulated.send(b"into the void", 0)
        run_down(emulated)
        assert emulated.lateness.late_events == 0
