"""The notebooks of docs/notebooks/: they run, and give the numbers that are stored in them."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def texts(notebook: Any) -> list[str]:
    """The results of all cells as text, but for pictures."""
    outputs = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", ())]
    return [data["text/plain"] for data in outputs if "text/plain" in data and "image/png" not in data]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_gives_its_stored_results(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    # the matplotlib of the notebook draws into its cells
    monkeypatch.delenv("MPLBACKEND", raising=False)
    stored = nbformat.read(path, 4)  # type: ignore[no-untyped-call]
    assert texts(stored)
    ran = nbformat.from_dict(stored)  # type: ignore[no-untyped-call]
    for cell in ran.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    NotebookClient(ran, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert texts(ran) == texts(stored)
    shown = [output for cell in ran.cells for output in cell.get("outputs", ())]
    assert any("image/png" in output.get("data", {}) for output in shown)
