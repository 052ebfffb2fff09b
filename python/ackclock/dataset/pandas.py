"""Tables for pandas, the extra `ackclock[pandas]`; Arrow is not needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import polars as pl

from ackclock.errors import InputError


def frame(table: pl.DataFrame) -> Any:
    """Return a `pandas.DataFrame` with the same columns; null is NaN in numbers, which become floats, else None.

    Raises `InputError` if pandas is not installed.
    """
    try:
        pandas: Any = import_module("pandas")
    except ImportError as error:
        raise InputError(f"found no pandas ({error}); expected ackclock[pandas]: pip install pandas") from None
    return pandas.DataFrame({column.name: _values(column) for column in table})


def _values(column: pl.Series) -> Any:
    if column.dtype.is_numeric():
        return (column.cast(pl.Float64) if column.null_count() else column).to_numpy()
    return column.to_numpy() if column.dtype == pl.Boolean and not column.null_count() else column.to_list()
