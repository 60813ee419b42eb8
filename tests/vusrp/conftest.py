"""What the tests of the virtual USRP share."""

import shutil

import pytest

from tests.vusrp.medium import Medium, build


@pytest.fixture(scope="session")
def medium(tmp_path_factory: pytest.TempPathFactory) -> Medium:
    """The air's medium, built afresh."""
    if not (shutil.which("cmake") and shutil.which("g++")):
        pytest.skip("the medium is built with cmake and g++, which are not installed")
    return Medium(build(tmp_path_factory.mktemp("medium")))
