"""The schemes with packet filters in whole runs of tier model: 1 MB to the mobile host, seeds 1 to 3."""

from functools import cache
from statistics import mean

import pytest

from testbed.results.summary import Summary
from testbed.simulation import simulate
from tests.harness.scenarios import scenario

pytestmark = pytest.mark.slow

SCHEMES = ("ll", "ll-smart", "snoop", "snoop-smart")
SEEDS = (1, 2, 3)


@cache
def runs(
    scheme: str, tcp: str = "reno", errors: int = 16_384, wired_ms: float = 1, direction: str = "down"
) -> tuple[Summary, ...]:
    return tuple(
        simulate(
            scenario(
                tier="model",
                trace=False,
                tcp=tcp,
                seed=seed,
                mtu=1440,
                receive_buffer_bytes=32_768,
                link={"scheme": scheme},
                channel={
                    "rate_bps": 1_550_000,
                    "delay_ms": 1,
                    "errors": {"model": "exponential", "mean_spacing_bytes": errors},
                },
                wired={"rate_bps": 10_000_000, "delay_ms": wired_ms},
                workloads=[{"kind": "bulk", "direction": direction, "bytes": 1_000_000}],
            )
        )
        for seed in SEEDS
    )


def goodput(found: tuple[Summary, ...]) -> float:
    return mean(summary.goodput_bps for summary in found)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("tcp", ["reno", "sack"])
def test_local_retransmission_beats_no_help(scheme: str, tcp: str) -> None:
    helped = runs(scheme, tcp)
    assert all(summary.finished and summary.intact for summary in helped)
    assert goodput(helped) > 1.5 * goodput(runs("none", tcp))


@pytest.mark.parametrize("tcp", ["reno", "sack"])
@pytest.mark.parametrize("pair", [("snoop", "ll"), ("snoop-smart", "ll-smart")])
def test_suppressing_dupacks_spares_the_sender(pair: tuple[str, str], tcp: str) -> None:
    aware, plain = (runs(scheme, tcp, 65_536, 60) for scheme in pair)
    assert goodput(aware) > goodput(plain)
    assert sum(summary.retransmissions for summary in aware) == 0
    assert sum(summary.retransmissions for summary in plain) > 0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_is_lost_for_good_is_what_no_frame_brought_across(scheme: str) -> None:
    for summary in runs(scheme):
        down, up = summary.link["down"], summary.link["up"]
        assert down.retransmissions > 0
        # some may be under way at the end
        assert 0 <= down.packets + down.retransmissions - down.frames <= 3
        assert down.residual_losses < down.corruption_losses / 2
        assert down.residual_per == pytest.approx(down.residual_losses / down.packets, abs=1 / down.packets)
        # nobody sends ACKs again
        assert up.retransmissions == 0
        assert up.residual_losses == up.corruption_losses
        assert up.suppressed_dupacks == 0
        assert (down.suppressed_dupacks + up.suppressed_dupacks > 0) == scheme.startswith("snoop")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_data_of_the_mobile_host_crosses_without_help_and_without_harm(scheme: str) -> None:
    helped, bare = runs(scheme, "sack", direction="up"), runs("none", "sack", direction="up")
    assert all(summary.finished and summary.intact for summary in helped)
    assert goodput(helped) > 0.8 * goodput(bare)
    assert sum(summary.link["up"].retransmissions for summary in helped) == 0
