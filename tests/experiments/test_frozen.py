"""Holds results of the papers' cells to what they were; read `frozen.py` first."""

import json

import pytest

from testbed.papers.paper import PAPERS
from tests.experiments.frozen import FILE, digests

pytestmark = pytest.mark.slow

FROZEN: dict[str, dict[str, str]] = json.loads(FILE.read_text())


def test_each_paper_has_frozen_cells() -> None:
    assert set(FROZEN) == set(PAPERS)


@pytest.mark.parametrize("name", FROZEN)
def test_results_of_papers_are_what_they_were(name: str) -> None:
    assert digests(PAPERS[name]) == FROZEN[name]
