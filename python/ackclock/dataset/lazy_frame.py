"""Rows of a table as an engine handed them over; Polars frames are made of them on demand, and pandas frames of those.

To make a frame of small columns takes longer than many a simulation, and metrics read most of them as NumPy arrays.

Used by datasets, comparisons and sweeps for the tables that users read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock.dataset import tables
from ackclock.dataset.tables import Column
from ackclock.errors import InputError

Array: TypeAlias = npt.NDArray[Any]

#: Assumed memory of a list item, in bytes.
ITEM_BYTES = 16


@dataclass(frozen=True, eq=False)
class Columns:
    """Rows of one table: the number of their run, or of each row's; `names` as in `tables.frame`."""

    table: str
    columns: Mapping[str, Column]
    run: int | Array
    names: Mapping[str, Sequence[str]]
    _cache: dict[str, Array | None] = field(default_factory=dict, repr=False)

    @property
    def height(self) -> int:
        """Return the number of rows."""
        return max(map(len, self.columns.values()), default=0)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """Return all rows as a frame with the table's schema."""
        return tables.frame(self.table, self.columns, self.run, self.names)

    @property
    def size_bytes(self) -> int:
        """Return the approximate memory of the rows."""
        return sum(map(_bytes, self.columns.values()))

    def numbers(self, name: str) -> Array | None:
        """Return a numeric column as metrics take it: counts and nullable values as floats, NaN for null.

        None for what is not a column of plain numbers: look at the frame.
        """
        if name not in self._cache:
            self._cache[name] = self._numbers(name)
        return self._cache[name]

    def items(self, name: str) -> Sequence[Any] | None:
        """Return a column of strings or lists as it was handed over; None for numbers, codes or a missing column."""
        column = self.columns.get(name)
        return column if isinstance(column, list) else None

    def equals(self, name: str, word: str) -> npt.NDArray[np.bool_] | None:
        """Return which rows have this value in a categorical column; None unless it is strings or codes."""
        column, names = self.columns.get(name), self.names.get(f"{self.table}.{name}")
        if isinstance(column, list):
            return np.fromiter((value == word for value in column), dtype=np.bool_, count=len(column))
        if isinstance(column, np.ndarray) and names is not None:
            return np.asarray(column == names.index(word) if word in names else np.zeros(column.size, dtype=np.bool_))
        return None

    def _numbers(self, name: str) -> Array | None:
        expected = tables.TABLES[self.table][name]
        column = self.columns.get(name)
        if name == "run":
            return np.full(self.height, self.run, dtype=np.uint32)
        if column is None and expected.dtype.is_numeric():
            return np.full(self.height, np.nan)
        if not isinstance(column, np.ndarray) or column.dtype != _DTYPES.get(expected.dtype):
            return None
        result = (_without_sentinels(column) if expected.nullable else _counts(column)).view()
        result.flags.writeable = False
        return result


#: NumPy's types of plain columns.
_DTYPES: Mapping[pl.DataType, np.dtype[Any]] = {
    tables.F64: np.dtype(np.float64),
    tables.U32: np.dtype(np.uint32),
    tables.U64: np.dtype(np.uint64),
    tables.BOOL: np.dtype(np.bool_),
}


def joined(parts: Sequence[Columns]) -> Columns | None:
    """Join rows; None where the parts differ in columns, names or types of columns."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if any(part.columns.keys() != first.columns.keys() or part.names != first.names for part in parts):
        return None
    columns = {name: _joined([part.columns[name] for part in parts]) for name in first.columns}
    complete = {name: column for name, column in columns.items() if column is not None}
    if len(complete) < len(columns):
        return None
    run = np.concatenate([np.full(part.height, part.run, dtype=np.uint32) for part in parts])
    return Columns(first.table, complete, run, first.names)


def frame(parts: Sequence[Columns]) -> pl.DataFrame:
    """Join rows as one frame."""
    whole = joined(parts)
    return pl.concat([part.frame for part in parts], rechunk=True) if whole is None else whole.frame


def _joined(columns: Sequence[Column]) -> Column | None:
    arrays = [column for column in columns if isinstance(column, np.ndarray)]
    if not arrays:
        return list(chain.from_iterable(columns))
    alike = len(arrays) == len(columns) and len({array.dtype for array in arrays}) == 1
    return np.concatenate(arrays) if alike else None


def _counts(column: Array) -> Array:
    return column.astype(np.float64) if column.dtype == np.uint64 else column


def _without_sentinels(column: Array) -> Array:
    if column.dtype.kind == "f":
        infinite = np.isinf(column)
        return np.where(infinite, np.nan, column) if infinite.any() else column
    if column.dtype.kind != "u":
        return column
    absent = column == np.iinfo(column.dtype).max
    return np.where(absent, np.nan, column.astype(np.float64)) if absent.any() else _counts(column)


def _bytes(column: Column) -> int:
    if isinstance(column, np.ndarray):
        return int(column.nbytes)
    return ITEM_BYTES * len(column) + (0 if _are_strings(column) else 8 * sum(map(_length, column)))


def _are_strings(column: Sequence[Any]) -> bool:
    return bool(column) and isinstance(column[0], str)


def _length(item: object) -> int:
    return len(item) if isinstance(item, Iterable) and not isinstance(item, str) else 0  # type: ignore[arg-type]


def pandas_frame(table: pl.DataFrame) -> Any:
    """Return a `pandas.DataFrame` with the same columns; null is NaN in numbers, which become floats, else None.

    Raises `InputError` if pandas is not installed.
    """
    try:
        pandas: Any = import_module("pandas")
    except ImportError as error:
        raise InputError(f"found no pandas ({error}); expected ackclock[pandas]: pip install pandas") from None
    return pandas.DataFrame({column.name: _pandas_values(column) for column in table})


#: Table → the columns that place a row; other tables have their rows one after the other.
DIMENSIONS = {
    "flows": ("run", "flow"),
    "links": ("run", "link"),
    "flow_samples": ("run", "flow", "time_s"),
    "queue_samples": ("run", "link", "time_s"),
}

#: Cells of a grid at most for each row of its table: samples at common times need few more than there are rows.
MAX_CELLS = 20

#: Suffix of a column → the unit of its values.
UNITS = {"_bps": "bit/s", "_bytes": "bytes", "_p": "packets", "_s": "s"}


def xarray_dataset(name: str, table: pl.DataFrame) -> Any:
    """Return an `xarray.Dataset` of a table; see `Dataset.to_xarray`."""
    try:
        xarray: Any = import_module("xarray")
    except ImportError as error:
        raise InputError(f"found no xarray ({error}); expected ackclock[xarray]: pip install xarray") from None
    keys = DIMENSIONS.get(name, ())
    places = {key: np.unique(table[key].to_numpy()) for key in keys}
    sizes = [values.size for values in places.values()]
    if keys and np.prod(sizes, dtype=float) > MAX_CELLS * max(table.height, 1):
        wide = " × ".join(f"{size:,}" for size in sizes)
        found = f"{wide} values of {', '.join(keys)} for {table.height:,} rows"
        raise InputError(f"{name}: found {found}; expected samples at common times: take to_pandas, or scan")
    where = tuple(np.searchsorted(values, table[key].to_numpy()) for key, values in places.items())
    dimensions = keys or ("row",)
    columns = {}
    for column in table.drop(keys):
        values = np.asarray(_pandas_values(column))
        if keys:
            kind = np.float64 if column.dtype.is_numeric() else object
            values, given = np.full(sizes, np.nan if kind is np.float64 else None, dtype=kind), values
            values[where] = given
        unit = next((unit for suffix, unit in UNITS.items() if column.name.endswith(suffix)), None)
        columns[column.name] = (dimensions, values, {"units": unit} if unit else {})
    coordinates = {key: (key, values, {"units": "s"} if key == "time_s" else {}) for key, values in places.items()}
    return xarray.Dataset(columns, coordinates)


def _pandas_values(column: pl.Series) -> Any:
    if column.dtype.is_nested():
        return np.fromiter(column.to_list(), dtype=object, count=len(column))
    if column.dtype.is_numeric():
        return (column.cast(pl.Float64) if column.null_count() else column).to_numpy()
    return column.to_numpy() if column.dtype == pl.Boolean and not column.null_count() else column.to_list()
