"""A short part of the tests on virtual radios of every family, joined as real ones are; `--profile` runs all on one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hil_tests.bench import DEFAULT_HZ, FamilyBench, frames
from hil_tests.conftest import FAMILIES, Figures, require_virtual
from hil_tests.test_device import test_a_burst_that_runs_dry_is_counted as runs_dry
from hil_tests.test_levels import test_automatic_gain_comes_down_for_a_strong_signal as gain_comes_down
from hil_tests.test_levels import test_snr_falls_with_the_cables_loss as snr_falls

pytestmark = pytest.mark.radio


@pytest.fixture
def family(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FamilyBench]:
    if request.config.getoption("--radio", None) or request.config.getoption("--profile", None):
        pytest.skip("other radios were asked for")
    require_virtual()
    bench = FamilyBench(request.param, up_hz=DEFAULT_HZ, runs=tmp_path)
    yield bench
    bench.close()


@pytest.mark.parametrize("family", FAMILIES, indirect=True)
def test_frames_cross_and_snr_falls_with_the_loss(family: FamilyBench, figures: Figures) -> None:
    with family.pair() as pair:
        figures.check("lost without loss", pair.exchange(frames(60)).per, most=0.0)
    snr_falls(family, figures)
    runs_dry(family)


# the least and another range of gains
@pytest.mark.parametrize("family", ["n210-sbx", "b210"], indirect=True)
def test_automatic_gain_comes_down(family: FamilyBench, figures: Figures) -> None:
    gain_comes_down(family, figures)
