"""Where two files differ, in one line: a text by its line, a drawing by its number, a record by its row and column."""

import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path


def check_file(folder: Path, name: str, made: bytes) -> Iterator[str]:
    """Yield the difference between a file of a bundle and the same file made again, by its name."""
    try:
        kept = (folder / name).read_bytes()
    except OSError:
        yield f"{name}: is missing"
        return
    if kept != made:
        yield f"{name}: {first_difference(name, kept, made)}"


def first_difference(name: str, kept: bytes, made: bytes) -> str:
    """Return where a file of a bundle first differs from the same file made again."""
    if name.endswith(".parquet"):
        return _in_records(kept, made)
    if name.endswith((".svg", ".html")) and (drawn := _in_drawing(kept, made)):
        return drawn
    lines = zip_longest(kept.decode(errors="replace").splitlines(), made.decode(errors="replace").splitlines())
    for number, (ours, theirs) in enumerate(lines, 1):
        if ours != theirs:
            return f"line {number} is {_shown(ours)}, made again {_shown(theirs)}"
    return f"differs at byte {_first_byte(kept, made)}"


#: in SVG: an attribute with numbers, and a number in it
_DRAWN = re.compile(r'\s(?:d|x|y|width|height|transform|points)="([^"]*)"')
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def _in_drawing(kept: bytes, made: bytes) -> str:
    """Return the first number in which the drawings of two files differ; empty: they draw the same."""
    ours, theirs = (
        [float(number) for drawn in _DRAWN.findall(each.decode(errors="replace")) for number in _NUMBER.findall(drawn)]
        for each in (kept, made)
    )
    if len(ours) != len(theirs):
        return f"draws {len(ours)} numbers, made again {len(theirs)}"
    pairs = enumerate(zip(ours, theirs, strict=True), 1)
    return next((f"number {at} that it draws is {a:g}, made again {b:g}" for at, (a, b) in pairs if a != b), "")


def _in_records(kept: bytes, made: bytes) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    byte = _first_byte(kept, made)
    theirs = pq.read_table(pa.BufferReader(made))
    try:
        file = pq.ParquetFile(pa.BufferReader(kept), page_checksum_verification=False)
        if file.schema_arrow.names != theirs.schema.names:
            return f"has columns {', '.join(file.schema_arrow.names)}, made again {', '.join(theirs.schema.names)}"
        if not file.schema_arrow.equals(theirs.schema):
            return f"differs at byte {byte}, and its columns are of other types"
        if file.metadata.num_rows > 2 * theirs.num_rows + 1000:
            return f"has {file.metadata.num_rows:,} rows, made again {theirs.num_rows:,}"
        columns = file.read().to_pydict()
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        return f"differs at byte {byte}, and its records cannot be read: {(str(error).splitlines() or [''])[0]}"
    again = theirs.to_pydict()
    places = [
        (row, column, mine, yours)
        for column in columns
        for row, (mine, yours) in enumerate(zip_longest(columns[column], again[column]))
        if mine != yours
    ]
    if not places:
        return f"differs at byte {byte}, in no record"
    row, column, mine, yours = min(places, key=lambda place: place[0])
    return f"row {row}, {column} is {mine}, made again {yours}"


def _first_byte(kept: bytes, made: bytes) -> int:
    pairs = enumerate(zip_longest(kept, made))
    return next(index for index, (mine, yours) in pairs if mine != yours)


def _shown(line: str | None) -> str:
    return "missing" if line is None else repr(line.strip()[:80])
