"""SLACP's sessions where the medium or the peer misbehaves."""

from random import Random

import pytest

from linklayer.classify import FAST
from linklayer.slacp import ChannelOptions, ReedSolomon, Slacp, SlacpConfig
from linklayer.slacp.frames import Data, Hello
from tests.harness.slacp_pair import MS, A, B, Pair


def test_a_station_that_hears_itself_makes_no_session_with_itself() -> None:
    end, now = Slacp(SlacpConfig(), ReedSolomon(), Random(1), 0), 0
    for _ in range(20):
        frame = end.poll_frame(now)
        if frame is None:
            now = end.next_deadline()
            end.handle_deadline(now)
        else:
            end.handle_frame(frame, now)
    assert not end.established


def test_a_hello_that_no_station_can_send_is_passed_over() -> None:
    end = Slacp(SlacpConfig(), ReedSolomon(), Random(1), 0)
    end.handle_frame(Hello(0, 5, 0, False, 0), 0)
    assert not end.established


def test_an_offer_forgotten_over_a_stale_hello_is_renewed_at_once() -> None:
    """One side is established on an offer that the other no longer knows."""
    pair = Pair()
    a, b = pair.ends[A], pair.ends[B]
    stale = Hello(77, 78, 0, False, 0)
    b.handle_frame(a.poll_frame(0), 0)  # type: ignore[arg-type]
    a.handle_frame(b.poll_frame(0), 0)  # type: ignore[arg-type]
    b.handle_frame(a.poll_frame(0), 0)  # type: ignore[arg-type]
    assert b.established
    a.handle_frame(stale, 0)
    pair.run_until(
        lambda: a.established and (a._session.rx_tag, a._session.tx_tag) == (b._session.tx_tag, b._session.rx_tag),
        limit=1000 * MS,
    )
    pair.send(A, b"there")
    pair.send(B, b"and back")
    pair.run()
    assert pair.delivered == {A: [b"and back"], B: [b"there"]}


def test_packets_held_behind_a_gap_are_delivered_when_the_session_ends() -> None:
    """They were acknowledged, so nobody reports them lost."""
    cut = [False]
    config = SlacpConfig(retransmissions=1000, redundancy=0)
    pair = Pair(config, drop=lambda d, f: cut[0] or (isinstance(f, Data) and f.seq == 1)).establish()
    pair.send(A, b"0", b"1", b"2", b"3", b"4")
    pair.run_until(lambda: pair.ends[A].stats.acked == 4)
    cut[0] = True
    pair.pump(B, pair.ends[B])
    assert pair.delivered[B] == [b"0"]
    pair.run_until(lambda: not pair.ends[A].established and not pair.ends[B].established)
    pair.run_until(lambda: len(pair.delivered[B]) == 4, limit=5_000 * MS)
    assert pair.delivered[B] == [b"0", b"2", b"3", b"4"]
    pair.pump(A, pair.ends[A])
    assert pair.given_up[A] == [b"1"]


@pytest.mark.parametrize(
    "channels",
    [
        (ChannelOptions(arq=False, in_order=False), ChannelOptions(arq=False)),
        (ChannelOptions(), ChannelOptions(arq=False, in_order=False)),
    ],
)
@pytest.mark.parametrize("streaming", [False, True])
def test_a_session_lasts_while_the_peer_lives(channels: tuple[ChannelOptions, ...], streaming: bool) -> None:
    """Idle, or with a stream one way on a channel without ARQ, which asks for no acknowledgement."""
    pair = Pair(SlacpConfig(channels=channels), frame_time=40 * MS).establish()
    stream = [index.to_bytes(4, "big") for index in range(1000)] if streaming else []
    pair.send(A, *stream, channel=FAST)
    pair.run_until(lambda: pair.now > 45_000 * MS)
    assert pair.ends[A].stats.sessions == pair.ends[B].stats.sessions == 1
    assert pair.delivered[B] == stream
