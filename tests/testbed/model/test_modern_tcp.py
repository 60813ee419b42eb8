"""The profile `modern` against Linux's goodput on a lossy link, as `benchmarks.modern_tcp` has measured it."""

from statistics import median

import pytest

from testbed.model.run import simulate
from tests.harness.model_runs import model

#: Linux 6.18, CUBIC, tier emulated, medians of the seeds 1 to 5 (docs/tcp.md), bit/s by PER
LINUX_BPS = {0.01: 1_820_000, 0.03: 1_081_000, 0.05: 766_000}


def goodput_bps(tcp: str, per: float) -> float:
    """The median of five bulk transfers of 20 s over 2 Mbit/s and 25 ms each way, without ARQ."""
    return median(
        simulate(
            model(
                tcp=tcp,
                seed=seed,
                link={"scheme": "none"},
                channel={"rate_bps": 2_000_000, "delay_ms": 25, "per": per},
                workloads=[{"kind": "bulk", "direction": "up", "duration_s": 20}],
            )
        )
        .flows[0]
        .goodput_bps
        for seed in range(1, 6)
    )


@pytest.mark.slow
@pytest.mark.parametrize("per", LINUX_BPS)
def test_modern_is_no_more_than_15_percent_below_linux(per: float) -> None:
    assert goodput_bps("modern", per) >= 0.85 * LINUX_BPS[per]


def test_sack_without_rack_is_far_below_linux() -> None:
    # so the rule above can fail
    assert goodput_bps("sack", 0.05) < 0.6 * LINUX_BPS[0.05]
