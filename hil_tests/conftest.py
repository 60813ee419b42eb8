"""Options of the hardware-in-the-loop tests, and the bench they run on. Read first: README.md here."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flowgraphs.air import LIBRARY
from flowgraphs.bands import BANDS_HZ
from flowgraphs.frontend import FrontEndOptions, is_virtual
from hil_tests.bench import DEFAULT_HZ, DUPLEX_HZ, Bench, FamilyBench, RealBench, VirtualBench
from hil_tests.report import Figure, Report

#: families of virtual radios
FAMILIES = ("b200", "b210", "n210-sbx", "x310-ubx", "n310")
_VIRTUAL = "vusrp"

_REPORT = pytest.StashKey[Report]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("radios", "hardware-in-the-loop tests")
    group.addoption(
        "--radio",
        action="append",
        metavar="ARGS",
        help="vusrp: two virtual USRPs (the default); given twice: UHD device arguments of ST's and BAS's radio",
    )
    group.addoption("--profile", choices=FAMILIES, help="virtual radios of this family, joined as real ones are")
    group.addoption("--cabled", action="store_true", help="real radios: joined by cables and attenuators, no antenna")
    group.addoption("--region", choices=list(BANDS_HZ), help="real radios by antenna: transmit in its bands only")
    group.addoption("--freq", type=float, metavar="HZ", help=f"carrier from ST to BAS (default {DEFAULT_HZ:g})")
    group.addoption("--report", type=Path, metavar="FILE", help="write what was tested and measured to an HTML file")
    group.addoption("--plot", type=Path, metavar="DIR", help="draw the waterfall to DIR/waterfall.png")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_REPORT] = Report(" ".join(["pytest", *map(str, config.invocation_params.args)]))
    _radios(config)
    if _carrier_hz(config) <= DUPLEX_HZ:
        raise pytest.UsageError(f"--freq: the other direction's carrier lies {DUPLEX_HZ / 1e6:g} MHz below: give more")


@pytest.fixture(scope="session")
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    made = _bench(request, tmp_path_factory.mktemp("runs"))
    made.about = request.config.stash[_REPORT].radios
    return made


def _bench(request: pytest.FixtureRequest, runs: Path) -> Bench:
    devices, up_hz = _radios(request.config), _carrier_hz(request.config)
    if devices is not None:
        return RealBench(devices, up_hz=up_hz, runs=runs, options=_front_end(request.config))
    require_virtual()
    profile: str | None = request.config.getoption("--profile", None)
    if profile is None:
        return VirtualBench(up_hz=up_hz, runs=runs)
    bench = FamilyBench(profile, up_hz=up_hz, runs=runs)
    request.addfinalizer(bench.close)
    return bench


def require_virtual() -> None:
    """Skip the test where there are no virtual USRPs."""
    if not LIBRARY.exists():
        pytest.skip("the virtual USRP is not built: start ./fadelab once")
    if str(LIBRARY.parent / "uhd") not in os.environ.get("UHD_MODULE_PATH", "").split(":"):
        pytest.skip('UHD does not know the virtual USRP: ./fadelab test -- hil_tests, or eval "$(./fadelab env)" first')


@pytest.fixture(scope="session")
def plots(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """Where drawings go, if they are wanted."""
    folder: Path | None = request.config.getoption("--plot", None)
    if folder is None and request.config.getoption("--report", None):
        folder = tmp_path_factory.mktemp("plots")
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        request.config.stash[_REPORT].drawings.append(folder / "waterfall.png")
    return folder


class Figures:
    """Takes the figures of a test: compares each with its bounds, and reports it."""

    def __init__(self, report: Report, test: str) -> None:
        self._report = report
        self._test = test

    def check(
        self, name: str, value: float, unit: str = "", *, least: float | None = None, most: float | None = None
    ) -> None:
        """Report a figure; fail where it lies outside its bounds."""
        figure = Figure(self._test, name, float(value), unit, least, most)
        self._report.figures.append(figure)
        assert figure.holds, f"{name} is {value:.4g} {unit}, not {figure.bound}"


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Figures:
    return Figures(request.config.stash[_REPORT], _short(request.node.nodeid))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Note how each test of this folder ends."""
    outcome: Any = yield
    phase: pytest.TestReport = outcome.get_result()
    outcomes = item.config.stash[_REPORT].outcomes
    name = _short(item.nodeid)
    if phase.when == "call" or phase.outcome != "passed":
        ended = "error" if phase.failed and phase.when != "call" else phase.outcome
        reason = phase.longrepr[2] if isinstance(phase.longrepr, tuple) else _first_line(phase)
        outcomes[name] = (ended, phase.duration, reason)


def _first_line(phase: pytest.TestReport) -> str:
    """Return the first line of a failure; empty for a test that passed."""
    crash = getattr(phase.longrepr, "reprcrash", None)
    return str(crash.message).splitlines()[0] if crash else ""


def pytest_sessionfinish(session: pytest.Session) -> None:
    path: Path | None = session.config.getoption("--report", None)
    if path is not None:
        session.config.stash[_REPORT].write(path)


def _short(nodeid: str) -> str:
    return nodeid.removeprefix("hil_tests/")


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
    return float(config.getoption("--freq", None) or DEFAULT_HZ)
