"""Files of every kind that a command reads, damaged: one line at most, and nothing but that.

`python -m benchmarks.hostile_files` goes on for as long as one likes.
"""

from pathlib import Path

import pytest

from tests.harness.checked import RuleBrokenError
from tests.harness.hostile_files import FileDoor, attack, command, doors

#: of a kind; those of campaigns and runs take a tenth of a second each
MANY, FEW = 60, 4
SLOW = ("bundle", "run", "campaign", "numbers")


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> list[FileDoor]:
    return list(doors(tmp_path_factory.mktemp("valid")))


@pytest.mark.slow
def test_damaged_files_break_no_rule(kinds: list[FileDoor], tmp_path: Path) -> None:
    for door in kinds:
        for number in range(FEW if any(word in door.name for word in SLOW) else MANY):
            folder = tmp_path / "folder"
            folder.mkdir()
            attack(door, number, folder)
            folder.rmdir()


@pytest.mark.slow
def test_valid_files_are_read(kinds: list[FileDoor], tmp_path: Path) -> None:
    """Damage is found in what would be read."""
    for door in kinds:
        names = sorted(door.valid)
        for name in names[:FEW] if " of a " in door.name else names:
            folder = tmp_path / door.name / name
            folder.mkdir(parents=True)
            (folder / name).write_bytes(door.valid[name])
            door.read(folder / name)


def reader_of(what: str) -> FileDoor:
    def read(path: Path) -> None:
        if what == "fails":
            raise KeyError("name")
        if what == "writes":
            (path.parent.parent / "elsewhere").write_text("x")
        command("import-trace", "FILE", "-o", "FOLDER/made.parquet", path=path)

    return FileDoor(what, {"loss.txt": b"0110"}, read)


@pytest.mark.parametrize(("what", "words"), [("fails", "KeyError: 'name'"), ("writes", "beside its folder")])
def test_a_command_that_breaks_a_rule_is_found_out(what: str, words: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(RuleBrokenError, match=words):
        attack(reader_of(what), 1, folder)
