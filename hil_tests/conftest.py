"""Options of the hardware-in-the-loop tests, and the bench they run on. Read first: README.md here."""

import os
from pathlib import Path

import pytest

from flowgraphs.air import LIBRARY
from flowgraphs.bands import BANDS_HZ
from flowgraphs.frontend import FrontEndOptions, is_virtual
from hil_tests.bench import DUPLEX_HZ, Bench, RealBench, VirtualBench

_VIRTUAL = "vusrp"
_DEFAULT_HZ = 2.46e9


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("radios", "hardware-in-the-loop tests")
    group.addoption(
        "--radio",
        action="append",
        metavar="ARGS",
        help="vusrp: two virtual USRPs (the default); given twice: UHD device arguments of ST's and BAS's radio",
    )
    group.addoption("--cabled", action="store_true", help="real radios: joined by cables and attenuators, no antenna")
    group.addoption("--region", choices=list(BANDS_HZ), help="real radios by antenna: transmit in its bands only")
    group.addoption("--freq", type=float, metavar="HZ", help=f"carrier from ST to BAS (default {_DEFAULT_HZ:g})")
    group.addoption("--plot", type=Path, metavar="DIR", help="draw the waterfall to DIR/waterfall.png")


def pytest_configure(config: pytest.Config) -> None:
    _radios(config)
    if _carrier_hz(config) <= DUPLEX_HZ:
        raise pytest.UsageError(f"--freq: the other direction's carrier lies {DUPLEX_HZ / 1e6:g} MHz below: give more")


@pytest.fixture(scope="session")
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    devices = _radios(request.config)
    up_hz, runs = _carrier_hz(request.config), tmp_path_factory.mktemp("runs")
    if devices is not None:
        return RealBench(devices, up_hz=up_hz, runs=runs, options=_front_end(request.config))
    if not LIBRARY.exists():
        pytest.skip("the virtual USRP is not built: start ./fadelab once")
    if str(LIBRARY.parent / "uhd") not in os.environ.get("UHD_MODULE_PATH", "").split(":"):
        pytest.skip('UHD does not know the virtual USRP: ./fadelab test -- hil_tests, or eval "$(./fadelab env)" first')
    return VirtualBench(up_hz=up_hz, runs=runs)


@pytest.fixture(scope="session")
def plots(request: pytest.FixtureRequest) -> Path | None:
    """Where drawings go, if they are wanted."""
    folder: Path | None = request.config.getoption("--plot", None)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _radios(config: pytest.Config) -> tuple[str, str] | None:
    """Return the devices of real radios, None for virtual ones."""
    # unknown when this file was not there at pytest's start
    given = config.getoption("--radio", None) or [_VIRTUAL]
    if given == [_VIRTUAL]:
        return None
    if len(given) != 2 or given[0] == given[1] or _VIRTUAL in given:
        raise pytest.UsageError(
            f"--radio {' --radio '.join(given)}: give {_VIRTUAL} alone, or two different radios' UHD device arguments: "
            "first ST's, then BAS's"
        )
    if not all(map(is_virtual, given)) and _front_end(config) == FrontEndOptions():
        raise pytest.UsageError(
            f"--radio {' --radio '.join(given)} would radiate: add --cabled when cables and attenuators join the "
            f"radios, else --region {' or '.join(BANDS_HZ)}"
        )
    return given[0], given[1]


def _front_end(config: pytest.Config) -> FrontEndOptions:
    region: str | None = config.getoption("--region", None)
    return FrontEndOptions(cabled=bool(config.getoption("--cabled", False)), region=region)


def _carrier_hz(config: pytest.Config) -> float:
    return float(config.getoption("--freq", None) or _DEFAULT_HZ)
