"""Validation of a result before anything is computed from it: its runs and its columns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from ackclock.dataset import tables
from ackclock.errors import InputError

#: Numbers of runs are 32 bits long in every table.
MAX_RUN = 2**32 - 1

#: A version's number, as it is written in a message.
_PLAIN = re.compile(r"[\w.+-]{1,40}", re.ASCII)

#: What Polars raises for a file that is not as it was written; some damage makes it panic.
UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)


def excerpt(value: object) -> str:
    """Return a value of a manifest for a message, short and on one line."""
    return value if isinstance(value, str) and _PLAIN.fullmatch(value) else json.dumps(value)[:60]


def check_runs(manifest: Mapping[str, Any], folder: Path) -> None:
    """Raise `InputError` unless the manifest lists runs, each a table with a unique number."""
    runs = manifest.get("runs")
    if not isinstance(runs, list):
        raise InputError(f"{folder}: damaged: manifest.json lists no runs")
    if not all(map(_is_run, runs)) or len({run["run"] for run in runs}) < len(runs):
        raise InputError(f"{folder}: damaged: manifest.json lists runs that have no number, or one number twice")


def _is_run(run: object) -> bool:
    if not isinstance(run, dict) or not isinstance(run.get("metrics") or {}, dict):
        return False
    number, seed = run.get("run"), run.get("seed")
    numbered = type(number) is int and 0 <= number <= MAX_RUN
    return numbered and (seed is None or (type(seed) is int and -(2**63) <= seed < 2**63))


def check_part(path: Path, table: str) -> dict[str, pl.DataType]:
    """Raise `InputError` unless the file has the columns of the table, of their types.

    Gives the columns of words that have got more words since it was written, and their types now.
    """
    try:
        result = pl.scan_parquet(path.absolute(), glob=False).collect_schema()
    except UNREADABLE as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"{path}: damaged part: {reason}") from error
    expected = tables.schema(table)
    if list(result) != list(expected):
        raise InputError(f"{path}: damaged part: its columns are not those of {table}")
    changed = {name: dtype for name, dtype in expected.items() if result[name] != dtype}
    for name, dtype in changed.items():
        if not _is_shorter(result[name], dtype):
            raise InputError(f"{path}: damaged part: its column {name} is {result[name]}; expected {dtype}")
    return changed


def _is_shorter(result: pl.DataType, dtype: pl.DataType) -> bool:
    """Return True if the categories are the first ones of the current type: new ones are added at the end."""
    if not isinstance(result, pl.Enum) or not isinstance(dtype, pl.Enum):
        return False
    return list(result.categories) == list(dtype.categories)[: len(result.categories)]
