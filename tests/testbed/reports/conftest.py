"""Bundles to be forged."""

import shutil
import zipfile
from pathlib import Path

import pytest

from testbed.campaigns.engine import run_campaign
from testbed.reports.bundle import write_bundle
from testbed.reports.numbers import read_campaign
from tests.harness.campaigns import InProcess, campaign_file, opened


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle, unpacked."""
    folder: Path = tmp_path_factory.mktemp("campaign")
    with opened(folder / "out", campaign_file(folder, seeds={"count": 6})) as campaign:
        run_campaign(campaign, InProcess)
    made = write_bundle(read_campaign(folder / "out"), folder / "b.zip", source=False)
    with zipfile.ZipFile(made) as archive:
        archive.extractall(folder / "bundle")
    return folder / "bundle"


@pytest.fixture
def forged(bundle: Path, tmp_path: Path) -> Path:
    """The campaign's folder of a copy, to be forged."""
    return Path(shutil.copytree(bundle, tmp_path / "bundle")) / "small"
