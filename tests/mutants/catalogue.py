"""The list of mutants, read and checked."""

import tomllib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("mutants.toml")


class ListError(Exception):
    """The list does not fit the sources; one line says where."""


class Mutant(BaseModel, frozen=True, extra="forbid"):
    """One fault. Paths are relative to the checkout."""

    name: str
    #: which rule it breaks
    rule: str
    file: str
    #: text that occurs exactly once in `file`, and what stands there instead
    old: str
    new: str
    #: the tests that must notice it, as pytest names them: functions, files or folders
    tests: tuple[str, ...] = Field(min_length=1)

    def mutated(self, root: Path) -> str:
        """Return the text of the file with the fault in it. Raises ListError."""
        path = root / self.file
        if not path.is_file():
            raise ListError(f"{self.name}: there is no file {self.file}")
        text = path.read_text(encoding="utf-8")
        found = text.count(self.old)
        if found != 1:
            first_line = self.old.strip().split("\n", 1)[0]
            raise ListError(f"{self.name}: {self.file} has this {found} times, not once: {first_line}")
        return text.replace(self.old, self.new)


def load(path: Path = LIST) -> list[Mutant]:
    """Return the mutants of a list. Raises ListError."""
    try:
        mutants = TypeAdapter(list[Mutant]).validate_python(tomllib.loads(path.read_text(encoding="utf-8"))["mutant"])
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise ListError(f"{path.name}: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise ListError(f"{path.name}: mutant {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    names = [mutant.name for mutant in mutants]
    for mutant in mutants:
        if mutant.old == mutant.new or names.count(mutant.name) > 1:
            raise ListError(f"{path.name}: {mutant.name} changes nothing, or is not the only one of its name")
    return mutants


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
            file, _, function = test.partition("::")
            path = root / file
            if not path.exists() or (function and f"def {function}(" not in path.read_text(encoding="utf-8")):
                raise ListError(f"{mutant.name}: there is no test {test}")
