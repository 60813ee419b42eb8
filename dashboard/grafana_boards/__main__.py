"""Write Grafana's files to a folder, by default `dashboard/grafana`: `python -m dashboard.grafana_boards [FOLDER]`."""

import argparse
import json
from pathlib import Path

from dashboard.grafana_boards.boards import make
from dashboard.grafana_boards.frame import OLDEST_SCHEMA
from dashboard.grafana_boards.provisioning import DASHBOARDS, DATASOURCES

FOLDER = Path(__file__).parents[1] / "grafana"


def files() -> dict[str, str]:
    """Return the files by their paths below `dashboard/grafana`."""
    found = {
        "provisioning/datasources/fadelab.yaml": DATASOURCES,
        "provisioning/dashboards/fadelab.yaml": DASHBOARDS,
    }
    for name, board in make(OLDEST_SCHEMA).items():
        found[f"boards/{name}.json"] = json.dumps(board, indent=2, ensure_ascii=False) + "\n"
    return found


def write(folder: Path) -> None:
    """Write them all."""
    for name, content in files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    write(parser.parse_args().folder)
