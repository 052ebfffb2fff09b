"""Damaged results: a recipe says which result, and what is done to its files.

A recipe is JSON, so that a case of the corpus can be read: the number of a result, then edits, each a list of a word
and what it needs.

    [0, ["set", ["runs", 0, "run"], -1], ["cell", "flows", "start_s", 1, null], ["flip", "links", 300, 7]]

What is no recipe stands in the place of the first result's manifest.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import polars as pl

from ackclock.dataset import Dataset, manifests
from ackclock.dataset.tables import TABLES

sys.path.insert(0, str(Path(__file__).parents[1]))
import synthetic

#: The content of a folder by the files' names.
Files = dict[str, bytes]

MANIFEST = "manifest.json"

#: Replacements of a value by one of another kind.
ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    2,
    1.5,
    1e308,
    float("nan"),
    float("inf"),
    2**31,
    2**32,
    2**63,
    2**64,
    -(2**63),
)
ODD += (
    10**400,
    "",
    "0",
    "é",
    "\x00",
    "\ud800",
    "x" * 300,
    [],
    [[]],
    {},
    {"": None},
    [None],
    [0] * 40,
    "../../etc",
    "udp",
)

#: Values that a column may hold, by the name of its type; a null where it may be null. The reader need not detect
#: values that an engine would never write: the checksums prove what was written.
PLAUSIBLE: dict[str, tuple[Any, ...]] = {
    "Float64": (0.0, 0.5, 3.0, 100.0),
    "UInt32": (0, 1, 2, 7),
    "UInt64": (0, 1, 1500, 2**40, 2**63),
    "Boolean": (True, False),
    "String": ("", "udp", "x" * 300, "é"),
    "List": (None,),
    "Enum": ("drop", "retransmission", "timeout"),
    "Categorical": ("data", "ack"),
}

TYPES = {"f64": pl.Float64, "f32": pl.Float32, "u32": pl.UInt32, "i64": pl.Int64, "u8": pl.UInt8, "str": pl.String}
TYPES |= {"bool": pl.Boolean, "list": pl.List(pl.Float64), "cat": pl.Categorical, "time": pl.Datetime}


#: Exceptions of an edit that does not fit the result of the ones before it.
UNFIT = (LookupError, TypeError, ValueError, AttributeError, OverflowError)
UNFIT += (pl.exceptions.PolarsError, pl.exceptions.PanicException)


@cache
def results() -> tuple[Mapping[str, bytes], ...]:
    """The results to begin with: a bottleneck of a few flows, short transfers, and flows that nobody planned."""
    made = (
        synthetic.sawtooth(flow_count=2, seeds=2, duration_s=6.0, warmup_s=1.0, step_s=0.1),
        synthetic.transfers(12, seeds=1, sampled=True),
        synthetic.unplanned(4.0),
    )
    return tuple(map(_files, made))


def _files(data: Dataset) -> Files:
    with tempfile.TemporaryDirectory() as name:
        folder = data.write(Path(name) / "result")
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def prepared(data: bytes) -> Files:
    """The files that a recipe asks for."""
    try:
        number, *edits = json.loads(data)
        files = dict(results()[number % len(results())])
    except (ValueError, TypeError, RecursionError):
        return {**results()[0], MANIFEST: data}
    for edit in edits:
        try:
            name, *given = edit
            EDITS[name](files, *given)
        except UNFIT:
            continue
    return sealed(files)


def sealed(files: Files) -> Files:
    """The files with a manifest that has the SHA-256 of each, so that not every edit ends at these."""
    try:
        known = json.loads(files[MANIFEST])
        listed = {
            name: sha256(files[name]).hexdigest() if name in files else old for name, old in known["files"].items()
        }
        about = {key: value for key, value in known.items() if key not in ("sha256", "files")}
        return {**files, MANIFEST: manifests.content(about, listed)}
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return files


def lay(files: Mapping[str, bytes], folder: Path) -> None:
    """Writes the files into an empty folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


# --- edits -------------------------------------------------------------------------------------


def _set(files: Files, path: list[Any], value: Any) -> None:
    """Another value in the manifest; an empty path: another manifest."""
    _in_manifest(files, path, lambda holder, key: holder.__setitem__(key, value))


def _del(files: Files, path: list[Any]) -> None:
    _in_manifest(files, path, lambda holder, key: holder.__delitem__(key))


def _in_manifest(files: Files, path: list[Any], change: Callable[[Any, Any], None]) -> None:
    whole = {"": json.loads(files[MANIFEST])}
    holder: Any = whole
    for step in ["", *path[:-1]] if path else []:
        holder = holder[step]
    change(holder, path[-1] if path else "")
    files[MANIFEST] = json.dumps(whole[""]).encode("utf-8", "surrogatepass")


def _flip(files: Files, table: str, at: int, bits: int) -> None:
    name = _part(files, table)
    content = bytearray(files[name])
    content[at % len(content)] ^= bits % 256
    files[name] = bytes(content)


def _cut(files: Files, table: str, size: int) -> None:
    name = _part(files, table)
    files[name] = files[name][: size % (len(files[name]) + 1)]


def _grow(files: Files, table: str, at: int, more: str) -> None:
    name = _part(files, table)
    files[name] = files[name][:at] + more.encode("latin-1") + files[name][at:]


def _swap(files: Files, one: str, other: str) -> None:
    names = _part(files, one), _part(files, other)
    files[names[0]], files[names[1]] = files[names[1]], files[names[0]]


def _remove(files: Files, table: str) -> None:
    del files[_part(files, table)]


def _repeat_rows(files: Files, table: str) -> None:
    """A part more: the same rows again."""
    count = sum(name.startswith(f"{table}.parquet/") for name in files)
    files[f"{table}.parquet/part-{count:04}.parquet"] = files[_part(files, table)]
    _set(files, ["parts", table], count + 1)


def _cell(files: Files, table: str, column: str, row: int, value: Any) -> None:
    def changed(frame: pl.DataFrame) -> pl.DataFrame:
        values = frame[column].to_list()
        values[row % max(len(values), 1)] = value
        return frame.with_columns(pl.Series(column, values, frame.schema[column], strict=False))

    _rows(files, table, changed)


def _fill(files: Files, table: str, column: str, value: Any) -> None:
    """One value in all of a column."""
    _rows(
        files,
        table,
        lambda frame: frame.with_columns(pl.Series(column, [value] * frame.height, frame.schema[column], strict=False)),
    )


def _cast(files: Files, table: str, column: str, kind: str) -> None:
    _rows(files, table, lambda frame: frame.with_columns(pl.col(column).cast(TYPES[kind], strict=False)))


def _rename(files: Files, table: str, column: str, name: str) -> None:
    _rows(files, table, lambda frame: frame.rename({column: name}))


def _drop(files: Files, table: str, column: str) -> None:
    _rows(files, table, lambda frame: frame.drop(column))


def _head(files: Files, table: str, count: int) -> None:
    _rows(files, table, lambda frame: frame.head(count % (frame.height + 1)))


def _backwards(files: Files, table: str) -> None:
    _rows(files, table, lambda frame: frame.reverse())


def _rows(files: Files, table: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    name = _part(files, table)
    written = io.BytesIO()
    change(pl.read_parquet(io.BytesIO(files[name]))).write_parquet(written)
    files[name] = written.getvalue()


def _part(files: Files, table: str) -> str:
    """The last part of a table."""
    return [name for name in sorted(files) if name.startswith(f"{table}.parquet/")][-1]


EDITS: dict[str, Callable[..., None]] = {
    "set": _set,
    "del": _del,
    "flip": _flip,
    "cut": _cut,
    "grow": _grow,
    "swap": _swap,
    "remove": _remove,
    "again": _repeat_rows,
    "cell": _cell,
    "fill": _fill,
    "cast": _cast,
    "rename": _rename,
    "drop": _drop,
    "head": _head,
    "backwards": _backwards,
}


# --- changes of recipes ------------------------------------------------------------------------


def changed(data: bytes, random: Random) -> bytes:
    """The recipe with an edit more, less or otherwise."""
    try:
        number, *edits = json.loads(data)
        files = results()[number % len(results())]
    except (ValueError, TypeError, RecursionError):
        number, edits, files = random.randrange(3), [], results()[0]
    what = random.random()
    if edits and what < 0.2:
        edits.pop(random.randrange(len(edits)))
    if not edits or what < 0.9:
        edits.insert(random.randrange(len(edits) + 1), _edit(files, random))
    else:
        number = random.randrange(len(results()))
    return json.dumps([number, *edits[-12:]]).encode()


def _edit(files: Mapping[str, bytes], random: Random) -> list[Any]:
    if random.random() < 0.4:
        path = _path(json.loads(files[MANIFEST]), random)
        return ["del", path] if random.random() < 0.2 else ["set", path, random.choice(ODD)]
    tables = sorted({name.partition(".")[0] for name in files if name != MANIFEST})
    table, other = random.choice(tables), random.choice(tables)
    name = random.choice([name for name in EDITS if name not in ("set", "del")])
    part = next(content for file, content in files.items() if file.startswith(f"{table}.parquet/"))
    column = random.choice([*TABLES[table]])
    plausible = PLAUSIBLE[str(TABLES[table][column].dtype.base_type())]
    value = None if TABLES[table][column].nullable and random.random() < 0.5 else random.choice(plausible)
    given: dict[str, list[Any]] = {
        "flip": [random.randrange(len(part)), random.randrange(1, 256)],
        "cut": [random.randrange(len(part))],
        "grow": [random.randrange(len(part)), random.choice(["", "\0", "PAR1", "\xff" * 9])],
        "swap": [other],
        "cell": [column, random.randrange(100), value],
        "fill": [column, value],
        "cast": [column, random.choice([*TYPES])],
        "rename": [column, random.choice(["run", "time_s", "x", ""])],
        "drop": [column],
        "head": [random.randrange(4)],
    }
    return [name, table, *given.get(name, [])]


def _path(manifest: Any, random: Random) -> list[Any]:
    """The way to some value in the manifest."""
    path: list[Any] = []
    here = manifest
    while isinstance(here, (dict, list)) and here and (not path or random.random() < 0.8):
        step = random.choice([*here]) if isinstance(here, dict) else random.randrange(len(here))
        path.append(step)
        here = here[step]
    return path
