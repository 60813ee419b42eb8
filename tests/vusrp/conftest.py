"""What the tests of the virtual USRPs share."""

import importlib.util
import itertools
import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from flowgraphs.air import LIBRARY, Air
from tests.harness.medium import Medium, build
from tests.harness.radio_process import MODULES, RadioProcess
from tests.harness.uhd_programs import Program, completed, verdict

#: a second of samples, from a call to the time it names: calls of other processes on a busy machine come before that
LEAD = 1_000_000

_numbers = itertools.count()


def noise_like(n: int, seed: int) -> NDArray[np.complex64]:
    """Samples that are all different, with parts up to half of full scale."""
    rng = np.random.default_rng(seed)
    return (rng.uniform(-0.5, 0.5, n) + 1j * rng.uniform(-0.5, 0.5, n)).astype(np.complex64)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A realtime air keeps the wall's time; all else here has a time of its own."""
    for item in items:
        if Path(__file__).parent in item.path.parents and not item.get_closest_marker("realtime"):
            on_the_wall = "live_bench" in getattr(item, "fixturenames", ())
            item.add_marker("light" if on_the_wall else "patient")


@pytest.fixture(scope="session")
def medium() -> Medium:
    """The air's medium, as the sources are now."""
    if not (shutil.which("cmake") and shutil.which("g++")):
        pytest.skip("the medium is built with cmake and g++, which are not installed")
    return Medium(build())


class Bench:
    """A test bench: an air without noise and the radios on it."""

    def __init__(self, folder: Path, air: Air) -> None:
        self.air = air
        air.set_receiver("*", noise_dbm_hz=float("-inf"))
        self.folder = folder
        self._radios: list[RadioProcess] = []

    def radio(self, serial: str, rate: float | None = 1e6, args: str = "", **settings: float) -> RadioProcess:
        address = f"type=vusrp,air={self.air.name},serial={serial}{args}"
        radio = RadioProcess(self.folder, address, rate, **settings)
        self._radios.append(radio)
        return radio

    def family(self, profile: str, serial: str = "V1", args: str = "") -> RadioProcess:
        """Return a device of a family, as it was opened; without the family's flaws unless `args` ask for them."""
        flaws = "" if "impairments=" in args else ",impairments=none"
        address = f"type=vusrp,air={self.air.name},serial={serial},profile={profile}{flaws}{args}"
        radio = RadioProcess(self.folder, address, rate=None)
        self._radios.append(radio)
        return radio

    def close(self) -> None:
        """End all radios and the air, which leaves nothing behind."""
        for radio in self._radios:
            radio.close()
        self.air.close()
        assert self.air.name not in Air.names()


@pytest.fixture
def air_name() -> Iterator[str]:
    if not LIBRARY.exists():
        pytest.skip("the virtual USRP is not built: start ./fadelab once")
    name = f"test-{os.getpid()}-{next(_numbers)}"
    yield name
    Air.remove(name)


@pytest.fixture
def uhd_modules() -> Path:
    if importlib.util.find_spec("uhd") is None:
        pytest.skip("python3-uhd is not installed")
    return MODULES


@pytest.fixture
def bench(request: pytest.FixtureRequest, air_name: str, uhd_modules: Path, tmp_path: Path) -> Iterator[Bench]:
    """A lockstep air without noise: every sample is known. Its parameter: bursts that time waits for."""
    wait_streams = getattr(request, "param", 0)
    with closing(Bench(tmp_path, Air.create(air_name, clock="lockstep", seed=5, wait_streams=wait_streams))) as bench:
        yield bench


@pytest.fixture
def live_bench(air_name: str, uhd_modules: Path, tmp_path: Path) -> Iterator[Bench]:
    with closing(Bench(tmp_path, Air.create(air_name, seed=5))) as bench:
        yield bench


class Programs:
    def __init__(self, modules: Path, folder: Path, air: str) -> None:
        self.args = f"type=vusrp,air={air}"
        #: the folder in which UHD looks for its modules
        self.modules = modules
        self._folder = folder

    @property
    def environment(self) -> dict[str, str]:
        """That of a program which finds virtual USRPs."""
        return {**os.environ, "UHD_MODULE_PATH": os.fspath(self.modules)}

    def run(self, *command: str, code: int = 0) -> str:
        """Return what a program writes on either output; it must end with `code`."""
        try:
            done = completed(command, self._folder, self.modules)
        except FileNotFoundError:
            pytest.skip(f"{command[0]} is not installed")
        output = done.stdout + done.stderr
        assert done.returncode == code, output
        return output

    def check(self, program: Program, profile: str) -> None:
        """Let a program end as the table says for a device of this family."""
        words = program.words(f"{self.args},profile={profile}", profile)
        try:
            done = completed(words, self._folder, self.modules, program.keys)
        except FileNotFoundError:
            pytest.skip(f"{program.name} is not installed")
        assert verdict(program, profile, done) is None


@pytest.fixture
def programs(uhd_modules: Path, tmp_path: Path, air_name: str) -> Programs:
    return Programs(uhd_modules, tmp_path, air_name)
