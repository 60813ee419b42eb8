"""The list of mutants, read and checked."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("mutants.toml")


class ListError(Exception):
    """The list does not fit the sources; one line says where."""


@dataclass(frozen=True)
class Mutant:
    """One fault. Paths are relative to the checkout."""

    name: str
    #: which rule it breaks
    rule: str
    file: str
    #: text that occurs exactly once in `file`, and what stands there instead
    old: str
    new: str
    #: files or folders of tests that must notice it
    tests: tuple[str, ...]

    def apply(self, root: Path) -> None:
        """Put the fault into the sources below `root`. Raises ListError."""
        path = root / self.file
        path.write_text(self.mutated(root), encoding="utf-8")

    def mutated(self, root: Path) -> str:
        """Return the text of the file with the fault in it. Raises ListError."""
        path = root / self.file
        if not path.is_file():
            raise ListError(f"{self.name}: there is no file {self.file}")
        text = path.read_text(encoding="utf-8")
        found = text.count(self.old)
        if found != 1:
            raise ListError(f"{self.name}: {self.file} has this {found} times, not once: {first_line(self.old)}")
        return text.replace(self.old, self.new)


def first_line(text: str) -> str:
    """Return a text's first line that says something."""
    return text.strip().split("\n", 1)[0]


def load(path: Path = LIST) -> list[Mutant]:
    """Return the mutants of a list. Raises ListError."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("mutant", [])
    except tomllib.TOMLDecodeError as error:
        raise ListError(f"{path.name}: {error}") from None
    mutants = [_read(number, table) for number, table in enumerate(tables, start=1)]
    names = [mutant.name for mutant in mutants]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ListError(f"{path.name}: two mutants have the name {twice[0]}")
    return mutants


def _read(number: int, table: dict[str, Any]) -> Mutant:
    wanted = {field.name for field in fields(Mutant)}
    if table.keys() != wanted:
        wrong = ", ".join(sorted(table.keys() ^ wanted))
        raise ListError(f"mutant {number} ({table.get('name', 'without a name')}): missing or unknown: {wrong}")
    mutant = Mutant(**{**table, "tests": tuple(table["tests"])})
    if mutant.old == mutant.new or not mutant.tests:
        raise ListError(f"{mutant.name}: it changes nothing, or has no tests")
    return mutant


def choose(mutants: Sequence[Mutant], pattern: str) -> list[Mutant]:
    """Return the mutants whose name fits a glob. Raises ListError when none does."""
    chosen = [mutant for mutant in mutants if fnmatchcase(mutant.name, pattern)]
    if not chosen:
        raise ListError(f"no mutant has a name like {pattern!r}; names begin like {mutants[0].name!r}")
    return chosen


def check(mutants: Sequence[Mutant], root: Path = ROOT) -> None:
    """Raise ListError unless every mutant fits the sources below `root`."""
    for mutant in mutants:
        mutant.mutated(root)
        for test in mutant.tests:
            if not (root / test).exists():
                raise ListError(f"{mutant.name}: there is no test {test}")
