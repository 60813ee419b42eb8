"""Damages of files by chance: of octets, of words, of the values of JSON and YAML, and of the cells of Parquet.

A file of values or cells that has been damaged is one of its format again, so that what is wrong in it is found by
what uses it.
"""

import copy
import io
import json
import math
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

#: what stands in place of a value, or beside one
TOKENS = (
    *(b"", b"0", b"-1", b"1", b"-0", b"2.5", b"1e400", b"-1e308", b"1e-320", b".nan", b"NaN", b".inf", b"-.inf"),
    *(b"Infinity", b"9" * 400, b"9" * 5000, b"1" + b"0" * 30, b"65536", b"2147483648", b"9223372036854775808"),
    *(b"0x" + b"f" * 6000, b"1" + b":59" * 3000, b"1" + b":59" * 200 + b".5", b"!!int ''", b"!!bool x", b"!!map [1]"),
    *(b"0x10", b"0x_", b"0o17", b"1_000", b"1:30", b"2026-11-29", b"2026-13-29", b"2026-11-29T10:00:00Z"),
    *(b"true", b"yes", b"null", b"~", b"[]", b"{}", b"[[]]", b"{a: 1}", b'""', b"''", b"''''", b'"', b"'"),
    *(b"[" * 500, b"{" * 500, b"- " * 500, b"&a [*a]", b"&a {b: *a}", b"&a ", b"*a", b"<<: *a", b"|", b">"),
    *(b"!!binary aGk=", b"!!python/name:os.system", b"!!set {a}", b"!!timestamp x", b"? [a]", b"? {a: b}"),
    *(b"%YAML 9.9", b"---", b"...", b"#", b"\t", b"\r", b"\n", b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\xef\xbb\xbf"),
    *("é\u2028²½💥".encode(), b"../../etc/passwd", b"/dev/zero", b"/", b".", b"a" * 3000, b",", b";", b":"),
    *(b"name", b"kind", b"model", b"trace", b"path", b"seed", b"tier", b"emulated", b"vusrp", b"mahimahi"),
)  # fmt: skip
#: what stands in place of a value of JSON, YAML or Parquet
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 2.5, -0.0, 1e9, -1e9, 1e308, -1e308, 1e-320, math.inf, -math.inf, math.nan),
    *(10**20, 10**300, 10**400, -(10**20), 2**31, 2**32, 2**63 - 1, 2**63, 2**64),
    *("", " ", "0", "-1", "1e999", "NaN", "Infinity", "5%", "0 %", "true", "a", "a" * 3000, "\0", "\ud800", "\n"),
    *("é\u2028💥", "..", ".", "/", "../../etc/passwd", "/dev/zero", "[red]", "[/]", "%s", "{}", "{0}", "$\\x$", "$"),
    *("2026-13-29", "2026-11-29T10:00:00Z", "0001-01-01T00:00:00+14:00", "<b>", "none", "slacp", "up", "bulk"),
    *([], [[]], [None], [0] * 300, ["a"], [{}], {}, {"": None}, {"a": {}}, {"name": []}),
)


def damaged(name: str, octets: bytes, rng: Random, *, text: bool) -> bytes:
    """Return the octets of a file of this name with one to six damages: mostly few, so that the rest is read."""
    times = min(1 + int(rng.expovariate(0.7)), 6)
    change = _CHANGES.get(name.rpartition(".")[2])
    if change is not None and rng.random() < 0.5:
        return change(octets, rng, times)
    for _ in range(times):
        octets = (_damage_words if text and rng.random() < 0.8 else _damage_octets)(octets, rng)
    return octets


def _damage_words(octets: bytes, rng: Random) -> bytes:
    # cut where a value may begin or end
    words = _cut(octets)
    at = rng.randrange(len(words) + 1)
    match rng.randrange(6):
        case 0:
            words[at : at + 1] = [rng.choice(TOKENS)]
        case 1:
            words[at:at] = [rng.choice(TOKENS)]
        case 2:
            del words[at : at + rng.randint(1, 5)]
        case 3:
            words[at:at] = words[at : at + rng.randint(1, 30)] * rng.choice([1, 2, 50])
        case 4:
            words[at : at + 1] = [rng.choice(words)] if words else []
        case _:
            other = rng.randrange(len(words) + 1)
            words[at:at] = words[other : other + rng.randint(1, 10)]
    return b"".join(words)


def _cut(octets: bytes) -> list[bytes]:
    words: list[bytes] = []
    word = bytearray()
    for octet in octets:
        inside = chr(octet).isalnum() or octet in b"_.-"
        if word and inside != (chr(word[-1]).isalnum() or word[-1] in b"_.-"):
            words.append(bytes(word))
            word.clear()
        word.append(octet)
    return [*words, bytes(word)] if word else words


def _damage_octets(octets: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(octets) + 1)
    several = rng.choice([1, 2, 4, 8, rng.randint(1, 200)])
    match rng.randrange(6):
        case 0 if at < len(octets):
            return octets[:at] + bytes([octets[at] ^ 1 << rng.randrange(8)]) + octets[at + 1 :]
        case 1:
            return octets[:at] + rng.choice([b"\0", b"\xff", b"\x7f", b"\x80"]) * several + octets[at + several :]
        case 2:
            return octets[:at] + octets[at + several :]
        case 3:
            return octets[:at] + octets[at : at + several] * 2 + octets[at + several :]
        case 4:
            return octets[:at]
        case _:
            return octets[:at] + rng.randbytes(several) + octets[at + several :]


# -- values ----------------------------------------------------------------------------------------------------


def _json(octets: bytes, rng: Random, times: int) -> bytes:
    return (json.dumps(_changed(json.loads(octets), rng, times), indent=1) + "\n").encode()


def _lines(octets: bytes, rng: Random, times: int) -> bytes:
    rows = _changed([json.loads(line) for line in octets.splitlines()], rng, times)
    rows = rows if isinstance(rows, list) else [rows]
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows).encode()


def _yaml(octets: bytes, rng: Random, times: int) -> bytes:
    return yaml.safe_dump(_changed(yaml.safe_load(octets), rng, times), sort_keys=False).encode()


def _changed(document: Any, rng: Random, times: int) -> Any:
    """Return a document with some of its values replaced, left out, moved, added or put into others."""
    root = [document]
    for _ in range(times):
        places = list(_places(root[0])) or [(root, 0)]
        # the whole seldom
        inside, key = (root, 0) if rng.random() < 0.02 else rng.choice(places)
        other, at = rng.choice(places)
        found = copy.deepcopy(other[at])
        new = copy.deepcopy(rng.choice(VALUES))
        match rng.randrange(8):
            case 0 | 1 | 2:
                inside[key] = new
            case 3 if inside is not root:
                del inside[key]
            case 4:
                inside[key] = found
            case 5 if isinstance(inside, dict):
                inside[rng.choice([str(at), str(new)[:300]])] = inside.pop(key)
            case 6 if isinstance(inside, dict):
                inside[str(at)] = found if rng.random() < 0.5 else new
            case 6:
                inside[key:key] = [found] * rng.choice([1, 2, 50])
            case _:
                inside[key] = [inside[key]] if rng.random() < 0.5 else {"a": inside[key]}
    return root[0]


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield what holds each value below one, and its key or index there."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield value, key
            yield from _places(inner)


# -- cells -----------------------------------------------------------------------------------------------------


def _parquet(octets: bytes, rng: Random, times: int) -> bytes:
    table = pq.read_table(io.BytesIO(octets))
    for _ in range(times):
        if table.num_columns:
            table = _changed_table(table, rng)
    made = io.BytesIO()
    pq.write_table(table, made)
    return made.getvalue()


def _changed_table(table: pa.Table, rng: Random) -> pa.Table:
    at = rng.randrange(table.num_columns)
    name, column = table.column_names[at], table.column(at)
    match rng.randrange(8):
        case 0:
            return table.remove_column(at)
        case 1:
            return table.append_column(rng.choice([name, "more", "time_ns"]), column)
        case 2:
            return table.slice(0, rng.choice([0, 1, table.num_rows // 2]))
        case 3:
            return table.take(pa.array(rng.sample(range(table.num_rows), table.num_rows), pa.int64()))
        case 4:
            kept = table.schema.metadata or {}
            return table.replace_schema_metadata({key: rng.choice([b"", b"\xff", b"-1", b"9" * 30]) for key in kept})
        case 5:
            kind = rng.choice([pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.list_(pa.int64()), pa.binary()])
            return table.set_column(at, name, pa.nulls(table.num_rows, kind))
        case _:
            cells = column.to_pylist()
            new = rng.choice([None, *(value for value in VALUES if not isinstance(value, list | dict))])
            for index in rng.sample(range(len(cells)), min(len(cells), rng.choice([1, 3, len(cells)]))):
                cells[index] = new
            try:
                return table.set_column(at, name, pa.array(cells, column.type))
            except (pa.ArrowException, OverflowError, TypeError, ValueError):
                return table.set_column(at, name, pa.array([str(cell)[:20].replace("\ud800", "") for cell in cells]))


_CHANGES: dict[str, Callable[[bytes, Random, int], bytes]] = {
    "json": _json,
    "sigmf-meta": _json,
    "jsonl": _lines,
    "yaml": _yaml,
    "parquet": _parquet,
}
